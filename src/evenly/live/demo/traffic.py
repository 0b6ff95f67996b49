"""WebSocket sessions that begin and end when the visits of a trace say so."""

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
from evenly.live.demo.trace import Visit

MAX_MESSAGE = 2**16
PATIENCE = 10.0  # seconds that a session may take to get its greeting, and again to close


@dataclass(frozen=True, slots=True)
class Session:
    """A session as it went, in seconds since the beginning; its pool is empty if it failed."""

    pool: str
    start: float
    end: float


class ClientSession(asyncio.Protocol):
    """One connection to a gateway; the pool that serves it names itself in its first message."""

    def __init__(self, gateway: Address) -> None:
        self._websocket = ClientProtocol(parse_uri(f"ws://{gateway}/"), max_size=MAX_MESSAGE)
        self._transport: asyncio.Transport | None = None
        loop = asyncio.get_running_loop()
        self.greeting: asyncio.Future[str] = loop.create_future()  # empty if there will be none
        self.lost: asyncio.Future[None] = loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for a session."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._websocket.send_request(self._websocket.connect())
        self._flush()

    def data_received(self, data: bytes) -> None:
        """Take the greeting."""
        self._websocket.receive_data(data)
        for event in self._websocket.events_received():
            if isinstance(event, Frame):
                self._greet(bytes(event.data).decode(errors="replace"))
        self._flush()

    def eof_received(self) -> None:
        """The pool will send nothing more."""
        self._websocket.receive_eof()
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """The session is over, and failed if it was not greeted."""
        self._greet("")
        self.lost.set_result(None)

    def close(self) -> bool:
        """Say goodbye, whereupon the pool closes the connection; False if the session was over before."""
        if self._websocket.state is not State.OPEN:
            return False
        self._websocket.send_close(CloseCode.NORMAL_CLOSURE)
        self._flush()
        return True

    def abort(self) -> None:
        """Be gone at once."""
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
    """Sessions on their way: how many are open at each pool now, and how many began and failed so far."""

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
        """Seconds since the beginning; 0 before."""
        return 0.0 if self._beginning is None else asyncio.get_running_loop().time() - self._beginning

    async def run(self, visits: Iterable[Visit]) -> None:
        """Begin every visit at its time, through a gateway chosen at random, and return when all have ended."""
        self._beginning = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as sessions:
            for visit in visits:
                if visit.start > self.now:
                    await asyncio.sleep(visit.start - self.now)
                sessions.create_task(self._attend(visit, self._choose(self._gateways)))

    async def _attend(self, visit: Visit, gateway: Address) -> None:
        """One session. It closes when the visit should end, however long it took to begin."""
        session = ClientSession(gateway)
        self.started += 1
        try:
            pool = await _begin(session, gateway)
            start = self.now
            whole = bool(pool) and await self._stay(session, pool, visit.start + visit.stay)
            self.failed += not whole
            self._ended(Session(pool if whole else "", start, self.now))
            await asyncio.wait([session.lost], timeout=PATIENCE if whole else 0)
        finally:
            session.abort()

    async def _stay(self, session: ClientSession, pool: str, until: float) -> bool:
        """Keep the session open until then, and close it; False if it broke before."""
        self.open[pool] += 1
        try:
            await asyncio.wait([session.lost], timeout=max(until - self.now, 0))
            return session.close()
        finally:
            self.open[pool] -= 1


async def _begin(session: ClientSession, gateway: Address) -> str:
    """The pool that serves the session; empty if none does."""
    try:
        async with asyncio.timeout(PATIENCE):
            await asyncio.get_running_loop().create_connection(lambda: session, gateway.host, gateway.port)
            return await session.greeting
    except OSError:  # refused, reset, or timed out
        return ""


async def drive(
    visits: Iterable[Visit],
    gateways: Sequence[Address],
    *,
    seed: int = 1,
    progress: Callable[[float], None] | None = None,
) -> list[Session]:
    """Run all visits and return what became of them, in the order in which they ended.

    `progress` hears the time in seconds since the beginning as sessions end.
    """
    sessions: list[Session] = []

    def note(session: Session) -> None:
        sessions.append(session)
        if progress is not None:
            progress(session.end)

    await Traffic(gateways, seed=seed, ended=note).run(visits)
    return sessions
