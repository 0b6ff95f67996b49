"""The innocents: WebSocket sessions that echo now and then. Each that ends is recorded and replaced."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from evenly.live.addresses import Address

ECHO_EVERY_S = 2.0
ECHO_TIMEOUT_S = 20.0  # longer than anything that a step freezes
BEGIN_TIMEOUT_S = 10.0
_TICK_S = 0.05
_RETRY_S = 0.2
_AT_ONCE = 25  # new sessions that wait for their greeting
_HELLO = (
    b"GET /session HTTP/1.1\r\nhost: pools\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
_PING = b"\x81\x84\0\0\0\0ping"
_CLOSE = bytes([0x88, 0x80, 0, 0, 0, 0])


@dataclass(frozen=True)
class Loss:
    """An innocent that was lost, or that was refused if it has no pool."""

    at: float
    pool: str
    reason: str


class Innocent(asyncio.Protocol):
    """One session. `pool` is known after the greeting."""

    def __init__(self, ended: Callable[[Innocent, str], None]) -> None:
        self.pool = ""
        self.pinged: float | None = None  # when the unanswered message was sent
        self.greeting: asyncio.Future[str] = asyncio.get_running_loop().create_future()  # the reason if it failed
        self.echoes = 0
        self._ended = ended
        self._over = False
        self._upgraded = False
        self._received = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Request the session."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(_HELLO)

    def data_received(self, data: bytes) -> None:
        """Read the response, then short messages."""
        self._received += data
        if not self._upgraded:
            if b"\r\n\r\n" not in self._received:
                return
            head, self._received = self._received.split(b"\r\n\r\n", 1)
            if not head.startswith(b"HTTP/1.1 101 "):
                self._end(head.decode("latin-1").split("\r\n")[0])
                return
            self._upgraded = True
        while len(self._received) >= 2 and len(self._received) >= (end := 2 + self._received[1]):
            kind, message = self._received[0], self._received[2:end]
            self._received = self._received[end:]
            self._message(kind, message)

    def _message(self, kind: int, message: bytes) -> None:
        if kind != 0x81:
            self._end("closed by a frame of the server")
        elif not self.pool:
            self.pool = message.decode(errors="replace")
            if not self.greeting.done():
                self.greeting.set_result("")
        elif message == b"ping":
            self.pinged = None
            self.echoes += 1
        else:
            self._end(f"a wrong echo: {message!r}")

    def connection_lost(self, exc: Exception | None) -> None:
        """The session is over."""
        self._end("closed" if exc is None else str(exc))

    def ping(self) -> None:
        """Send a message, unless one is unanswered: for too long, the session is lost."""
        if self.pinged is None:
            assert self._transport is not None
            self.pinged = time.monotonic()
            self._transport.write(_PING)
        elif time.monotonic() - self.pinged > ECHO_TIMEOUT_S:
            self._end(f"no echo within {ECHO_TIMEOUT_S:g} s")

    def leave(self) -> None:
        """End the session on purpose, with a close frame."""
        self._over = True
        if self._transport is not None:
            self._transport.write(_CLOSE)
            self._transport.close()

    def vanish(self) -> None:
        """End the session on purpose, at once."""
        self._over = True
        if self._transport is not None:
            self._transport.abort()

    def _end(self, reason: str) -> None:
        if self._over:
            return
        self._over = True
        if not self.greeting.done():
            self.greeting.set_result(reason)
        if self._transport is not None:
            self._transport.abort()
        self._ended(self, reason)


async def begin(gateway: Address, ended: Callable[[Innocent, str], None]) -> tuple[Innocent, str]:
    """Open a session. Return it, and the reason if it did not begin."""
    innocent = Innocent(ended)
    try:
        async with asyncio.timeout(BEGIN_TIMEOUT_S):
            await asyncio.get_running_loop().create_connection(lambda: innocent, *gateway)
            return innocent, await innocent.greeting
    except TimeoutError:
        reason = f"no session within {BEGIN_TIMEOUT_S:g} s"
    except OSError as error:
        reason = error.strerror or str(error)
    innocent.vanish()
    return innocent, reason


class Crowd:
    """A constant number of innocents. `lost` and `refused` say what went wrong and when."""

    def __init__(self, gateway: Address, size: int) -> None:
        self.size = size
        self.open: set[Innocent] = set()
        self.lost: list[Loss] = []
        self.refused: list[Loss] = []
        self.served = 0
        self._gateway = gateway
        self._opening = 0

    async def run(self) -> None:
        """Keep the crowd at its size and let every innocent echo, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(_AT_ONCE):
                tasks.create_task(self._replace())
            tasks.create_task(self._echo())

    async def wait(self, seconds: float) -> bool:
        """Wait until all innocents are open. Return False if some are not after `seconds`."""
        deadline = time.monotonic() + seconds
        while len(self.open) < self.size and time.monotonic() < deadline:
            await asyncio.sleep(_TICK_S)
        return len(self.open) >= self.size

    async def _replace(self) -> None:
        while True:
            if len(self.open) + self._opening >= self.size:
                await asyncio.sleep(_RETRY_S)
                continue
            self._opening += 1
            try:
                innocent, reason = await begin(self._gateway, self._ended)
            finally:
                self._opening -= 1
            if reason:
                self.refused.append(Loss(time.monotonic(), "", reason))
                await asyncio.sleep(_RETRY_S)
            else:
                self.served += 1
                self.open.add(innocent)

    async def _echo(self) -> None:
        chance = random.Random(0)
        while True:
            await asyncio.sleep(_TICK_S)
            for innocent in tuple(self.open):
                if chance.random() < _TICK_S / ECHO_EVERY_S:
                    innocent.ping()

    def _ended(self, innocent: Innocent, reason: str) -> None:
        if innocent in self.open:
            self.open.discard(innocent)
            self.lost.append(Loss(time.monotonic(), innocent.pool, reason))

    def leave(self) -> None:
        """End all sessions on purpose."""
        for innocent in self.open:
            innocent.vanish()
        self.open.clear()


@asynccontextmanager
async def crowd(gateway: Address, size: int) -> AsyncIterator[Crowd]:
    """Keep innocents open during the block."""
    people = Crowd(gateway, size)
    task = asyncio.create_task(people.run())
    try:
        yield people
    finally:
        task.cancel()
        await asyncio.wait([task])
        people.leave()
        if not task.cancelled():
            task.result()  # it ends by itself only with an error of ours


async def try_once(gateway: Address) -> str:
    """Open a session, let it echo once and close it. Return the reason if that failed."""
    over: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def ended(_: Innocent, reason: str) -> None:
        if not over.done():
            over.set_result(reason)

    innocent, reason = await begin(gateway, ended)
    if reason:
        return reason
    innocent.ping()
    deadline = time.monotonic() + BEGIN_TIMEOUT_S
    while not innocent.echoes and not over.done():
        if time.monotonic() > deadline:
            innocent.vanish()
            return f"no echo within {BEGIN_TIMEOUT_S:g} s"
        await asyncio.sleep(0.01)
    innocent.leave()
    return over.result() if over.done() else ""
