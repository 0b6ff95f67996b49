"""What a gateway holds for its children: ports, a private folder, and the limits of the machine."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from evenly.errors import InputError
from evenly.live.addresses import Address, resolve
from evenly.live.envoy.limits import MAX_CONNECTIONS, Limits, derive_limits
from evenly.live.envoy.listen_socket import LONGEST_NAME
from evenly.live.listening import first_of
from evenly.live.processes import available_memory, available_processors, raise_fd_limit

_ENOUGH_FILES = 3 * MAX_CONNECTIONS  # stands for no limit
_SERVERS_PER_NAME = 100  # that DNS may list
_FILES_PER_GUESS = 32  # at most one such server for this number of files: a small machine must start too
_MAX_SOCKET_PATH = 107  # bytes that fit into the kernel's sun_path


@contextmanager
def reserved_port(address: Address) -> Iterator[Address]:
    """Hold a port for a child that listens there, also after a restart. Port 0 takes a free one.

    A socket that is bound but does not listen keeps the kernel from giving the port to another program.
    """
    with reserved_socket(address) as holder:
        yield bound_to(holder)


@contextmanager
def reserved_admin(choices: Sequence[Address]) -> Iterator[socket.socket]:
    """Hold the admin port for the picker: the first of these that is free.

    Gateways that start together could hold the same port, since none listens there yet, and their pickers would
    share it. So each takes an abstract Unix socket first, whose name has one owner in the network namespace.
    """
    with ExitStack() as stack:

        def opened(address: Address) -> socket.socket:
            sock = reserved_socket(address)
            owner = stack.enter_context(socket.socket(socket.AF_UNIX))
            try:
                owner.bind(f"\0evenly-gateway-admin/{bound_to(sock)}")
            except OSError:
                sock.close()
                raise InputError(f"Cannot listen on {address}: address already in use.") from None
            return stack.enter_context(sock)

        yield first_of(choices, opened)


def reserved_socket(address: Address) -> socket.socket:
    """Return a socket that holds a port. Port 0 takes a free one."""
    address = resolve(address)
    try:
        return _bound(address)
    except OSError as error:
        raise InputError(f"Cannot listen on {address}: {(error.strerror or str(error)).lower()}.") from None


def bound_to(sock: socket.socket) -> Address:
    """Return the address that a socket is bound to."""
    return Address(*sock.getsockname()[:2])


def _bound(address: Address) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ":" in address.host else socket.AF_INET)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
    except OSError:
        sock.close()
        raise
    return sock


@contextmanager
def private_folder() -> Iterator[Path]:
    """Make a folder that is removed with this process, even if it is killed. Other users cannot open it.

    A shell removes it when the pipe from this process closes.
    """
    folder = _short_folder()
    command = ("/bin/sh", "-c", 'read -r _; rm -rf "$1"', "sh", folder)
    # Leaving the block closes the pipe.
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True):
        yield Path(folder)


def _short_folder() -> str:
    """Make a folder in TMPDIR, or in /tmp if a Unix socket in TMPDIR would have too long a path."""
    parent = tempfile.gettempdir()
    usual = Path(parent, "evenly-gateway-12345678", LONGEST_NAME)
    if len(os.fsencode(usual)) > _MAX_SOCKET_PATH or not str(usual).isprintable():  # not printable: not UTF-8
        parent = "/tmp"
    try:
        return tempfile.mkdtemp(prefix="evenly-gateway-", dir=parent)
    except OSError as error:
        raise InputError(f"Cannot make a folder in {parent}: {(error.strerror or str(error)).lower()}.") from None


def machine_limits(pools: int, names: int = 0) -> Limits:
    """Return the limits of an Envoy on this machine. The limit of open files is raised first.

    How many servers DNS will list under the `names` is not known yet, so room is made for a guess.
    """
    files = raise_fd_limit()
    if files == resource.RLIM_INFINITY:
        files = _ENOUGH_FILES
    guess = min(_SERVERS_PER_NAME * names, files // _FILES_PER_GUESS)
    return derive_limits(
        files=files, memory=available_memory(), pools=pools + guess, processors=available_processors()
    )
