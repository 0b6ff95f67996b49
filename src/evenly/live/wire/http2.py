"""Just enough of HTTP/2 (RFC 9113) to serve gRPC streams: connections, streams, flow control.

A session costs one stream of a few small messages, so the cost of a stream decides how many sessions a picker can
start. Here it is less than a tenth of what `grpc.aio` takes (docs/decisions/0011).

What must be here: the rules of the wire. What must not: any knowledge of what the messages mean.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from time import perf_counter

from evenly.live.wire.frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    LARGEST_WINDOW,
    MAX_FRAME,
    NO_STREAM,
    OK,
    PADDED,
    PING,
    PREFACE,
    PUSH_PROMISE,
    RST_STREAM,
    SETTING,
    SETTINGS,
    UNIMPLEMENTED,
    WINDOW_UPDATE,
    WITH_PRIORITY,
    WORD,
    BrokenRuleError,
    Code,
    frame,
    unpadded,
)
from evenly.live.wire.header_blocks import MAX_HEADER_BLOCK, Fields, HeaderBlocks
from evenly.live.wire.outbox import Outbox
from evenly.live.wire.streams import Handler, Stream

MAX_STREAMS = 10**6
_STREAM_WINDOW = 2**20  # bytes that a peer may send on a stream before we grant more
_CONNECTION_WINDOW = 2**30
_GREETING = 10.0  # seconds in which a peer says who it is
_KEEPALIVE = {
    "TCP_KEEPIDLE": 10,
    "TCP_KEEPINTVL": 5,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": 30_000,
}  # s, s, tries, ms


Route = Callable[[Stream, Fields], Handler | None]  # from a request's fields; None for one that we do not serve


class Connection(asyncio.Protocol):
    """A peer's connection: its streams, and what goes out to it."""

    def __init__(self, route: Route, *, welcome: bool = True) -> None:
        self._route = route
        self._welcome = welcome
        self._streams: dict[bytes, Stream] = {}
        self._last = 0  # the highest stream that the peer opened
        self._rest = b""
        self._greeted = False
        self._block: tuple[bytes, int, bytes] | None = None  # a header block that goes on in the next frame
        self._blocks = HeaderBlocks()
        self._received = 0
        self._outbox = Outbox()
        self.heard = 0.0  # when the last bytes came, by the performance counter

    # --- the transport's events -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A peer connects: tell it our limits."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if not self._welcome:
            transport.abort()
            return
        _keep_alive(transport.get_extra_info("socket"))
        asyncio.get_running_loop().call_later(_GREETING, self._expect_greeting)
        settings = (
            SETTING.pack(3, MAX_STREAMS) + SETTING.pack(4, _STREAM_WINDOW) + SETTING.pack(6, MAX_HEADER_BLOCK)
        )
        self._outbox.ready.append(frame(SETTINGS, 0, NO_STREAM, settings))
        self._outbox.ready.append(frame(WINDOW_UPDATE, 0, NO_STREAM, WORD.pack(_CONNECTION_WINDOW)))
        self.flush()

    def data_received(self, data: bytes) -> None:
        """Act on what came, and send the answers together."""
        self.heard = perf_counter()
        try:
            self._rest = self._consume(self._rest + data if self._rest else data)
        except BrokenRuleError as error:
            self._outbox.ready.append(self._goodbye(error.code))
            self.flush()
            self.close()
        else:
            self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """The peer is gone, and with it all its streams."""
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            stream.end()

    def _expect_greeting(self) -> None:
        if not self._greeted:
            self.close()

    def pause_writing(self) -> None:
        """Who does not read our answers gets no more of them."""
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """It reads again."""
        self._transport.resume_reading()

    @property
    def peer(self) -> str:
        """The host at the other end."""
        return str((self._transport.get_extra_info("peername") or ("",))[0])

    # --- what goes out --------------------------------------------------------------------------------------

    def enqueue(self, stream: Stream, item: bytes | int) -> None:
        """Send an answer, or the trailers with a status, once the windows allow."""
        self._outbox.send(stream, item)

    def flush(self) -> None:
        """Hand to the transport what has gathered."""
        if self._outbox.ready:
            self._transport.write(b"".join(self._outbox.ready))
            self._outbox.ready.clear()

    def abort(self) -> None:
        """End the connection at once, whether or not the peer reads."""
        self._transport.abort()

    def close(self) -> None:
        """End the connection, and with it its streams."""
        self._transport.close()

    def _goodbye(self, code: Code) -> bytes:
        return frame(GOAWAY, 0, NO_STREAM, WORD.pack(self._last) + WORD.pack(code))

    # --- what comes in --------------------------------------------------------------------------------------

    def _consume(self, buffer: bytes) -> bytes:
        """Act on all whole frames, and return the rest."""
        at, end = 0, len(buffer)
        if not self._greeted:
            if end < len(PREFACE):
                return buffer
            if not buffer.startswith(PREFACE):
                raise BrokenRuleError(Code.PROTOCOL_ERROR)
            self._greeted, at = True, len(PREFACE)
        while end - at >= 9:
            word = WORD.unpack_from(buffer, at)[0]
            length, kind = word >> 8, word & 0xFF
            if length > MAX_FRAME:
                raise BrokenRuleError(Code.FRAME_SIZE_ERROR)
            after = at + 9 + length
            if after > end:
                break
            self._frame(kind, buffer[at + 4], buffer[at + 5 : at + 9], buffer[at + 9 : after])
            at = after
        return buffer[at:]

    def _frame(self, kind: int, flags: int, name: bytes, payload: bytes) -> None:
        if self._block is not None and kind != CONTINUATION:
            raise BrokenRuleError(Code.PROTOCOL_ERROR)
        if kind == DATA:
            self._data(flags, name, payload)
        elif kind == HEADERS:
            self._headers(flags, name, payload)
        elif kind == CONTINUATION:
            self._continuation(flags, name, payload)
        elif kind == RST_STREAM:
            self._close(name)
        elif kind == WINDOW_UPDATE:
            self._grow(name, payload)
        elif kind == SETTINGS:
            self._settings(flags, payload)
        elif kind == PING:
            self._ping(flags, payload)
        elif kind == PUSH_PROMISE:
            raise BrokenRuleError(Code.PROTOCOL_ERROR)

    def _data(self, flags: int, name: bytes, payload: bytes) -> None:
        self._received += len(payload)
        if self._received > _STREAM_WINDOW:
            self._outbox.ready.append(frame(WINDOW_UPDATE, 0, NO_STREAM, WORD.pack(self._received)))
            self._received = 0
        stream = self._streams.get(name)
        if stream is None:  # it ended on our side
            return
        stream.received += len(payload)
        if stream.received > _STREAM_WINDOW // 2:
            self._outbox.ready.append(frame(WINDOW_UPDATE, 0, name, WORD.pack(stream.received)))
            stream.received = 0
        if flags & PADDED:
            payload = unpadded(payload)
        if payload:
            stream.take(payload)
        if flags & END_STREAM:
            self._half_close(stream)

    def _headers(self, flags: int, name: bytes, payload: bytes) -> None:
        if flags & PADDED:
            payload = unpadded(payload)
        if flags & WITH_PRIORITY:
            payload = payload[5:]
        if flags & END_HEADERS:
            self._open(flags, name, payload)
        else:
            self._block = (name, flags, payload)

    def _continuation(self, flags: int, name: bytes, payload: bytes) -> None:
        if self._block is None or self._block[0] != name:
            raise BrokenRuleError(Code.PROTOCOL_ERROR)
        _, first_flags, block = self._block
        block += payload
        if len(block) > MAX_HEADER_BLOCK:
            raise BrokenRuleError(Code.ENHANCE_YOUR_CALM)
        self._block = (name, first_flags, block)
        if flags & END_HEADERS:
            self._block = None
            self._open(first_flags, name, block)

    def _open(self, flags: int, name: bytes, block: bytes) -> None:
        fields = self._blocks.fields(block)
        stream = self._streams.get(name)
        if stream is not None:  # the peer's trailers
            self._half_close(stream)
            return
        number = WORD.unpack(name)[0]
        if number % 2 == 0 or number <= self._last:
            raise BrokenRuleError(Code.PROTOCOL_ERROR)
        self._last = number
        if len(self._streams) >= MAX_STREAMS:
            self._outbox.ready.append(frame(RST_STREAM, 0, name, WORD.pack(Code.REFUSED_STREAM)))
            return
        stream = Stream(self, name, self._outbox.first_window)
        stream.handler = self._route(stream, fields)
        if stream.handler is None:
            self.enqueue(stream, UNIMPLEMENTED)
            return
        self._streams[name] = stream
        if flags & END_STREAM:
            self._half_close(stream)

    def _half_close(self, stream: Stream) -> None:
        """The peer is done, and so are we."""
        del self._streams[stream.name]
        stream.end()
        self.enqueue(stream, OK)

    def _close(self, name: bytes) -> None:
        """The peer gave a stream up, perhaps one that it had half closed and that waits for its window."""
        self._outbox.drop(name)
        stream = self._streams.pop(name, None)
        if stream is not None:
            stream.end()

    def _grow(self, name: bytes, payload: bytes) -> None:
        if len(payload) != 4:
            raise BrokenRuleError(Code.FRAME_SIZE_ERROR)
        more = WORD.unpack(payload)[0] & LARGEST_WINDOW
        self._outbox.grow(name, more, self._streams.get(name))

    def _ping(self, flags: int, payload: bytes) -> None:
        if len(payload) != 8:
            raise BrokenRuleError(Code.FRAME_SIZE_ERROR)
        if not flags & ACK:
            self._outbox.ready.append(frame(PING, ACK, NO_STREAM, payload))

    def _settings(self, flags: int, payload: bytes) -> None:
        if len(payload) % SETTING.size:
            raise BrokenRuleError(Code.FRAME_SIZE_ERROR)
        if flags & ACK:
            return
        window = dict(SETTING.iter_unpack(payload)).get(4)  # the first one of each stream
        if window is not None:
            if window > LARGEST_WINDOW:
                raise BrokenRuleError(Code.FLOW_CONTROL_ERROR)
            self._outbox.resize(window, self._streams)
        self._outbox.ready.append(frame(SETTINGS, ACK, NO_STREAM, b""))


def _keep_alive(sock: socket.socket) -> None:
    """A peer whose machine vanished says nothing: find that out within half a minute."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):  # not on every system
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
