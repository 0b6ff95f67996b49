"""Sockets that listen, with a sentence for what keeps them from it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress

from evenly.errors import InputError
from evenly.live.addresses import Address, resolve

BACKLOG = 4096  # connections that wait to be accepted


def first_of(choices: Sequence[Address], opened: Callable[[Address], socket.socket]) -> socket.socket:
    """Return the first of these sockets that can be opened. Raises the InputError of the last one."""
    for address in choices[:-1]:
        with suppress(InputError):
            return opened(address)
    return opened(choices[-1])


def listening_socket(address: Address, *, shared: bool = False) -> socket.socket:
    """Return a socket that listens on the address. Raises InputError if that is not possible.

    With `shared`, another process of the same user may listen there too, if it also shares.
    """
    address = resolve(address)
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        sock = socket.create_server(address, family=family, backlog=BACKLOG, reuse_port=shared)
    except OSError as error:  # whose text repeats the address
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise InputError(f"Cannot listen on {address}: {reason.lower()}.") from None
    # asyncio sets this only for sockets that name their protocol. Without it, answers wait for acknowledgements.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock
