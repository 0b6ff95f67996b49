"""Just enough of HTTP/2 (RFC 9113) to serve gRPC streams: frames, flow control, header blocks.

A session costs one stream of a few small messages, so the cost of a stream decides how many sessions a picker can
start. Here it is a tenth of what `grpc.aio` takes, most of which goes into a task and two threads for each.

What must be here: the rules of the wire. What must not: any knowledge of what the messages mean.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import IntEnum
from struct import Struct
from typing import Protocol

from hpack import Decoder, HPACKError

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MAX_FRAME = 2**14  # the default, which we leave as it is
MAX_HEADER_BLOCK = 2**16
MAX_MESSAGE = 2**22
MAX_STREAMS = 10**6
_MOST_PATHS = 100  # header blocks remembered
_STREAM_WINDOW = 2**20  # bytes that a peer may send on a stream before we grant more
_CONNECTION_WINDOW = 2**30
_DEFAULT_WINDOW = 2**16 - 1
_LARGEST_WINDOW = 2**31 - 1

_WORD = Struct(">I")
_SETTING = Struct(">HI")


# Types of frames, as plain numbers: comparing with an enum costs as much as parsing.
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)


class Code(IntEnum):
    """Reasons for the end of a stream or a connection."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    FLOW_CONTROL_ERROR = 3
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    COMPRESSION_ERROR = 9
    ENHANCE_YOUR_CALM = 11


_ACK = END_STREAM = 1
_END_HEADERS = 4
_PADDED = 8
_PRIORITY = 32
_NO_STREAM = b"\0\0\0\0"


class Handler(Protocol):
    """What a stream is for."""

    def message(self, message: bytes) -> None:
        """A message came."""

    def ended(self) -> None:
        """No more will come: the peer is done, or gave up, or is gone. Heard once."""


Route = Callable[["Stream", str], Handler | None]  # from the path of a request; None for one that we do not serve


class _Broken(Exception):  # noqa: N818  (a peer's error, not ours)
    """The peer does not keep to the rules; the connection has to end."""

    def __init__(self, code: Code) -> None:
        super().__init__(code.name)
        self.code = code


def frame(kind: int, flags: int, name: bytes, payload: bytes) -> bytes:
    """A frame of the stream of this name, which is its number as four bytes."""
    return _WORD.pack(len(payload) << 8 | kind) + bytes((flags,)) + name + payload


def framed(message: bytes) -> bytes:
    """A message as gRPC sends it: uncompressed, its length in front."""
    return b"\0" + _WORD.pack(len(message)) + message


def _literal(name: bytes, value: bytes) -> bytes:
    """A header field that enters no table (RFC 7541, Sec. 6.2.2)."""
    return b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value


_STATUS_200 = b"\x88"  # field 8 of the static table
_OPENING = _STATUS_200 + _literal(b"content-type", b"application/grpc")


def _trailers(status: int) -> bytes:
    return _literal(b"grpc-status", str(status).encode())


OK, UNIMPLEMENTED = 0, 12


class Stream:
    """One call of a peer's. Answers go out as far as the peer's windows allow, in order."""

    __slots__ = ("_opened", "_partial", "connection", "handler", "name", "received", "window")

    def __init__(self, connection: Connection, name: bytes, window: int) -> None:
        self.connection = connection
        self.name = name
        self.window = window
        self.handler: Handler | None = None
        self.received = 0
        self._opened = False
        self._partial = b""

    def send(self, answer: bytes) -> None:
        """Send a message, framed already: the same answer goes to many."""
        self.connection.enqueue(self, answer)

    def opening(self) -> bytes:
        """The headers, before the first message."""
        if self._opened:
            return b""
        self._opened = True
        return frame(HEADERS, _END_HEADERS, self.name, _OPENING)

    def closing(self, status: int) -> bytes:
        """The trailers, which bring the headers along if there was no message."""
        head = b"" if self._opened else _OPENING
        return frame(HEADERS, _END_HEADERS | END_STREAM, self.name, head + _trailers(status))

    def take(self, data: bytes) -> None:
        """Find the messages in what came."""
        if self._partial:
            data = self._partial + data
        while len(data) >= 5:
            end = 5 + _WORD.unpack_from(data, 1)[0]
            if data[0] != 0 or end > MAX_MESSAGE:  # we asked for no compression
                raise _Broken(Code.PROTOCOL_ERROR)
            if len(data) < end:
                break
            assert self.handler is not None
            self.handler.message(data[5:end])
            data = data[end:]
        self._partial = data


class Connection(asyncio.Protocol):
    """A peer's connection: its streams, and what goes out to it."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self._streams: dict[bytes, Stream] = {}
        self._last = 0  # the highest stream that the peer opened
        self._rest = b""
        self._greeted = False
        self._block: tuple[bytes, int, bytes] | None = None  # a header block that goes on in the next frame
        self._decoder = Decoder(max_header_list_size=MAX_HEADER_BLOCK)
        self._paths: dict[bytes, str] = {}  # by header block
        self._window = _DEFAULT_WINDOW
        self._stream_window = _DEFAULT_WINDOW
        self._received = 0
        self._out: list[bytes] = []
        self._blocked: list[tuple[Stream, bytes | int]] = []
        self._draining = False

    # --- the transport's events -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A peer connects: tell it our limits."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        settings = (
            _SETTING.pack(3, MAX_STREAMS) + _SETTING.pack(4, _STREAM_WINDOW) + _SETTING.pack(6, MAX_HEADER_BLOCK)
        )
        self._out.append(frame(SETTINGS, 0, _NO_STREAM, settings))
        self._out.append(frame(WINDOW_UPDATE, 0, _NO_STREAM, _WORD.pack(_CONNECTION_WINDOW)))
        self.flush()

    def data_received(self, data: bytes) -> None:
        """Act on what came, and send the answers together."""
        try:
            self._rest = self._consume(self._rest + data if self._rest else data)
        except _Broken as error:
            self._out.append(self._goodbye(error.code))
            self.flush()
            self.close()
        else:
            self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """The peer is gone, and with it all its streams."""
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            _handler(stream).ended()

    def pause_writing(self) -> None:
        """Who does not read our answers gets no more of them."""
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """It reads again."""
        self._transport.resume_reading()

    # --- what goes out --------------------------------------------------------------------------------------

    def enqueue(self, stream: Stream, item: bytes | int) -> None:
        """Send an answer, or the trailers with a status, once the windows allow."""
        if self._blocked or not self._pass(stream, item):
            self._blocked.append((stream, item))

    def flush(self) -> None:
        """Hand to the transport what has gathered."""
        if self._out:
            self._transport.write(b"".join(self._out))
            self._out.clear()

    def drain(self) -> None:
        """Ask the peer for no new streams here; those that are open stay."""
        self._draining = True
        self._out.append(self._goodbye(Code.NO_ERROR))
        self.flush()

    def close(self) -> None:
        """End the connection, and with it its streams."""
        self._transport.close()

    def _pass(self, stream: Stream, item: bytes | int) -> bool:
        if isinstance(item, int):
            self._out.append(stream.closing(item))
            return True
        size = len(item)
        if size > stream.window or size > self._window:
            return False
        stream.window -= size
        self._window -= size
        self._out.append(stream.opening() + frame(DATA, 0, stream.name, item))
        return True

    def _pass_blocked(self) -> None:
        """Windows grew: let pass what can, each stream's answers in their order."""
        waiting, self._blocked = self._blocked, []
        stuck: set[bytes] = set()
        for stream, item in waiting:
            if stream.name in stuck or not self._pass(stream, item):
                stuck.add(stream.name)
                self._blocked.append((stream, item))

    def _goodbye(self, code: Code) -> bytes:
        return frame(GOAWAY, 0, _NO_STREAM, _WORD.pack(self._last) + _WORD.pack(code))

    # --- what comes in --------------------------------------------------------------------------------------

    def _consume(self, buffer: bytes) -> bytes:
        """Act on all whole frames, and return the rest."""
        at, end = 0, len(buffer)
        if not self._greeted:
            if end < len(PREFACE):
                return buffer
            if not buffer.startswith(PREFACE):
                raise _Broken(Code.PROTOCOL_ERROR)
            self._greeted, at = True, len(PREFACE)
        while end - at >= 9:
            word = _WORD.unpack_from(buffer, at)[0]
            length, kind = word >> 8, word & 0xFF
            if length > MAX_FRAME:
                raise _Broken(Code.FRAME_SIZE_ERROR)
            after = at + 9 + length
            if after > end:
                break
            self._frame(kind, buffer[at + 4], buffer[at + 5 : at + 9], buffer[at + 9 : after])
            at = after
        return buffer[at:]

    def _frame(self, kind: int, flags: int, name: bytes, payload: bytes) -> None:
        if self._block is not None and kind != CONTINUATION:
            raise _Broken(Code.PROTOCOL_ERROR)
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
            raise _Broken(Code.PROTOCOL_ERROR)

    def _data(self, flags: int, name: bytes, payload: bytes) -> None:
        self._received += len(payload)
        if self._received > _STREAM_WINDOW:
            self._out.append(frame(WINDOW_UPDATE, 0, _NO_STREAM, _WORD.pack(self._received)))
            self._received = 0
        stream = self._streams.get(name)
        if stream is None:  # it ended on our side
            return
        stream.received += len(payload)
        if stream.received > _STREAM_WINDOW // 2:
            self._out.append(frame(WINDOW_UPDATE, 0, name, _WORD.pack(stream.received)))
            stream.received = 0
        if flags & _PADDED:
            payload = _unpadded(payload)
        if payload:
            stream.take(payload)
        if flags & END_STREAM:
            self._half_close(stream)

    def _headers(self, flags: int, name: bytes, payload: bytes) -> None:
        if flags & _PADDED:
            payload = _unpadded(payload)
        if flags & _PRIORITY:
            payload = payload[5:]
        if flags & _END_HEADERS:
            self._open(flags, name, payload)
        else:
            self._block = (name, flags, payload)

    def _continuation(self, flags: int, name: bytes, payload: bytes) -> None:
        if self._block is None or self._block[0] != name:
            raise _Broken(Code.PROTOCOL_ERROR)
        _, first_flags, block = self._block
        block += payload
        if len(block) > MAX_HEADER_BLOCK:
            raise _Broken(Code.ENHANCE_YOUR_CALM)
        self._block = (name, first_flags, block)
        if flags & _END_HEADERS:
            self._block = None
            self._open(first_flags, name, block)

    def _open(self, flags: int, name: bytes, block: bytes) -> None:
        path = self._paths.get(block) or self._decoded(block)
        stream = self._streams.get(name)
        if stream is not None:  # the peer's trailers
            self._half_close(stream)
            return
        number = _WORD.unpack(name)[0]
        if number % 2 == 0 or number <= self._last:
            raise _Broken(Code.PROTOCOL_ERROR)
        self._last = number
        if self._draining or len(self._streams) >= MAX_STREAMS:
            self._out.append(frame(RST_STREAM, 0, name, _WORD.pack(Code.REFUSED_STREAM)))
            return
        stream = Stream(self, name, self._stream_window)
        stream.handler = self._route(stream, path)
        if stream.handler is None:
            self.enqueue(stream, UNIMPLEMENTED)
            return
        self._streams[name] = stream
        if flags & END_STREAM:
            self._half_close(stream)

    def _decoded(self, block: bytes) -> str:
        """The path. A block that left the decoder's table alone means the same until another one changes it."""
        table = self._decoder.header_table
        entries = table.dynamic_entries  # new ones come first, old ones go last
        first, count, size = entries[0] if entries else None, len(entries), table.maxsize
        try:
            fields = dict(self._decoder.decode(block, raw=True))
        except HPACKError:
            raise _Broken(Code.COMPRESSION_ERROR) from None
        path = fields.get(b":path", b"").decode("latin-1")
        unchanged = (entries[0] if entries else None) is first and (len(entries), table.maxsize) == (count, size)
        if unchanged and len(self._paths) < _MOST_PATHS:
            self._paths[block] = path
        else:
            self._paths.clear()
        return path

    def _half_close(self, stream: Stream) -> None:
        """The peer is done, and so are we."""
        del self._streams[stream.name]
        _handler(stream).ended()
        self.enqueue(stream, OK)

    def _close(self, name: bytes) -> None:
        """The peer gave a stream up, perhaps one that it had half closed and that waits for its window."""
        if self._blocked:
            self._blocked = [entry for entry in self._blocked if entry[0].name != name]
        stream = self._streams.pop(name, None)
        if stream is not None:
            _handler(stream).ended()

    def _grow(self, name: bytes, payload: bytes) -> None:
        if len(payload) != 4:
            raise _Broken(Code.FRAME_SIZE_ERROR)
        more = _WORD.unpack(payload)[0] & _LARGEST_WINDOW
        if name == _NO_STREAM:
            self._window += more
            if not more or self._window > _LARGEST_WINDOW:
                raise _Broken(Code.FLOW_CONTROL_ERROR)
        elif name in self._streams:
            self._streams[name].window += more
        if self._blocked:
            self._pass_blocked()

    def _ping(self, flags: int, payload: bytes) -> None:
        if len(payload) != 8:
            raise _Broken(Code.FRAME_SIZE_ERROR)
        if not flags & _ACK:
            self._out.append(frame(PING, _ACK, _NO_STREAM, payload))

    def _settings(self, flags: int, payload: bytes) -> None:
        if len(payload) % _SETTING.size:
            raise _Broken(Code.FRAME_SIZE_ERROR)
        if flags & _ACK:
            return
        for identifier, value in _SETTING.iter_unpack(payload):
            if identifier == 4:  # the first window of each stream, those that are open included
                if value > _LARGEST_WINDOW:
                    raise _Broken(Code.FLOW_CONTROL_ERROR)
                for stream in self._streams.values():
                    stream.window += value - self._stream_window
                self._stream_window = value
        self._out.append(frame(SETTINGS, _ACK, _NO_STREAM, b""))
        self._pass_blocked()


def _handler(stream: Stream) -> Handler:
    assert stream.handler is not None
    return stream.handler


def _unpadded(payload: bytes) -> bytes:
    if not payload or payload[0] >= len(payload):
        raise _Broken(Code.PROTOCOL_ERROR)
    return payload[1 : len(payload) - payload[0]]
