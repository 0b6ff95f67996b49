"""HTTP/2 frames (RFC 9113) and gRPC messages as bytes.

This module only encodes and decodes; `http2.py` acts on frames.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MAX_FRAME = 2**14  # bytes; the default of HTTP/2
DEFAULT_WINDOW = 2**16 - 1
MAX_WINDOW = 2**31 - 1
NO_STREAM = b"\0\0\0\0"  # the stream identifier that stands for the whole connection

WORD = Struct(">I")
SETTING = Struct(">HI")

# Frame types are plain integers: a comparison with an enum member costs as much as parsing the frame.
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)

# Flags. 1 means ACK or END_STREAM, depending on the frame type.
ACK = END_STREAM = 1
END_HEADERS, PADDED, WITH_PRIORITY = 4, 8, 32

# gRPC status codes.
OK, NOT_FOUND, UNIMPLEMENTED = 0, 5, 12


class Code(IntEnum):
    """HTTP/2 error codes: the reason why a stream or a connection ends."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    FLOW_CONTROL_ERROR = 3
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    COMPRESSION_ERROR = 9
    ENHANCE_YOUR_CALM = 11


class ProtocolError(Exception):
    """The peer violated the protocol. The connection must be closed with `code`."""

    def __init__(self, code: Code) -> None:
        super().__init__(code.name)
        self.code = code


def frame(kind: int, flags: int, name: bytes, payload: bytes) -> bytes:
    """Encode a frame. `name` is the stream identifier as four bytes."""
    return WORD.pack(len(payload) << 8 | kind) + bytes((flags,)) + name + payload


def framed(message: bytes) -> bytes:
    """Encode a gRPC message: uncompressed, with a length prefix."""
    return b"\0" + WORD.pack(len(message)) + message


def unpadded(payload: bytes) -> bytes:
    """Remove the padding from a frame's payload."""
    if not payload or payload[0] >= len(payload):
        raise ProtocolError(Code.PROTOCOL_ERROR)
    return payload[1 : len(payload) - payload[0]]


def _literal(name: bytes, value: bytes) -> bytes:
    """Encode a header field without indexing (RFC 7541, Sec. 6.2.2)."""
    return b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value


_STATUS_200 = b"\x88"  # entry 8 of the static table
OPENING = _STATUS_200 + _literal(b"content-type", b"application/grpc")  # the header block of every response


def trailers(status: int) -> bytes:
    """Encode the header block that ends a response."""
    return _literal(b"grpc-status", str(status).encode())
