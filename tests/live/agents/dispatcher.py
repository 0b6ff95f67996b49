"""A small real dispatcher for tests of agents: a `LocalStore` behind WebSockets.

`python -m tests.live.agents.dispatcher --port 0` prints its port, and answers GET /state and GET /place in JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import http
import json
from contextlib import suppress
from ssl import SSLContext
from types import TracebackType
from typing import Any, Self

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from evenly.core.protocol.codec import VERSION, decode_to_dispatcher, encode_to_pool
from evenly.live.session_id import sign
from evenly.live.store.base import AllUnavailableError, FleetPool, FleetSettings, NoPoolsError
from evenly.live.store.local import LocalStore, term_now

HEARTBEAT_S = 0.1
CALM_S = 2.0  # for tests in which a healthy connection must not be taken for lost on a busy machine


class SmallDispatcher:
    """Takes agents at a loopback port while `async with` runs. `frames` has what each pool has sent."""

    def __init__(
        self,
        port: int = 0,
        *,
        token: str | None = None,
        ssl: SSLContext | None = None,
        heartbeat: float = HEARTBEAT_S,
    ) -> None:
        settings = FleetSettings(alpha="0.5", lease=60.0, silence=30.0, memory=60.0, heartbeat=heartbeat)
        self.store = LocalStore(settings, term=term_now())
        self.agents: dict[str, ServerConnection] = {}
        self.hellos: list[dict[str, Any]] = []
        self.frames: list[dict[str, Any]] = []
        self.port = port
        self._heartbeat = heartbeat
        self._token = token
        self._ssl = ssl
        self._server: Server | None = None
        self._ticking: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._server = await serve(
            self._agent, "127.0.0.1", self.port, process_request=self._request, compression=None, ssl=self._ssl
        )
        self.port = next(iter(self._server.sockets)).getsockname()[1]
        self._ticking = asyncio.create_task(self._tick())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None and self._ticking is not None
        self._ticking.cancel()
        for connection in list(self._server.connections):
            connection.transport.abort()  # as if it was killed
        self._server.close()
        await self._server.wait_closed()
        await asyncio.gather(self._ticking, return_exceptions=True)

    @property
    def url(self) -> str:
        return f"{'http' if self._ssl is None else 'https'}://127.0.0.1:{self.port}"

    async def pool(self, name: str) -> FleetPool | None:
        return next((pool for pool in (await self.store.state()).pools if pool.name == name), None)

    async def place(self) -> tuple[str, str]:
        """Pick a pool. Return its name and the session id."""
        (placement,) = await self.store.place(count=1, exclude=frozenset(), key=None)
        return placement.pool, sign(self.store.key, placement.pool, placement.ticket, placement.threshold)

    async def rotate(self, key: bytes) -> None:
        """Sign with a new key, and tell all agents."""
        self.store.key = key
        for connection in self.agents.values():
            await connection.send(self._welcome())

    def _welcome(self) -> str:
        return json.dumps({"type": "welcome", "heartbeat": self._heartbeat, "key": self.store.key.hex()})

    async def _agent(self, connection: ServerConnection) -> None:
        hello = json.loads(await connection.recv())
        assert hello["type"] == "hello" and hello["version"] == VERSION
        self.hellos.append(hello)
        name = hello["pool"]
        self.agents[name] = connection
        where = {key: hello[key] for key in ("incarnation", "address", "capacity")}
        await self.store.register(name, **where)
        await connection.send(self._welcome())
        with suppress(ConnectionClosed):
            async for frame in connection:
                assert isinstance(frame, str)
                self.frames.append(json.loads(frame))
                reply = await self.store.receive(decode_to_dispatcher(name, frame))
                if reply is not None:
                    await connection.send(encode_to_pool(reply))
        if self.agents.get(name) is connection:
            del self.agents[name]
            await self.store.disconnected(name)

    async def _request(self, connection: ServerConnection, request: Request) -> Response | None:
        if request.path == "/state":
            pools = (await self.store.state()).pools
            return connection.respond(http.HTTPStatus.OK, json.dumps({pool.name: pool.sessions for pool in pools}))
        if request.path == "/place":
            try:
                return connection.respond(http.HTTPStatus.OK, (await self.place())[1])
            except (NoPoolsError, AllUnavailableError):
                return connection.respond(http.HTTPStatus.SERVICE_UNAVAILABLE, "")
        if request.path != "/v1/agents":
            return connection.respond(http.HTTPStatus.NOT_FOUND, "")
        wanted = None if self._token is None else f"Bearer {self._token}"
        if request.headers.get("Authorization") != wanted:
            return connection.respond(http.HTTPStatus.UNAUTHORIZED, "")
        return None

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_S / 2)
            await self.store.tick()


async def main(port: int) -> None:
    async with SmallDispatcher(port) as dispatcher:
        print(f"port {dispatcher.port}", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    asyncio.run(main(parser.parse_args().port))
