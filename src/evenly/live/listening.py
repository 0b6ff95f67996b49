"""Sockets that listen, with a sentence for what keeps them from it."""

from __future__ import annotations

import os
import socket

from evenly.errors import InputError
from evenly.live.addresses import Address, resolve

BACKLOG = 4096  # connections that wait to be accepted


def listening_socket(address: Address) -> socket.socket:
    """Return a socket that listens on the address. Raises InputError if that is not possible."""
    address = resolve(address)
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server(address, family=family, backlog=BACKLOG)
    except OSError as error:  # whose text repeats the address
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise InputError(f"Cannot listen on {address}: {reason.lower()}.") from None
