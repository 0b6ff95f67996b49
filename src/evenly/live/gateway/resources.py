"""What a gateway holds for its children: ports, a private folder, and the limits of the machine."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evenly.errors import InputError
from evenly.live.addresses import Address, resolve
from evenly.live.envoy.limits import MAX_CONNECTIONS, Limits, derive_limits
from evenly.live.processes import available_memory, raise_fd_limit

_ENOUGH_FILES = 3 * MAX_CONNECTIONS  # stands for no limit


@contextmanager
def reserved_port(address: Address) -> Iterator[Address]:
    """Hold a port for a child that listens there, also after a restart. Port 0 takes a free one.

    A socket that is bound but does not listen keeps the kernel from giving the port to another program.
    """
    address = resolve(address)
    with socket.socket(socket.AF_INET6 if ":" in address.host else socket.AF_INET) as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            holder.bind(address)
        except OSError as error:
            raise InputError(f"Cannot listen on {address}: {(error.strerror or str(error)).lower()}.") from None
        yield Address(address.host, holder.getsockname()[1])


@contextmanager
def private_folder() -> Iterator[Path]:
    """Make a folder that is removed with this process, even if it is killed.

    A shell removes it when the pipe from this process closes.
    """
    folder = tempfile.mkdtemp(prefix="evenly-gateway-")
    command = ("/bin/sh", "-c", 'read -r _; rm -rf "$1"', "sh", folder)
    # Leaving the block closes the pipe.
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True):
        yield Path(folder)


def machine_limits(pools: int) -> Limits:
    """Return the limits of an Envoy on this machine. The limit of open files is raised first."""
    files = raise_fd_limit()
    if files == resource.RLIM_INFINITY:
        files = _ENOUGH_FILES
    threads = os.cpu_count() or 1  # Envoy starts at most one for each processor
    return derive_limits(files=files, memory=available_memory(), pools=pools, threads=threads)
