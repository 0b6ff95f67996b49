"""The address of Envoy's admin interface: HOST:PORT, or a Unix socket that only its owner can open.

The admin interface can stop Envoy. A gateway keeps it on a Unix socket in its private folder. An Envoy elsewhere
has a TCP port, at which only reading is allowed.
"""

from __future__ import annotations

import http.client
import ipaddress
import os
import socket
import stat
from pathlib import Path
from typing import NamedTuple

from evenly.errors import InputError
from evenly.live.addresses import Address, parse_address

SOCKET_MODE = 0o600
_PREFIX = "unix:"


class AdminSocket(NamedTuple):
    """A Unix socket."""

    path: Path

    def __str__(self) -> str:
        return f"{_PREFIX}{self.path}"

    def check_private(self) -> None:
        """Raise PermissionError unless it is a socket of this user that no other user can open.

        A link is refused: its target could be changed at any time.
        """
        found = self.path.lstat()
        if not stat.S_ISSOCK(found.st_mode):
            raise PermissionError(f"{self.path} is not a socket")
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & ~SOCKET_MODE:
            raise PermissionError(f"{self.path} can be opened by other users")


AdminAddress = Address | AdminSocket


def announcement(admin: AdminAddress) -> str:
    """Return the text by which an Envoy announces its admin address to the picker.

    A Unix socket is announced by its name only: the picker knows its path.
    """
    return f"{_PREFIX}{admin.path.name}" if isinstance(admin, AdminSocket) else str(admin)


def parse_announcement(announced: str, peer: str, own: AdminSocket | None) -> AdminAddress:
    """Validate an announced admin address: an IP literal, and loopback only if the peer is local.

    The picker of a gateway accepts the Unix socket of its `own` Envoy and nothing else. Every local user can reach
    its port, and a forged Envoy could report pools as failing.
    """
    if own is not None:
        if announced != announcement(own) or not Address(peer, 0).loopback:
            raise InputError(f"The picker of a gateway accepts only the Envoy of that gateway, not {announced!r}.")
        return own
    if announced.startswith(_PREFIX):
        raise InputError(f"{announced} is a Unix socket, which only the picker of a gateway accepts.")
    admin = parse_address(announced)
    try:
        number = ipaddress.ip_address(admin.host)
    except ValueError:
        raise InputError(f"An Envoy must announce its admin port by IP address, not as {announced!r}.") from None
    if number.is_unspecified or admin.port == 0:
        raise InputError(f"An Envoy must announce an admin port that can be reached, not {announced!r}.")
    if admin.loopback and not Address(peer, 0).loopback:
        raise InputError(f"{announced} is a loopback address, and {peer} is another machine.")
    return admin


def connect(admin: AdminAddress, seconds: float) -> http.client.HTTPConnection:
    """Return an HTTP connection to the admin interface. It is opened with the first request."""
    if isinstance(admin, AdminSocket):
        return _UnixConnection(admin.path, seconds)
    return http.client.HTTPConnection(admin.host, admin.port, timeout=seconds)


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path, seconds: float) -> None:
        super().__init__("localhost", timeout=seconds)
        self._path = path

    def connect(self) -> None:
        """Open the connection."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))
