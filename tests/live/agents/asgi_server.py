"""Applications for tests of the middleware, and a real uvicorn around them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect


class Game:
    """The state of the application: what tests can wait for and set."""

    def __init__(self) -> None:
        self.finish = asyncio.Event()  # ends streams
        self.running = 0  # handlers

    @asynccontextmanager
    async def handler(self) -> AsyncIterator[None]:
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1


def websocket_routes(game: Game) -> list[WebSocketRoute]:
    """Return a route for each way in which a WebSocket can go."""

    async def echo(websocket: WebSocket) -> None:
        async with game.handler():
            await websocket.accept()
            try:
                while True:
                    text = await websocket.receive_text()
                    if text == "crash":
                        raise RuntimeError("of the application")
                    if text == "close":
                        await websocket.close()
                        await game.finish.wait()  # cleans up for long: no session any more
                        return
                    await websocket.send_text(text)
            except WebSocketDisconnect:
                pass

    async def concurrent(websocket: WebSocket) -> None:
        async with game.handler():
            await websocket.accept()

            async def talk() -> None:
                while True:
                    await websocket.send_text("tick")
                    await asyncio.sleep(0.01)

            talking = asyncio.create_task(talk())
            try:
                await websocket.receive_text()
            except WebSocketDisconnect:
                pass
            finally:
                talking.cancel()
                await asyncio.gather(talking, return_exceptions=True)

    async def reject(websocket: WebSocket) -> None:
        await websocket.close()

    async def hesitate(websocket: WebSocket) -> None:
        async with game.handler():
            await game.finish.wait()
            await websocket.accept()
            await websocket.receive()

    async def linger(websocket: WebSocket) -> None:
        async with game.handler():
            await websocket.accept()
            while (await websocket.receive())["type"] != "websocket.disconnect":
                pass
            await game.finish.wait()

    async def fail(websocket: WebSocket) -> None:
        raise RuntimeError("before the accept")

    return [
        WebSocketRoute(f"/{handler.__name__}", handler)
        for handler in (echo, concurrent, reject, hesitate, linger, fail)
    ]


def deaf_routes(game: Game) -> list[WebSocketRoute]:
    """Return routes for WebSockets whose handlers receive nothing."""

    async def idle(websocket: WebSocket) -> None:
        async with game.handler():
            await websocket.accept()
            await game.finish.wait()  # neither receives nor sends

    async def talk(websocket: WebSocket) -> None:
        async with game.handler():
            await websocket.accept()
            with suppress(WebSocketDisconnect):  # Starlette's, for an OSError of the server
                while True:
                    await websocket.send_text("tick")
                    await asyncio.sleep(0.01)
            await game.finish.wait()

    return [WebSocketRoute("/idle", idle), WebSocketRoute("/talk", talk)]


def http_routes(game: Game) -> list[Route]:
    """Return a route for each way in which a request can go."""

    async def linger(request: Request) -> Response:
        async with game.handler():
            while not await request.is_disconnected():
                await asyncio.sleep(0.01)
            await game.finish.wait()
        return PlainTextResponse("too late")

    async def stream(request: Request) -> Response:
        async def parts() -> AsyncIterator[str]:
            async with game.handler():
                yield "begun\n"
                if "crash" in request.query_params:
                    raise RuntimeError("in the middle")
                while not game.finish.is_set():
                    await asyncio.sleep(0.01)
                    yield "more\n"

        return StreamingResponse(parts())

    async def plain(request: Request) -> Response:
        return PlainTextResponse("hello", background=BackgroundTask(game.finish.wait))

    async def slow(request: Request) -> Response:
        async with game.handler():
            await game.finish.wait()
        return PlainTextResponse("done")

    return [Route(f"/{handler.__name__}", handler) for handler in (linger, stream, plain, slow)]


def starlette_app(game: Game) -> Starlette:
    """Return an application with all these routes."""
    return Starlette(routes=[*websocket_routes(game), *deaf_routes(game), *http_routes(game)])


async def without_lifespan(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401
    """An application like that of Django Channels: only HTTP and WebSockets."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (await receive())["type"] != "websocket.disconnect":
            pass
    elif scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"hello"})
    else:
        raise ValueError(f"No application configured for scope type {scope['type']!r}")


class Passing(BaseHTTPMiddleware):
    """Makes every response look streamed, as any middleware of this kind does."""

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        return await call_next(request)


@asynccontextmanager
async def serving(app: Any, *, lifespan: str = "on") -> AsyncIterator[int]:  # noqa: ANN401
    """Serve an application with uvicorn in this event loop. Yield the port."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        config = uvicorn.Config(
            app, ws="websockets-sansio", lifespan=lifespan, log_config=None, log_level="critical",  # type: ignore[arg-type]
            timeout_graceful_shutdown=1,
        )  # fmt: skip
        server = _Server(config)
        task = asyncio.create_task(server.serve(sockets=[sock]))
        try:
            while not server.started:
                assert not task.done()
                await asyncio.sleep(0.01)
            yield int(sock.getsockname()[1])
        finally:
            server.should_exit = True
            await task


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
