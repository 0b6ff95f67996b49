"""Checks of who may call a port: its token, and without one, loopback hosts and no foreign web pages."""

from __future__ import annotations

import hmac
from functools import lru_cache

from evenly.errors import InputError
from evenly.live.addresses import parse_address

_MAX_HOST = 300  # characters
OWN_SITES = frozenset({"none", "same-origin"})  # another port of this host is "same-site", and foreign


def has_token(authorization: str, token: str) -> bool:
    """Return whether a header `Authorization` carries the token. Compares in constant time."""
    return hmac.compare_digest(bearer(authorization).encode(), token.encode())


def bearer(authorization: str) -> str:
    """Return what a header `Authorization` carries as a bearer token; an empty text if that is nothing."""
    scheme, _, given = authorization.partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


@lru_cache(maxsize=256)  # every request has one, and nearly all the same
def is_loopback_host(host: str) -> bool:
    """Return whether a header `Host` names this machine: a loopback address or localhost, with or without a port.

    Against DNS rebinding: a web page can make its own name resolve to 127.0.0.1 and then read the answers. So the
    whole header must be an address. Where only its beginning counts, [::1]evil.example would pass.
    """
    if len(host) > _MAX_HOST:
        return False
    for text in (host, f"{host}:0"):
        try:
            return parse_address(text).loopback
        except InputError:
            continue
    return False


def is_foreign(origin: str | None, host: str, site: str = "none") -> bool:
    """Return whether a web page of another site sends the request.

    `site` is its header `Sec-Fetch-Site`. Browsers send no `Origin` when a page shows our answer as an image, but
    always say where such a request comes from. A user who types the address is "none".
    """
    return site not in OWN_SITES or (origin is not None and origin.partition("://")[2] != host)
