"""Addresses of pools as clients use them: URLs, and the redirects made of them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from evenly.errors import InputError
from evenly.inputs import shown
from evenly.live.addresses import MAX_POOLS, parse_address
from evenly.live.session_id import QUERY_PARAMETER

MAX_URL = 500  # characters
_FORM = re.compile(r"(https?|wss?)://([^/?#@\\]+)((?:/[A-Za-z0-9._~!$&'()*+,;=:@%-]*)*)")
_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}
_AS_HTTP = {"http": "http", "ws": "http", "https": "https", "wss": "https"}
_AS_WEBSOCKET = {"http": "ws", "ws": "ws", "https": "wss", "wss": "wss"}
_TARGET = re.compile(rb"[!-~]*")  # bytes that may stand in a header
_OURS = f"{QUERY_PARAMETER}=".encode()


class PoolUrl(NamedTuple):
    """A pool's URL in parts; the base path has no slash at its end."""

    scheme: str
    authority: str
    base: str


@lru_cache(maxsize=MAX_POOLS)
def parse_pool_url(text: str) -> PoolUrl:
    """Read a pool's URL: http, https, ws or wss, a host, an optional port, an optional base path."""
    match = _FORM.fullmatch(text) if len(text) <= MAX_URL else None
    if match is None:
        raise _no_url(text)
    scheme, authority, base = match.groups()
    has_port = re.search(r":[0-9]+$", authority) is not None
    try:
        address = parse_address(authority if has_port else f"{authority}:{_PORTS[scheme]}")
    except InputError:
        raise _no_url(text) from None
    if address.port == 0:
        raise _no_url(text)
    return PoolUrl(scheme, authority, base.rstrip("/"))


def check_pool_url(value: object) -> str:
    """Return a URL that clients can be sent to."""
    if not isinstance(value, str):
        raise _no_url(value)
    parse_pool_url(value)
    return value


def redirect_target(address: str, path: bytes, query: bytes, session: str, *, websocket: bool) -> bytes | None:
    """Return the URL in the pool for a request, with the session's id; None if it cannot stand in a header.

    Path and query stay as the client wrote them, byte by byte, apart from an older id in the query. A WebSocket's
    handshake is redirected to ws or wss, since its clients follow to nothing else; other requests to http, https.
    """
    if not (_TARGET.fullmatch(path) and _TARGET.fullmatch(query)):
        return None
    url = parse_pool_url(address)
    if _OURS in query:
        query = b"&".join(part for part in query.split(b"&") if not part.startswith(_OURS))
    start = f"{(_AS_WEBSOCKET if websocket else _AS_HTTP)[url.scheme]}://{url.authority}{url.base}/"
    return start.encode() + path + b"?" + query + (b"&" if query else b"") + _OURS + session.encode()


def _no_url(value: object) -> InputError:
    return InputError(
        f"The address of a pool must be a URL such as https://pool-1.example:8443/base with the scheme http, "
        f"https, ws or wss, of up to {MAX_URL} characters, not {shown(value)}."
    )
