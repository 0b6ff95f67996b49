"""Sticky sessions as they are configured: what tells returning clients, and how full their pool may be."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from evenly.errors import InputError
from evenly.inputs import shown, whole_number

DEFAULT_COOKIE = "evenly-pool"
DEFAULT_MARGIN = 2  # sessions
MAX_MARGIN = 1_000_000  # sessions; in effect no limit
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
# Headers that have a meaning already: a token in one of these would break requests or responses.
_TAKEN = re.compile(
    r"accept.*|age|allow|authorization|cache-control|connection|content-.*|cookie|date|etag|expect|expires|forwarded"
    r"|grpc-.*|host|if-.*|keep-alive|last-modified|location|origin|pragma|proxy-.*|range|referer|retry-after|sec-.*"
    r"|server|set-cookie|te|trailer|transfer-encoding|upgrade|user-agent|vary|via|www-authenticate|x-envoy-.*"
    r"|x-evenly-.*|x-forwarded-.*|x-gateway-.*|x-request-id"
)


class StickyRule(NamedTuple):
    """A client shows its pool in a cookie or a header of this name. Names of headers are in lower case."""

    kind: Literal["cookie", "header"]
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @property
    def header(self) -> str:
        """The header of requests that the picker must see."""
        return "cookie" if self.kind == "cookie" else self.name


def parse_sticky(value: object) -> StickyRule:
    """Read `cookie`, `cookie:NAME` or `header:NAME`."""
    kind, colon, name = value.partition(":") if isinstance(value, str) else ("", "", "")
    if kind == "cookie" and not colon:
        return StickyRule("cookie", DEFAULT_COOKIE)
    if not (kind in ("cookie", "header") and _NAME.fullmatch(name)):
        raise InputError(
            "sticky must be cookie, cookie:NAME or header:NAME, with a name of up to 64 letters, digits, hyphens "
            f"and underscores, not {shown(value)}."
        )
    if kind == "cookie":
        return StickyRule("cookie", name)
    if _TAKEN.fullmatch(name.lower()):
        raise InputError(f"sticky must not use the header {name}, which has a meaning already.")
    return StickyRule("header", name.lower())


def check_margin(value: object) -> int:
    """Return a margin: the sessions beyond its threshold that a pool may have when a client returns to it."""
    return whole_number("sticky-margin", value, 0, MAX_MARGIN)
