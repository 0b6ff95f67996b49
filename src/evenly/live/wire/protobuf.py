"""The part of the protocol buffer encoding that our messages to and from Envoy need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evenly.live.wire.frames import Code, ProtocolError


def varint(value: int) -> bytes:
    """Encode a number with seven bits per byte, lowest bits first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, value: bytes | str | int) -> bytes:
    """Encode a field: a number, or bytes (a string or a message) with a length prefix."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    payload = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def struct(values: Mapping[str, str | Mapping[str, str]]) -> bytes:
    """Encode a `google.protobuf.Struct` of strings and of structs of strings."""
    entries = []
    for key, value in values.items():
        content = field(3, value) if isinstance(value, str) else field(5, struct(value))
        entries.append(field(1, field(1, key) + field(2, content)))
    return b"".join(entries)


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a message in order: number and value."""
    at = 0
    while at < len(message):
        key, at = _read_varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = _read_varint(message, at)
            yield key >> 3, value
            continue
        if kind == 2:
            size, at = _read_varint(message, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ProtocolError(Code.PROTOCOL_ERROR)
        if at + size > len(message):
            raise ProtocolError(Code.PROTOCOL_ERROR)
        yield key >> 3, message[at : at + size]
        at += size


def submessage(message: bytes, *path: int) -> bytes | None:
    """Return the bytes at a path of field numbers (the first match of each), or None."""
    for number in path:
        found = next((value for key, value in fields(message) if key == number), None)
        if not isinstance(found, bytes):
            return None
        message = found
    return message


def struct_text(message: bytes, *path: str) -> str | None:
    """Return the string at a path of keys in a `google.protobuf.Struct`, or None."""
    for key in path[:-1]:
        found = _struct_value(message, key)
        inner = None if found is None else submessage(found, 5)
        if inner is None:
            return None
        message = inner
    last = _struct_value(message, path[-1])
    text = None if last is None else submessage(last, 3)
    return None if text is None else text.decode("utf-8", "replace")


def struct_texts(message: bytes, key: str) -> list[str] | None:
    """Return the strings of the list at a key of a `google.protobuf.Struct`; None if the struct has no such key.

    A string instead of a list is a list of one. Values that are no strings are left out.
    """
    found = _struct_value(message, key)
    if found is None:
        return None
    values = submessage(found, 6)
    entries = [found] if values is None else [value for number, value in fields(values) if number == 1]
    texts = (submessage(entry, 3) for entry in entries if isinstance(entry, bytes))
    return [text.decode("utf-8", "replace") for text in texts if text is not None]


def _struct_value(message: bytes, key: str) -> bytes | None:
    wanted = key.encode()
    for number, entry in fields(message):
        if number == 1 and isinstance(entry, bytes) and submessage(entry, 1) == wanted:
            return submessage(entry, 2)
    return None


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message) and shift < 64:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ProtocolError(Code.PROTOCOL_ERROR)
