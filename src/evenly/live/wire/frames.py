"""Frames of HTTP/2 (RFC 9113) and messages of gRPC, as bytes.

What must be here: how things look on the wire. What must not: what they lead to.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MAX_FRAME = 2**14  # the default, which we leave as it is
DEFAULT_WINDOW = 2**16 - 1
LARGEST_WINDOW = 2**31 - 1
NO_STREAM = b"\0\0\0\0"  # the name of the connection itself

WORD = Struct(">I")
SETTING = Struct(">HI")

# Types of frames, as plain numbers: comparing with an enum costs as much as parsing.
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)

# Flags; the first means either, by the type of frame.
ACK = END_STREAM = 1
END_HEADERS, PADDED, WITH_PRIORITY = 4, 8, 32

# Statuses of gRPC.
OK, UNIMPLEMENTED = 0, 12


class Code(IntEnum):
    """Reasons for the end of a stream or a connection."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    FLOW_CONTROL_ERROR = 3
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    COMPRESSION_ERROR = 9
    ENHANCE_YOUR_CALM = 11


class BrokenRuleError(Exception):
    """The peer does not keep to the rules; the connection has to end."""

    def __init__(self, code: Code) -> None:
        super().__init__(code.name)
        self.code = code


def frame(kind: int, flags: int, name: bytes, payload: bytes) -> bytes:
    """A frame of the stream of this name, which is its number as four bytes."""
    return WORD.pack(len(payload) << 8 | kind) + bytes((flags,)) + name + payload


def framed(message: bytes) -> bytes:
    """A message as gRPC sends it: uncompressed, its length in front."""
    return b"\0" + WORD.pack(len(message)) + message


def unpadded(payload: bytes) -> bytes:
    """What a padded frame carries."""
    if not payload or payload[0] >= len(payload):
        raise BrokenRuleError(Code.PROTOCOL_ERROR)
    return payload[1 : len(payload) - payload[0]]


def _literal(name: bytes, value: bytes) -> bytes:
    """A header field that enters no table (RFC 7541, Sec. 6.2.2)."""
    return b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value


_STATUS_200 = b"\x88"  # field 8 of the static table
OPENING = _STATUS_200 + _literal(b"content-type", b"application/grpc")  # the header block of every answer


def trailers(status: int) -> bytes:
    """The header block that ends an answer."""
    return _literal(b"grpc-status", str(status).encode())
