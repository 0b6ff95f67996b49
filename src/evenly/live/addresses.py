"""Addresses of pools, Envoys and ports to listen on: HOST:PORT, with [] around an IPv6 host."""

from __future__ import annotations

import ipaddress
import re
import socket
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
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def parse_address(text: str) -> Address:
    """Read HOST:PORT."""
    match = _FORM.fullmatch(text)
    if match is None or int(match[4]) > 65535:
        raise InputError(f"An address is HOST:PORT with a port up to 65535, not {text!r}.")
    host = match[1] or match[2]
    if match[1]:
        try:
            host = str(ipaddress.IPv6Address(host))
        except ValueError:
            raise InputError(f"An address in brackets is an IPv6 one, not {text!r}.") from None
    return Address(host, int(match[4]))


def resolve(address: Address) -> Address:
    """The address by number, IPv4 if there is one: Envoy names its hosts by numbers."""
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise InputError(f"The host of {address} is not known: {error.strerror or error}.") from None
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    return Address(str(found[0][4][0]), address.port)
