"""A real dispatcher process, and agents on real WebSockets that drive `PoolPeer`s, for tests."""

from __future__ import annotations

import asyncio
import io
import json
import ssl
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from evenly.core.protocol import PoolPeer, ToDispatcher
from evenly.core.protocol.codec import VERSION, decode_to_pool, encode_to_dispatcher
from evenly.live.picker.ready import Ready
from evenly.live.session_id import verify
from tests.live.certificates import Authority
from tests.live.processes import PATIENCE, Process, eventually, free_port

HEARTBEAT = 0.5
READY = '{"listen"'
T = TypeVar("T")


class Dispatcher(Process):
    """A dispatcher that can be killed and started again on the same ports."""

    def __init__(self, *options: str, scheme: str = "http") -> None:
        self.listen, self.admin_port = free_port(), free_port()
        self.scheme = scheme
        super().__init__(
            *(sys.executable, "-m", "evenly", "dispatcher", "--ready-json", "--alpha=0.5"),
            *(f"--listen=127.0.0.1:{self.listen}", f"--admin=127.0.0.1:{self.admin_port}"),
            *(() if any("heartbeat" in each for each in options) else (f"--heartbeat={HEARTBEAT}",)),
            *options,
        )

    def start(self) -> None:
        """Start it and wait until it is ready."""
        before = self.output().count(READY)
        super().start()
        line = self.ready_line(before, READY)
        assert Ready.from_json(line).listen.port == self.listen

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.listen}"

    @property
    def agents_url(self) -> str:
        return f"{self.url.replace('http', 'ws', 1)}/v1/agents"

    def client(self, token: str = "", tls: ssl.SSLContext | None = None) -> httpx.Client:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        verify = True if tls is None else tls
        return httpx.Client(base_url=self.url, timeout=PATIENCE, trust_env=False, headers=headers, verify=verify)

    def post(self, body: object = None, **headers: str) -> httpx.Response:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        with self.client() as client:
            return client.post("/v1/sessions", json=body, headers=given)

    def admin(self, method: str, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
        with httpx.Client(timeout=PATIENCE, trust_env=False) as client:
            return client.request(method, f"http://127.0.0.1:{self.admin_port}{path}", headers=headers)

    def state(self) -> dict[str, Any]:
        answer = self.admin("GET", "/state")
        assert answer.status_code == 200
        found: dict[str, Any] = answer.json()
        return found

    def pool(self, name: str) -> dict[str, Any]:
        return next((pool for pool in self.state()["pools"] if pool["name"] == name), {})

    def wait_for(self, wanted: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        return eventually(self.state, wanted)

    def events(self, name: str) -> list[dict[str, Any]]:
        lines = [line for line in self.output().splitlines() if line.startswith('{"time"')]
        return [event for event in map(json.loads, lines) if event["event"] == name]


class Loop:
    """An event loop in its own thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def close(self) -> None:
        self.run(asyncio.sleep(0.01))  # connections that were aborted end in the next steps of the loop
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()


class Agent:
    """An agent: it connects, says hello, sends heartbeats, and connects again when the connection is lost."""

    def __init__(
        self,
        url: str,
        pool: str,
        *,
        address: str = "",
        capacity: int | None = None,
        token: str = "",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        incarnation = time.time_ns()
        self.hello = {
            "type": "hello",
            "version": VERSION,
            "pool": pool,
            "incarnation": incarnation,
            "address": address or f"ws://{pool}.example:9000",
            "capacity": capacity,
        }
        self.peer = PoolPeer(pool, incarnation=incarnation, capacity=capacity)
        self.keys: list[bytes] = []
        self.welcomes = 0
        self.connection: ClientConnection | None = None
        self._url, self._token, self._tls = url, token, tls
        self._leaving = False

    async def run(self) -> None:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        while True:
            with suppress(OSError, WebSocketException):
                async with connect(
                    self._url,
                    additional_headers=headers,
                    compression=None,
                    ping_interval=None,
                    proxy=None,
                    ssl=self._tls,
                ) as connection:
                    await self._converse(connection)
            await asyncio.sleep(0.02)

    async def _converse(self, connection: ClientConnection) -> None:
        await connection.send(json.dumps(self.hello))
        beating: asyncio.Task[None] | None = None
        try:
            async for text in connection:
                values = json.loads(text)
                if values.get("type") == "welcome":
                    self.keys = [bytes.fromhex(values["key"]), *self.keys[:1]]
                    self.welcomes += 1
                    self.connection = connection
                    if beating is None:
                        beating = asyncio.create_task(self._beat(connection, values["heartbeat"]))
                    else:
                        await connection.send(encode_to_dispatcher(self.peer.heartbeat()))
                else:
                    self.peer.receive(decode_to_pool(values))
        finally:
            self.connection = None
            if beating is not None:
                await _cancelled(beating)

    async def _beat(self, connection: ClientConnection, seconds: float) -> None:
        with suppress(WebSocketException):
            while True:
                message = self.peer.leave() if self._leaving else self.peer.heartbeat()
                await connection.send(encode_to_dispatcher(message))
                await asyncio.sleep(seconds)

    async def begin(self, session: str, ticket_of: str | None = None) -> None:
        known = None if ticket_of is None else verify(self.keys, ticket_of)
        ticket, threshold = (None, None) if known is None else (known.ticket, known.threshold)
        await self._tell(self.peer.begin(session, ticket, threshold))

    async def refuse(self, session: str) -> None:
        known = verify(self.keys, session)
        assert known is not None
        await self._tell(self.peer.refuse(known.ticket, known.threshold))

    async def end(self, session: str) -> None:
        await self._tell(self.peer.end(session))

    async def leave(self) -> None:
        self._leaving = True
        await self._tell(self.peer.leave())

    async def say(self, text: str) -> None:
        assert self.connection is not None
        await self.connection.send(text)

    async def _tell(self, message: ToDispatcher | None) -> None:
        if message is not None and self.connection is not None:
            with suppress(WebSocketException):
                await self.connection.send(encode_to_dispatcher(message))


async def _task(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return asyncio.create_task(work)


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


class Agents:
    """Agents by the name of their pool, in one event loop beside the test."""

    def __init__(self, url: str, *, token: str = "", tls: ssl.SSLContext | None = None) -> None:
        self._url, self._token, self._tls = url, token, tls
        self._loop = Loop()
        self._agents: dict[str, Agent] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pool in list(self._running):
            self.stop(pool)
        self._loop.close()

    def __getitem__(self, pool: str) -> Agent:
        return self._agents[pool]

    def start(self, *pools: str, wait: bool = True, address: str = "", capacity: int | None = None) -> None:
        for pool in pools:
            agent = Agent(self._url, pool, address=address, capacity=capacity, token=self._token, tls=self._tls)
            self._agents[pool] = agent
            self._running[pool] = self._loop.run(_task(agent.run()))
        if wait:
            self.wait_connected(*pools)

    def wait_connected(self, *pools: str) -> None:
        eventually(lambda: [p for p in pools if self._agents[p].connection is None], lambda missing: not missing)

    def stop(self, pool: str) -> None:
        """Close the connection of an agent and stop it."""
        self._loop.run(_cancelled(self._running.pop(pool)))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run(work)

    def begin(self, pool: str, session: str, ticket_of: str | None = None) -> None:
        self.run(self[pool].begin(session, ticket_of))

    def end(self, pool: str, session: str) -> None:
        self.run(self[pool].end(session))

    def arrive(self, session: dict[str, Any]) -> None:
        """Let the client of an answer come to its pool."""
        self.begin(session["pool"], session["id"], session["id"])


@contextmanager
def fleet(
    *options: str, pools: tuple[str, ...] = ("a", "b", "c"), capacity: int | None = None
) -> Iterator[tuple[Dispatcher, Agents]]:
    """Run a dispatcher and agents of these pools, which it knows."""
    with Dispatcher(*options) as dispatcher, Agents(dispatcher.agents_url) as agents:
        agents.start(*pools, capacity=capacity)
        dispatcher.wait_for(lambda state: {pool["name"] for pool in state["pools"]} >= set(pools))
        yield dispatcher, agents


def refused(*options: str, environment: dict[str, str] | None = None) -> str:
    """Return what a dispatcher that does not start prints; it must exit with 2 and one sentence."""
    from evenly.cli.main import main

    output, error = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(output), redirect_stderr(error):
        for name, value in (environment or {}).items():
            patch.setenv(name, value)
        assert main(["dispatcher", *options]) == 2
    assert output.getvalue() == ""
    assert error.getvalue().count("\n") == 1
    return error.getvalue()


def make_certificates(folder: Path) -> tuple[Path, Path, Path]:
    """Make a CA and a certificate for 127.0.0.1; return the CA, the certificate and its key."""
    authority = Authority(folder, "ours")
    pair = authority.sign("dispatcher")
    return authority.cert, pair.cert, pair.key
