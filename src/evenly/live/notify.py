"""What a supervisor such as systemd hears from a process that it runs: it is ready, it stops.

The protocol is one datagram to the socket that `NOTIFY_SOCKET` names, see sd_notify(3).
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress

READY = "READY=1"
STOPPING = "STOPPING=1"


def notify(state: str) -> None:
    """Send a state to the supervisor, if there is one. A socket that cannot be used changes nothing."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path.startswith(("/", "@")):  # unset, or a kind of socket that we do not know
        return
    if path.startswith("@"):  # a name without a file
        path = "\0" + path[1:]
    with suppress(OSError, ValueError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)  # a supervisor that does not read must not hold the process up
        sock.sendto(state.encode(), path)
