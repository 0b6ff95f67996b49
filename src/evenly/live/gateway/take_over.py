"""A new gateway takes over from the running one: the new side.

The two meet at a Unix socket that is named after the listening address. The name is abstract: it is no file, it is
gone with its process, and it is known exactly where the port is known, in the same network namespace. Every local
user can connect to it, so each side checks with the kernel that the other belongs to the same user.

The new gateway connects and asks. The running one answers with its private folder and two sockets: the one that
clients connect to, and the one that reserves the admin port. When the new gateway serves clients, it says so on
the same connection, and the old one drains. If the connection ends before that, the old one continues unchanged.
"""

from __future__ import annotations

import array
import asyncio
import json
import os
import shutil
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenly.errors import InputError
from evenly.live.addresses import Address, parse_address, resolve
from evenly.live.gateway_folder import GatewayFolder
from evenly.live.log import Log
from evenly.live.settings import Settings

MAX_MESSAGE = 65536  # bytes
ASK, READY, DRAINS = b"take over", b"ready", b"drains"
_TIMEOUT_S = 10.0
_CREDENTIALS = struct.Struct("3i")  # of SO_PEERCRED: process, user, group


@dataclass(frozen=True, kw_only=True)
class Predecessor:
    """A running gateway that agreed to be replaced.

    `folders` are its private folder and those of its own predecessors. `listen` and `admin` are its sockets,
    and `admin_address` is what the second is bound to.
    """

    connection: socket.socket
    pid: int
    folders: list[Path]
    listen: socket.socket
    admin: socket.socket
    admin_address: Address

    def shares_admin(self, settings: Settings) -> bool:
        """Return whether the new gateway gets the admin port: no other was given to it."""
        return not settings.admin_given or resolve(settings.admin) == self.admin_address

    def pass_on(self, folder: GatewayFolder) -> None:
        """Give the new picker what the old one knows: pools changed at run time, alpha, open sessions, its key."""
        folder.set_taking_over(True)
        folder.set_predecessors(self.folders)
        old = GatewayFolder(self.folders[0])
        for theirs, ours in ((old.state_file, folder.state_file), (old.sticky_key, folder.sticky_key)):
            with suppress(OSError):  # there is none, or it ends just now, and its folder with it
                shutil.copyfile(theirs, ours)

    async def drain(self, log: Log) -> None:
        """Tell it that its clients are served here. Returns when it drains, or has ended."""
        loop = asyncio.get_running_loop()
        answer = b""
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                await loop.sock_sendall(self.connection, READY)
                answer = await loop.sock_recv(self.connection, MAX_MESSAGE)
        except (OSError, TimeoutError) as error:
            log.event("gateway before does not drain", pid=self.pid, reason=str(error) or "timeout")
        else:
            log.event("took over", pid=self.pid, drains=answer == DRAINS)
        self.connection.close()


def meeting_point(listen: Address) -> str:
    """Return the name of the socket where the gateway of an address is asked to hand over."""
    return f"\0evenly-gateway/{os.geteuid()}/{listen}"


def peer(connection: socket.socket) -> tuple[int, int]:
    """Return the process and the user at the other end of a Unix socket."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, user, _ = _CREDENTIALS.unpack(found)
    return pid, user


def find(settings: Settings, log: Log) -> Predecessor | None:
    """Return the gateway to take over from, if the settings want that and there is one."""
    if not settings.take_over:
        return None
    listen = resolve(settings.listen)
    found = ask(listen)
    if found is None:
        log.event("nothing to take over", listen=str(listen))
    return found


def ask(listen: Address) -> Predecessor | None:
    """Ask the gateway that listens at this address to hand over; None if there is none.

    Raises InputError if it refuses, does not answer, or belongs to another user.
    """
    if listen.port == 0:
        raise InputError("--take-over needs the port of the running gateway in --listen, not port 0.")
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.settimeout(_TIMEOUT_S)
        connection.connect(meeting_point(listen))
        pid, user = peer(connection)
        if user != os.geteuid():
            raise InputError(f"The gateway at {listen} belongs to another user, so it cannot be replaced.")
        connection.send(ASK)
        message, received, _, _ = socket.recv_fds(connection, MAX_MESSAGE, 2)
    except ConnectionRefusedError:
        connection.close()
        return None
    except OSError as error:
        connection.close()
        raise InputError(f"The gateway at {listen} does not hand over: {error}.") from None
    except InputError:
        connection.close()
        raise
    sockets = [socket.socket(fileno=number) for number in received]
    for sock in sockets:
        sock.set_inheritable(False)  # a child of this gateway would keep the port open
    try:
        return _predecessor(connection, pid, json.loads(message), sockets)
    except InputError:
        _close(connection, *sockets)
        raise
    except (ValueError, KeyError, TypeError) as error:
        _close(connection, *sockets)
        raise InputError(f"The gateway at {listen} does not hand over: its answer lacks {error}.") from None


def _predecessor(
    connection: socket.socket, pid: int, answer: dict[str, Any], sockets: list[socket.socket]
) -> Predecessor:
    if "refused" in answer:
        raise InputError(str(answer["refused"]))
    connection.setblocking(False)
    listen, admin = sockets
    folders = [Path(folder) for folder in answer["folders"]]
    if not folders[0].is_dir():
        raise InputError(
            f"The running gateway keeps what it knows in {folders[0]}, which this process does not see: start "
            "both with the same TMPDIR, in a folder that both see."
        )
    return Predecessor(
        connection=connection,
        pid=pid,
        folders=folders,
        listen=listen,
        admin=admin,
        admin_address=parse_address(answer["admin"]),
    )


def _close(*sockets: socket.socket) -> None:
    for sock in sockets:
        sock.close()


def send_with(connection: socket.socket, message: dict[str, Any], sockets: list[socket.socket]) -> None:
    """Send a message with sockets."""
    numbers = array.array("i", [sock.fileno() for sock in sockets])
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)] if sockets else []
    connection.sendmsg([json.dumps(message).encode()], rights)
