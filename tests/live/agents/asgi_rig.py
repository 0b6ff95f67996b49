"""A pool behind the middleware in a real uvicorn, and a dispatcher."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from websockets.asyncio.client import connect

from evenly.live.agents import EvenlyMiddleware
from tests.live.agents.asgi_server import Game, serving, starlette_app
from tests.live.agents.dispatcher import SmallDispatcher
from tests.live.agents.support import until, until_async


class Rig:
    """A pool behind the middleware, and a dispatcher."""

    def __init__(self, middleware: EvenlyMiddleware, game: Game, dispatcher: SmallDispatcher, port: int) -> None:
        self.middleware = middleware
        self.agent = middleware.agent
        self.game = game
        self.dispatcher = dispatcher
        self.port = port

    def websocket(self, path: str, **more: Any) -> connect:  # noqa: ANN401
        return connect(f"ws://127.0.0.1:{self.port}{path}", proxy=None, compression=None, **more)

    @asynccontextmanager
    async def http(self) -> AsyncIterator[httpx.AsyncClient]:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.port}", trust_env=False) as client:
            yield client

    async def place(self) -> str:
        return (await self.dispatcher.place())[1]

    async def open_tickets(self) -> int:
        pool = await self.dispatcher.pool("game-1")
        assert pool is not None
        return pool.expected

    async def settled(self, sessions: int) -> None:
        """Wait until agent and dispatcher count this many sessions, and no place is held."""
        await until(lambda: self.agent.sessions, lambda count: count == sessions)
        await until(lambda: self.middleware._held, lambda held: held == 0)

        async def seen() -> int:
            pool = await self.dispatcher.pool("game-1")
            return -1 if pool is None else pool.sessions

        await until_async(seen, lambda count: count == sessions)


@asynccontextmanager
async def rig(app: Any = None, *, capacity: int | None = None, lifespan: str = "on") -> AsyncIterator[Rig]:  # noqa: ANN401
    async with SmallDispatcher() as dispatcher:
        game = Game()
        middleware = EvenlyMiddleware(
            app or starlette_app(game),
            pool="game-1",
            address="ws://127.0.0.1:7000",
            dispatchers=[dispatcher.url],
            capacity=capacity,
        )
        before = asyncio.all_tasks()
        async with serving(middleware, lifespan=lifespan) as port:
            yield Rig(middleware, game, dispatcher, port)
            game.finish.set()
            connected = middleware.agent.dispatcher is not None
        if lifespan == "off":
            await middleware.agent.close()  # nothing else does
        await until(lambda: asyncio.all_tasks() - before, lambda tasks: not tasks)  # none outlives the server
        assert middleware.agent.dispatcher is None
        if connected:
            await until(lambda: dispatcher.frames[-1]["kind"] == "leave")
