"""Addresses of pools, Envoys and ports to listen on: HOST:PORT, with [] around an IPv6 host."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Sequence
from typing import NamedTuple

from evenly.errors import InputError

_FORM = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9]([A-Za-z0-9._-]{0,252}[A-Za-z0-9])?)):([0-9]{1,5})")


class Address(NamedTuple):
    """A host, by name or number, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            number = ipaddress.ip_address(self.host)
        except ValueError:
            return self.host.lower() == "localhost"
        mapped = number.ipv4_mapped if isinstance(number, ipaddress.IPv6Address) else None
        return (mapped or number).is_loopback


def parse_address(text: str) -> Address:
    """Read HOST:PORT."""
    match = _FORM.fullmatch(text)
    if match is None or int(match[4]) > 65535:
        raise InputError(f"An address is HOST:PORT with a port up to 65535, not {text!r}.")
    host = match[1] or match[2]
    if match[1]:
        try:
            number = ipaddress.IPv6Address(host)
            host = str(number.ipv4_mapped or number)
        except ValueError:
            raise InputError(f"An address in brackets is an IPv6 one, not {text!r}.") from None
    return Address(host, int(match[4]))


def check_pools(pools: Sequence[Address]) -> None:
    """Refuse pools that cannot be told apart or reached."""
    portless = next((pool for pool in pools if pool.port == 0), None)
    if portless is not None:
        raise InputError(f"The port of a pool must be at least 1, not 0 as in '{portless}'.")
    twice = next((pool for pool in pools if pools.count(pool) > 1), None)
    if twice is not None:
        raise InputError(f"Pool {twice} is given twice.")


def check_path(path: str) -> str:
    """Refuse what cannot stand in a request's first line."""
    if not re.fullmatch(r"/[!-~]{0,1000}", path):
        raise InputError(f"health-path must be a path that starts with / and has no spaces, not {path!r}.")
    return path


def resolve(address: Address) -> Address:
    """The address by number, IPv4 if there is one: Envoy names its hosts by numbers."""
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise InputError(f"The host of {address} is no name.") from None
    except OSError as error:
        raise InputError(
            f"The host of {address} is not known: {(error.strerror or str(error)).lower()}."
        ) from None
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    return Address(str(found[0][4][0]), address.port)
