"""The messages of Envoy's external processing, `envoy.service.ext_proc.v3`, that a picker needs.

A pick is sent as in the endpoint-picker protocol of the Kubernetes Gateway API Inference Extension: as a header
and as dynamic metadata. Envoy routes by the metadata, since a client can forge a header.
"""

from __future__ import annotations

from evenly.errors import InputError
from evenly.live.addresses import Address, parse_address
from evenly.live.envoy.names import NAMESPACE, PICKED, SERVED
from evenly.live.wire.frames import framed
from evenly.live.wire.protobuf import field, fields, struct, struct_text, submessage

PATH = b"/envoy.service.ext_proc.v3.ExternalProcessor/Process"

# The first byte of a request gives its kind: a field number from 2 to 7. The response uses that number minus 1.
REQUEST_HEADERS, RESPONSE_HEADERS = 2 << 3 | 2, 3 << 3 | 2
_METADATA = 8
_CONTINUE = {number << 3 | 2: framed(field(number - 1, b"")) for number in range(2, 8)}
GO_ON = _CONTINUE[RESPONSE_HEADERS]
NO_PICK = _CONTINUE[REQUEST_HEADERS]
_UNAVAILABLE = field(1, field(1, 503)) + field(3, "All server pools are draining.\n")
ALL_DRAINING = framed(field(7, _UNAVAILABLE))  # Envoy responds with this instead of using its fallback


def pick_answer(endpoint: Address) -> bytes:
    """Return the response to request headers that picks this pool. It is the same for every session."""
    value = str(endpoint)
    overwrite = field(1, field(1, PICKED) + field(3, value)) + field(3, 2)
    mutation = field(2, field(1, overwrite))
    return framed(field(1, field(1, mutation)) + field(8, struct({NAMESPACE: {PICKED: value}})))


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
