"""What the headers of ASGI requests and responses tell about sessions."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from evenly.live.agents.lifespan import Message, Scope
from evenly.live.session_id import HEADER, QUERY_PARAMETER

_HEADER = HEADER.encode()
_PARAMETER = re.compile(rb"(?:^|&)" + re.escape(QUERY_PARAMETER.encode()) + rb"=([^&]*)")


def session_id_of(scope: Scope) -> str | None:
    """Return the session id that a request brings in its header or its query, valid or not."""
    for name, value in scope["headers"]:
        if name == _HEADER:
            return bytes(value).decode("latin-1")
    query: bytes = scope.get("query_string", b"")
    found = _PARAMETER.search(query) if query else None
    return None if found is None else unquote_to_bytes(found[1]).decode("latin-1")


def has_length(start: Message) -> bool:
    """Return True for a response whose length is known at its start: a file, however large, and not a stream."""
    return any(bytes(name).lower() == b"content-length" for name, _ in start.get("headers", ()))
