"""Pools that DNS lists: `--pool dns://NAME:PORT` and `--pool srv://NAME`."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from typing import NamedTuple

from evenly.errors import InputError
from evenly.inputs import shown
from evenly.live.addresses import Address, WeightedPool, parse_address, parse_pool, parse_weight, weight_text
from evenly.live.pool_scheme import PoolScheme, split_scheme

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")  # _http._tcp.web, as SRV records are named
_PORT = re.compile(r"(?P<name>[^:]*):(?P<port>[0-9]{1,5})")
_MAX_NAME = 253
MAX_SOURCES = 100  # names to look up: each is looked up by itself, as often as every second


class PoolSource(NamedTuple):
    """A name whose DNS records list servers. `port` is 0 for SRV records, which have ports themselves."""

    name: str
    port: int
    weight: float
    scheme: PoolScheme

    @property
    def text(self) -> str:
        """The source without its weight, as `/state`, `/metrics` and the log show it."""
        return f"{self.scheme}://{self.name}" + (f":{self.port}" if self.port else "")

    def __str__(self) -> str:
        return self.text if self.weight == 1 else f"{self.text}={weight_text(self.weight)}"


def parse_pool_or_source(text: str) -> WeightedPool | PoolSource:
    """Read a pool with a fixed address, or a name to look up."""
    scheme, rest = split_scheme(text)
    if not scheme.discovery:
        return parse_pool(text)
    place, equals, weight = rest.partition("=")
    name, port = _name_and_port(place, scheme, text)
    share = parse_weight(weight, f"The weight of pool {scheme}://{place}") if equals else 1.0
    return PoolSource(name, port, share, scheme)


def parse_resolver(text: str) -> Address:
    """Read the address of a DNS server: an IP address, since a name would need a DNS server."""
    address = parse_address(text)
    try:
        ipaddress.ip_address(address.host)
    except ValueError:
        raise InputError(
            f"resolver must be an IP address and a port such as 127.0.0.1:8600, not {shown(text)}."
        ) from None
    if address.port == 0:
        raise InputError("The port of the resolver must be from 1 to 65535, not 0.")
    return address


def check_sources(sources: Sequence[PoolSource]) -> None:
    """Reject a name given twice, and more than `MAX_SOURCES` names."""
    if len(sources) > MAX_SOURCES:
        raise InputError(f"There can be at most {MAX_SOURCES} names to look up, not {len(sources)}.")
    seen: set[str] = set()
    for source in sources:
        if source.text in seen:
            raise InputError(f"Pool {source.text} is given twice.")
        seen.add(source.text)


def _name_and_port(place: str, scheme: PoolScheme, text: str) -> tuple[str, int]:
    if scheme.discovery == "srv":
        if ":" in place:
            raise InputError(f"SRV records have ports: use srv://NAME without a port, not {shown(text)}.")
        return _checked_name(place, text), 0
    match = _PORT.fullmatch(place)
    port = 0 if match is None else int(match["port"])
    if match is None or not 0 < port <= 65535:
        raise InputError(
            f"A pool found by DNS must be dns://NAME:PORT with a port up to 65535, not {shown(text)}."
        )
    return _checked_name(match["name"], text), port


def _checked_name(name: str, text: str) -> str:
    """Return a name in lower case. A dot at its end, which rules out search domains, stays."""
    labels = name.lower().removesuffix(".").split(".")
    if labels[-1].isdecimal():
        raise InputError(f"dns:// and srv:// need a name, not a number: give {shown(text)} as HOST:PORT.")
    if not (name.isascii() and len(name) <= _MAX_NAME and all(map(_LABEL.fullmatch, labels))):
        raise InputError(f"The name in {shown(text)} is not valid: use letters, digits, hyphens, _ and dots.")
    return name.lower()
