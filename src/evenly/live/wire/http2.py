"""The part of HTTP/2 (RFC 9113) that serves gRPC streams: connections, streams and flow control.

A session costs one stream with a few small messages, so the cost of a stream decides how many sessions a picker
can start per second. Here a stream costs less than a tenth of what `grpc.aio` needs (docs/decisions/0011).

This module handles the protocol only; handlers interpret the messages.
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
    MAX_FRAME,
    MAX_WINDOW,
    NO_STREAM,
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
    Code,
    ProtocolError,
    frame,
    unpadded,
)
from evenly.live.wire.header_blocks import MAX_HEADER_BLOCK, Fields, HeaderBlocks
from evenly.live.wire.outbox import Outbox
from evenly.live.wire.streams import Handler, Stream

MAX_STREAMS = 10**6
_STREAM_WINDOW = 2**20  # bytes that a peer may send on a stream before we extend its window
_CONNECTION_WINDOW = 2**30
_PREFACE_TIMEOUT_S = 10.0  # for a new connection to send the HTTP/2 preface
_KEEPALIVE = {
    "TCP_KEEPIDLE": 10,
    "TCP_KEEPINTVL": 5,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": 30_000,
}  # seconds, seconds, probes, milliseconds


Route = Callable[[Stream, Fields], Handler | None]  # header fields to handler; None for an unknown method


class Connection(asyncio.Protocol):
    """One connection of a peer: its streams and its outgoing frames."""

    def __init__(self, route: Route, *, welcome: bool = True) -> None:
        self._route = route
        self._welcome = welcome
        self._streams: dict[bytes, Stream] = {}
        self._last = 0  # the highest stream identifier that the peer has used
        self._rest = b""
        self._preface_seen = False
        self._block: tuple[bytes, int, bytes] | None = None  # an incomplete header block: stream, flags, bytes
        self._blocks = HeaderBlocks()
        self._received = 0
        self._outbox = Outbox()
        self.last_received = 0.0  # time of the last received bytes, by perf_counter

    # --- events of the transport ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send our limits to a new peer."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if not self._welcome:
            transport.abort()
            return
        _keep_alive(transport.get_extra_info("socket"))
        asyncio.get_running_loop().call_later(_PREFACE_TIMEOUT_S, self._close_if_silent)
        settings = (
            SETTING.pack(3, MAX_STREAMS) + SETTING.pack(4, _STREAM_WINDOW) + SETTING.pack(6, MAX_HEADER_BLOCK)
        )
        self._outbox.ready.append(frame(SETTINGS, 0, NO_STREAM, settings))
        self._outbox.ready.append(frame(WINDOW_UPDATE, 0, NO_STREAM, WORD.pack(_CONNECTION_WINDOW)))
        self.flush()

    def data_received(self, data: bytes) -> None:
        """Handle received bytes, then send all responses in one write."""
        self.last_received = perf_counter()
        try:
            self._rest = self._consume(self._rest + data if self._rest else data)
        except ProtocolError as error:
            self._outbox.ready.append(self._goaway(error.code))
            self.flush()
            self.close()
        else:
            self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """End all streams of a closed connection."""
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            stream.end()

    def _close_if_silent(self) -> None:
        if not self._preface_seen:
            self.close()

    def pause_writing(self) -> None:
        """Stop reading requests from a peer that does not read our responses."""
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Read requests again."""
        self._transport.resume_reading()

    @property
    def peer(self) -> str:
        """The host of the peer."""
        return str((self._transport.get_extra_info("peername") or ("",))[0])

    # --- outgoing -------------------------------------------------------------------------------------------

    def enqueue(self, stream: Stream, item: bytes | int) -> None:
        """Send a message, or trailers with a status, as soon as flow control allows."""
        self._outbox.send(stream, item)

    def flush(self) -> None:
        """Write all frames that are ready to the transport."""
        if self._outbox.ready:
            self._transport.write(b"".join(self._outbox.ready))
            self._outbox.ready.clear()

    def abort(self) -> None:
        """Close the connection at once, without waiting for the peer to read."""
        self._transport.abort()

    def close(self) -> None:
        """Close the connection and its streams."""
        self._transport.close()

    def _goaway(self, code: Code) -> bytes:
        return frame(GOAWAY, 0, NO_STREAM, WORD.pack(self._last) + WORD.pack(code))

    # --- incoming -------------------------------------------------------------------------------------------

    def _consume(self, buffer: bytes) -> bytes:
        """Handle all complete frames and return the remaining bytes."""
        at, end = 0, len(buffer)
        if not self._preface_seen:
            if end < len(PREFACE):
                return buffer
            if not buffer.startswith(PREFACE):
                raise ProtocolError(Code.PROTOCOL_ERROR)
            self._preface_seen, at = True, len(PREFACE)
        while end - at >= 9:
            word = WORD.unpack_from(buffer, at)[0]
            length, kind = word >> 8, word & 0xFF
            if length > MAX_FRAME:
                raise ProtocolError(Code.FRAME_SIZE_ERROR)
            after = at + 9 + length
            if after > end:
                break
            self._frame(kind, buffer[at + 4], buffer[at + 5 : at + 9], buffer[at + 9 : after])
            at = after
        return buffer[at:]

    def _frame(self, kind: int, flags: int, name: bytes, payload: bytes) -> None:
        if self._block is not None and kind != CONTINUATION:
            raise ProtocolError(Code.PROTOCOL_ERROR)
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
            raise ProtocolError(Code.PROTOCOL_ERROR)

    def _data(self, flags: int, name: bytes, payload: bytes) -> None:
        self._received += len(payload)
        if self._received > _STREAM_WINDOW:
            self._outbox.ready.append(frame(WINDOW_UPDATE, 0, NO_STREAM, WORD.pack(self._received)))
            self._received = 0
        stream = self._streams.get(name)
        if stream is None:  # already ended on our side
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
            raise ProtocolError(Code.PROTOCOL_ERROR)
        _, first_flags, block = self._block
        block += payload
        if len(block) > MAX_HEADER_BLOCK:
            raise ProtocolError(Code.ENHANCE_YOUR_CALM)
        self._block = (name, first_flags, block)
        if flags & END_HEADERS:
            self._block = None
            self._open(first_flags, name, block)

    def _open(self, flags: int, name: bytes, block: bytes) -> None:
        fields = self._blocks.fields(block)
        stream = self._streams.get(name)
        if stream is not None:  # trailers of the peer
            self._half_close(stream)
            return
        number = WORD.unpack(name)[0]
        if number % 2 == 0 or number <= self._last:
            raise ProtocolError(Code.PROTOCOL_ERROR)
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
        """End a stream that the peer has finished."""
        del self._streams[stream.name]
        stream.end()
        self.enqueue(stream, stream.status)

    def _close(self, name: bytes) -> None:
        """Drop a stream that the peer reset. It may be half closed and waiting for flow control."""
        self._outbox.drop(name)
        stream = self._streams.pop(name, None)
        if stream is not None:
            stream.end()

    def _grow(self, name: bytes, payload: bytes) -> None:
        if len(payload) != 4:
            raise ProtocolError(Code.FRAME_SIZE_ERROR)
        more = WORD.unpack(payload)[0] & MAX_WINDOW
        self._outbox.grow(name, more, self._streams.get(name))

    def _ping(self, flags: int, payload: bytes) -> None:
        if len(payload) != 8:
            raise ProtocolError(Code.FRAME_SIZE_ERROR)
        if not flags & ACK:
            self._outbox.ready.append(frame(PING, ACK, NO_STREAM, payload))

    def _settings(self, flags: int, payload: bytes) -> None:
        if len(payload) % SETTING.size:
            raise ProtocolError(Code.FRAME_SIZE_ERROR)
        if flags & ACK:
            return
        window = dict(SETTING.iter_unpack(payload)).get(4)  # initial window of a stream
        if window is not None:
            if window > MAX_WINDOW:
                raise ProtocolError(Code.FLOW_CONTROL_ERROR)
            self._outbox.resize(window, self._streams)
        self._outbox.ready.append(frame(SETTINGS, ACK, NO_STREAM, b""))


def _keep_alive(sock: socket.socket) -> None:
    """Detect within 30 seconds that a peer's machine has vanished."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):  # not available on every platform
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
