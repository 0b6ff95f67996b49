"""The messages of Envoy's external processing, `envoy.service.ext_proc.v3`, that a picker needs.

A pick is sent as in the endpoint-picker protocol of the Kubernetes Gateway API Inference Extension: as a header
and as dynamic metadata. Envoy routes by the metadata, since a client can forge a header.
"""

from __future__ import annotations

from evenly.errors import InputError
from evenly.live.addresses import Address, parse_address
from evenly.live.envoy.names import NAMESPACE, PICKED, SERVED, SUBSET, SUBSET_NAMESPACE
from evenly.live.wire.frames import framed
from evenly.live.wire.protobuf import field, fields, struct, struct_text, struct_texts, submessage

PATH = b"/envoy.service.ext_proc.v3.ExternalProcessor/Process"

# The first byte of a request gives its kind: a field number from 2 to 7. The response uses that number minus 1.
REQUEST_HEADERS, RESPONSE_HEADERS = 2 << 3 | 2, 3 << 3 | 2
_METADATA = 8
_CONTINUE = {number << 3 | 2: framed(field(number - 1, b"")) for number in range(2, 8)}
GO_ON = _CONTINUE[RESPONSE_HEADERS]
NO_PICK = _CONTINUE[REQUEST_HEADERS]
_SUBSET_NAMESPACE, _SUBSET = SUBSET_NAMESPACE.encode(), SUBSET.encode()


def _unavailable(reason: str) -> bytes:
    """Return a response that Envoy sends to the client with status 503, instead of using its fallback."""
    return framed(field(7, field(1, field(1, 503)) + field(3, f"{reason}\n")))


ALL_DRAINING = _unavailable("All server pools are draining.")
NONE_IN_SUBSET = _unavailable("No server pool of the requested subset can serve.")


def pick_answer(endpoint: Address, *others: Address) -> bytes:
    """Return the response to request headers that picks this pool. Envoy retries at the others, in this order."""
    value = ",".join(map(str, (endpoint, *others)))
    overwrite = field(1, field(1, PICKED) + field(3, value)) + field(3, 2)
    mutation = field(2, field(1, overwrite))
    return framed(field(1, field(1, mutation)) + field(8, struct({NAMESPACE: {PICKED: value}})))


def response_with(name: str, value: str, *, append: bool) -> bytes:
    """Return the response to response headers that adds a header to those of the pool, or replaces it there."""
    added = field(1, field(1, name) + field(3, value)) + (field(2, field(1, 1)) if append else field(3, 2))
    return framed(field(2, field(1, field(2, field(1, added)))))


def request_headers(message: bytes) -> list[tuple[bytes, bytes]]:
    """Return names and values of the headers in a message with request headers, in order."""
    headers = []
    for number, header in fields(submessage(message, 2, 1) or b""):
        if number == 1 and isinstance(header, bytes):
            parts = dict(fields(header))
            name, value = parts.get(1, b""), parts.get(3) or parts.get(2) or b""  # raw, or as a string
            if isinstance(name, bytes) and isinstance(value, bytes):
                headers.append((name, value))
    return headers


def subset(message: bytes) -> list[Address] | None:
    """Return the endpoints among which to pick; None if the request's metadata do not restrict them.

    Only the metadata count, which Envoy's own filters set. A client can send a header of the same name.
    """
    if _SUBSET not in message:
        return None  # the usual case, without parsing
    for number, metadata in fields(message):
        if number == _METADATA and isinstance(metadata, bytes):
            texts = _subset_texts(metadata)
            if texts is not None:
                return [found for text in texts for part in text.split(",") if (found := _endpoint(part))]
    return None


def _subset_texts(metadata: bytes) -> list[str] | None:
    for number, entry in fields(metadata):
        if number == 1 and isinstance(entry, bytes) and submessage(entry, 1) == _SUBSET_NAMESPACE:
            return struct_texts(submessage(entry, 2) or b"", SUBSET)
    return None


def _endpoint(text: str) -> Address | None:
    try:
        return parse_address(text.strip())
    except InputError:
        return None


def plain_answer(message: bytes) -> bytes | None:
    """Return the response to any other message, which is to continue; None if it needs no response."""
    if message and message[0] in _CONTINUE:
        return _CONTINUE[message[0]]
    kinds = (number << 3 | 2 for number, value in fields(message) if isinstance(value, bytes))
    return next((_CONTINUE[kind] for kind in kinds if kind in _CONTINUE), None)


def served_mark(endpoint: Address) -> bytes:
    """Return bytes that response headers contain if this pool serves: searching is quicker than parsing."""
    return field(1, SERVED) + field(2, field(3, str(endpoint)))


def served_by(message: bytes) -> Address | None:
    """Return the address of the serving pool from response headers; None if they do not contain it."""
    metadata = submessage(message, _METADATA)
    if metadata is None:
        return None
    for number, entry in fields(metadata):
        if number == 1 and isinstance(entry, bytes) and submessage(entry, 1) == NAMESPACE.encode():
            text = struct_text(submessage(entry, 2) or b"", SERVED)
            try:
                return None if text is None else parse_address(text)
            except InputError:
                return None
    return None
