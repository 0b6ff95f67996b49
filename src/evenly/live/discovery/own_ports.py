"""The addresses that this balancer listens on itself: a pool there would send requests round in a circle."""

from __future__ import annotations

import socket
from collections.abc import Iterable

from evenly.live.addresses import Address

_ANY = ("0.0.0.0", "::")


def listens_at(address: Address, own: Iterable[Address]) -> bool:
    """Return whether one of our own ports listens at this IP address."""
    return any(
        address.port == each.port
        and (each.host == address.host or (each.host in _ANY and _is_local(address.host)))
        for each in own
    )


def _is_local(host: str) -> bool:
    """Return whether the address belongs to this machine: only then can a socket be bound to it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((host, 0))
    except OSError:
        return False
    return True
