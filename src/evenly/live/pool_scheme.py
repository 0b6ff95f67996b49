"""How a pool is found and what it speaks: the scheme of `--pool SCHEME://...`."""

from __future__ import annotations

from typing import NamedTuple

from evenly.errors import InputError
from evenly.inputs import shown

PROTOCOLS = ("http", "https", "h2", "h2s")  # h2 is HTTP/2 without TLS, as gRPC speaks it; h2s is HTTP/2 over TLS
DISCOVERIES = ("dns", "srv")


def is_tls(protocol: str) -> bool:
    """Return whether the protocol is spoken over TLS."""
    return protocol in ("https", "h2s")


def is_http2(protocol: str) -> bool:
    """Return whether the protocol is HTTP/2, which gRPC needs."""
    return protocol in ("h2", "h2s")


class PoolScheme(NamedTuple):
    """What a pool speaks, and the DNS records that say where its servers are; empty for a fixed address."""

    protocol: str = "http"
    discovery: str = ""

    def __str__(self) -> str:
        """Return the shortest spelling."""
        parts = [self.discovery, self.protocol if self.protocol != "http" else ""]
        return "+".join(filter(None, parts))


def split_scheme(text: str) -> tuple[PoolScheme, str]:
    """Split `dns+h2://name:80=4` into its scheme and `name:80=4`. Without a scheme, a pool speaks HTTP/1.1."""
    scheme, found, rest = text.partition("://")
    if not found:
        return PoolScheme(), text
    first, plus, second = scheme.lower().partition("+")
    discovery, protocol = (first, second) if plus else (first, "http") if first in DISCOVERIES else ("", first)
    if protocol not in PROTOCOLS or discovery not in ("", *DISCOVERIES) or (plus and not discovery):
        raise InputError(
            f"The scheme of a pool must be one of {', '.join(PROTOCOLS)}, dns or srv, or a pair such as dns+h2, "
            f"not {shown(scheme)}."
        )
    return PoolScheme(protocol, discovery), rest
