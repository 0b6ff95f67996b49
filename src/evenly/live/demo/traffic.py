"""WebSocket sessions that follow a trace: real connections through a gateway."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from websockets.client import ClientProtocol
from websockets.frames import CloseCode, Frame
from websockets.protocol import State
from websockets.uri import parse_uri

from evenly.live.addresses import Address
from evenly.workload.trace import Visit

MAX_MESSAGE = 2**16
TIMEOUT_S = 10.0  # for a session to get its greeting, and again for it to close


@dataclass(frozen=True, slots=True)
class Session:
    """A finished session, with times in seconds since the beginning. Its pool is empty if it failed."""

    pool: str
    start: float
    end: float


class ClientSession(asyncio.Protocol):
    """One connection to a gateway or a pool. The pool sends its own address as the first message."""

    def __init__(self, server: Address, path: str = "/") -> None:
        self._server = server
        self._websocket = ClientProtocol(parse_uri(f"ws://{server}{path}"), max_size=MAX_MESSAGE)
        self._transport: asyncio.Transport | None = None
        loop = asyncio.get_running_loop()
        self.greeting: asyncio.Future[str] = loop.create_future()  # empty if the session failed
        self.lost: asyncio.Future[None] = loop.create_future()

    async def begin(self) -> str:
        """Connect; return the pool that serves the session, or an empty string if it failed."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await asyncio.get_running_loop().create_connection(lambda: self, *self._server)
                return await self.greeting
        except OSError:  # refused, reset, or timed out
            return ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Request a WebSocket session."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._websocket.send_request(self._websocket.connect())
        self._flush()

    def data_received(self, data: bytes) -> None:
        """Read the greeting."""
        self._websocket.receive_data(data)
        for event in self._websocket.events_received():
            if isinstance(event, Frame):
                self._greet(bytes(event.data).decode(errors="replace"))
        self._flush()

    def eof_received(self) -> None:
        """Handle the end of the pool's data."""
        self._websocket.receive_eof()
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the session. Without a greeting it has failed."""
        self._greet("")
        self.lost.set_result(None)

    def close(self) -> bool:
        """Send a close frame; the pool then closes the connection. Return False if the session was over before."""
        if self._websocket.state is not State.OPEN:
            return False
        self._websocket.send_close(CloseCode.NORMAL_CLOSURE)
        self._flush()
        return True

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def _greet(self, pool: str) -> None:
        if not self.greeting.done():
            self.greeting.set_result(pool)

    def _flush(self) -> None:
        assert self._transport is not None
        for data in self._websocket.data_to_send():
            if data:
                self._transport.write(data)
            else:
                self._transport.close()


class Traffic:
    """Sessions in progress: the open ones of each pool, and the numbers of started and failed ones.

    `ended` is called with every session that has ended.
    """

    def __init__(self, gateways: Sequence[Address], *, seed: int, ended: Callable[[Session], None]) -> None:
        self.open: Counter[str] = Counter()
        self.started = 0
        self.failed = 0
        self._gateways = gateways
        self._choose = random.Random(seed).choice
        self._ended = ended
        self._beginning: float | None = None

    @property
    def now(self) -> float:
        """Seconds since the beginning, 0 before it."""
        return 0.0 if self._beginning is None else asyncio.get_running_loop().time() - self._beginning

    async def run(self, visits: Iterable[Visit]) -> None:
        """Start every visit at its time, through a random gateway. Return when all have ended."""
        self._beginning = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as sessions:
            for visit in visits:
                if visit.start > self.now:
                    await asyncio.sleep(visit.start - self.now)
                sessions.create_task(self._hold(visit, self._choose(self._gateways)))

    async def _hold(self, visit: Visit, gateway: Address) -> None:
        """Run one session. It closes when the visit should end, however late it began."""
        session = ClientSession(gateway)
        self.started += 1
        try:
            pool = await session.begin()
            start = self.now
            whole = bool(pool) and await self._stay(session, pool, visit.start + visit.stay)
            self.failed += not whole
            self._ended(Session(pool if whole else "", start, self.now))
            await asyncio.wait([session.lost], timeout=TIMEOUT_S if whole else 0)
        finally:
            session.abort()

    async def _stay(self, session: ClientSession, pool: str, until: float) -> bool:
        """Keep the session open until then and close it. Return False if it broke before."""
        self.open[pool] += 1
        try:
            await asyncio.wait([session.lost], timeout=max(until - self.now, 0))
            return session.close()
        finally:
            self.open[pool] -= 1


async def drive(visits: Iterable[Visit], gateways: Sequence[Address], *, seed: int = 1) -> list[Session]:
    """Run all visits and return the sessions in the order in which they ended."""
    sessions: list[Session] = []
    await Traffic(gateways, seed=seed, ended=sessions.append).run(visits)
    return sessions
