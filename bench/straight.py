"""A client that calls a picker as Envoy does, but without Envoy: as fast as possible, or at a constant rate."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable

from bench.processes import HOST
from evenly.live.addresses import Address
from evenly.live.envoy import names
from evenly.live.envoy.ext_proc import PATH
from evenly.live.wire import frames
from evenly.live.wire.protobuf import field, struct

AT_ONCE = 64  # open sessions in a flood, the same number as with Envoy


class Sessions(asyncio.Protocol):
    """Sessions opened directly at a picker, with Envoy's messages: headers, answer, headers, answer, reset."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.again = False  # if True, another session starts when one ends
        self._turns: dict[bytes, float] = {}
        self._next = 1
        self._rest = b""
        self._served: dict[bytes, bytes] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the preface, with a flow-control window that fits all answers."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        room = frames.frame(frames.WINDOW_UPDATE, 0, frames.NO_STREAM, frames.WORD.pack(2**30))
        transport.write(frames.PREFACE + frames.frame(frames.SETTINGS, 0, frames.NO_STREAM, b"") + room)

    def send(self) -> None:
        """Start a session."""
        name = frames.WORD.pack(self._next)
        self._next += 2
        self._turns[name] = time.perf_counter()
        opening = frames.frame(frames.HEADERS, frames.END_HEADERS, name, _OPENING)
        self._transport.write(opening + frames.frame(frames.DATA, 0, name, _REQUEST))

    def data_received(self, data: bytes) -> None:
        """Respond to the answers."""
        data, at = self._rest + data, 0
        out = []
        while len(data) - at >= 9:
            after = at + 9 + (frames.WORD.unpack_from(data, at)[0] >> 8)
            if after > len(data):
                break
            if data[at + 3] == frames.DATA:
                out.append(self._answered(data[at + 5 : at + 9], data[at + 9 : after]))
            at = after
        self._rest = data[at:]
        self._transport.write(b"".join(out))

    def _answered(self, name: bytes, answer: bytes) -> bytes:
        turn = self._turns.pop(name, None)
        if turn is None:  # the second answer: the session is over
            if self.again:
                self.send()
            return frames.frame(frames.RST_STREAM, 0, name, frames.WORD.pack(2))
        self.times.append(time.perf_counter() - turn)
        pool = answer[answer.rindex(HOST.encode()) :]
        if pool not in self._served:
            self._served[pool] = _response(pool.decode())
        return frames.frame(frames.DATA, 0, name, self._served[pool])


def _literal(name: bytes, value: bytes) -> bytes:
    return b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value


def _response(pool: str) -> bytes:
    """Return the headers of a response that the pool served."""
    told = struct(dict.fromkeys((names.PICKED, names.SERVED), pool))
    namespace = field(1, names.NAMESPACE) + field(2, told)
    return frames.framed(field(3, field(1, b"")) + field(8, field(1, namespace)))


_OPENING = b"\x83\x86" + b"".join(  # POST, http
    _literal(name, value)
    for name, value in (
        (b":path", PATH),
        (b":authority", b"picker"),
        (b"te", b"trailers"),
        (b"content-type", b"application/grpc"),
    )
)
_REQUEST = frames.framed(field(2, field(1, field(1, field(1, ":method") + field(3, "GET"))) + field(3, 1)))


async def flood(picker: Address, seconds: float) -> int:
    """Return the number of sessions that a picker serves to one client in `seconds`, `AT_ONCE` at a time."""
    loop = asyncio.get_running_loop()
    transport, sessions = await loop.create_connection(Sessions, picker.host, picker.port)
    sessions.again = True
    for _ in range(AT_ONCE):
        sessions.send()
    await asyncio.sleep(seconds)
    transport.close()
    return len(sessions.times)


async def answer_times(picker: Address, pace: float, seconds: float) -> list[float]:
    """Return the times that the picker takes to answer, at `pace` sessions per second."""
    loop = asyncio.get_running_loop()
    transport, sessions = await loop.create_connection(Sessions, picker.host, picker.port)
    times = await at_pace(pace, seconds, sessions.send, sessions.times)
    transport.close()
    return times


async def at_pace(pace: float, seconds: float, send: Callable[[], None], times: list[float]) -> list[float]:
    """Send `pace` sessions per second, whatever comes back: a server that stalls does not slow its clients down.

    Return the response times, which are collected in `times`, with `inf` for each session without an answer.
    """
    began, sent = time.perf_counter(), 0
    while sent < int(pace * seconds):
        due = int((time.perf_counter() - began) * pace) + 1
        for _ in range(sent, due):
            send()
        sent = due
        await asyncio.sleep(began + sent / pace - time.perf_counter())
    deadline = time.perf_counter() + 5
    while len(times) < sent and time.perf_counter() < deadline:
        await asyncio.sleep(0.01)
    return times + [math.inf] * (sent - len(times))
