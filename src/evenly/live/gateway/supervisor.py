"""The gateway: Envoy in front, the picker beside it, and this supervisor, which starts either again if it dies.

Sessions live in Envoy, so the picker may die at any time. What it must not forget is in a file of a private
folder, and all ports stay the same, so that each finds the other again.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import subprocess
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

from evenly.errors import InputError
from evenly.live.addresses import Address, resolve
from evenly.live.envoy.bootstrap import envoy_config
from evenly.live.envoy.bootstrap_clusters import MOST_CONNECTIONS
from evenly.live.envoy.process import ADMIN_PATHS, EnvoyProcess, find_envoy
from evenly.live.log import Log
from evenly.live.processes import PARTING, allow_files, end_child, on_signals, start_child
from evenly.live.settings import Settings

_LOOPBACK = Address("127.0.0.1", 0)
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0
_LOOK_AGAIN = 0.1
_BAD_INPUT, _FAILED = 2, 1
_OTHER_FILES, _FEWEST = 500, 100  # files, in pairs as sessions need them; clients


class Child(Protocol):
    """A process that is kept running."""

    name: str

    async def start(self) -> None:
        """Start it."""

    async def ready(self) -> bool:
        """Wait until it does its work; False if it ends instead."""

    async def ended(self) -> int:
        """Wait for its end; its exit code."""

    async def stop(self) -> None:
        """End it, if it runs."""


class PickerProcess:
    """`evenly picker`. Its log goes where ours goes, if nothing else is said."""

    name = "picker"

    def __init__(self, options: Sequence[str], log: IO[bytes] | None = None) -> None:
        self.said = ""
        self._log = log
        self._command = (sys.executable, "-m", "evenly", "picker", *options)
        self._process: Process | None = None

    async def start(self) -> None:
        """Start it; it is not ready yet."""
        self._process = await start_child(*self._command, stdout=PIPE, stderr=self._log)

    async def ready(self) -> bool:
        """Wait for the line that says so; False if it ends instead."""
        assert self._process is not None
        assert self._process.stdout is not None
        self.said = (await self._process.stdout.readline()).decode().strip()
        return bool(self.said)

    async def ended(self) -> int:
        """Wait for its end; its exit code."""
        assert self._process is not None
        return await self._process.wait()

    def part(self) -> None:
        """Let it say that no new sessions are welcome."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(PARTING)

    async def stop(self) -> None:
        """End it, if it runs."""
        if self._process is not None:
            await end_child(self._process)


class Gateway:
    """The supervisor."""

    def __init__(
        self, listen: Address, picker: PickerProcess, envoy: EnvoyProcess, drain: float, log: Log
    ) -> None:
        self._listen = listen
        self._picker = picker
        self._envoy = envoy
        self._drain_seconds = drain
        self._log = log
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._keepers: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> int:
        """Serve until a signal comes and the sessions have ended; the exit code."""
        on_signals(self._signalled)
        try:
            code = await self._begin_unless_stopped()
            if self._envoy.name in self._keepers:  # it serves
                await self._stop.wait()
                await self._drain()
            return code
        finally:
            await self._end()

    def _signalled(self) -> None:
        """The first signal asks to stop, the second to stop at once."""
        (self._hurry if self._stop.is_set() else self._stop).set()

    async def _begin_unless_stopped(self) -> int:
        beginning = asyncio.ensure_future(self._begin())
        stop = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait({beginning, stop}, return_when=asyncio.FIRST_COMPLETED)
        for task in (beginning, stop):
            task.cancel()
        await asyncio.wait({beginning, stop})
        return 0 if beginning.cancelled() else beginning.result()

    async def _begin(self) -> int:
        """Start the picker, then Envoy, and say so. Not 0 if one of them ends at once: it has said why."""
        for child in (self._picker, self._envoy):
            await child.start()
            if not await child.ready():
                code = await child.ended()
                return _BAD_INPUT if code == _BAD_INPUT else _FAILED
            self._keepers[child.name] = asyncio.ensure_future(self._keep(child))
        about = self._picker.said.partition(", ")[2]  # its admin port, pools and policy
        print(f"evenly gateway: listening on http://{self._listen}, {about}", flush=True)
        return 0

    async def _keep(self, child: Child) -> None:
        """Start a child again whenever it dies; one that dies at once, less and less often."""
        loop = asyncio.get_running_loop()
        wait = _FIRST_WAIT
        while True:
            began = loop.time()
            self._log.event(f"{child.name} died", code=await child.ended())
            if loop.time() - began > _LONGEST_WAIT:
                wait = _FIRST_WAIT
            await asyncio.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)
            try:
                await child.start()
            except OSError as error:  # no memory, no processes left
                self._log.event(f"{child.name} cannot start", reason=str(error))
            else:
                if await child.ready():
                    self._log.event(f"{child.name} is back")

    async def _drain(self) -> None:
        """Take no new clients, and wait until the sessions have ended, for as long as is allowed."""
        loop = asyncio.get_running_loop()
        self._keepers[self._envoy.name].cancel()  # a new one would listen again
        deadline = loop.time() + self._drain_seconds
        self._log.event("draining", seconds=self._drain_seconds)
        self._picker.part()
        await self._envoy.stop_listening()
        told = 0.0
        while self._envoy.running and not self._hurry.is_set():
            sessions = await self._envoy.open_sessions()
            if sessions == 0 or loop.time() >= deadline:
                break
            if loop.time() >= told + 1:
                told = loop.time()
                self._log.event("sessions open", sessions=sessions, seconds_left=round(deadline - told, 1))
            await asyncio.sleep(_LOOK_AGAIN)

    async def _end(self) -> None:
        """Envoy first: while it has sessions it needs the picker."""
        for keeper in self._keepers.values():
            keeper.cancel()
        if self._keepers:
            await asyncio.wait(self._keepers.values())
        await self._envoy.stop()
        await self._picker.stop()
        if self._keepers:
            self._log.event("gateway stopped")


def run(settings: Settings, given: Mapping[str, Any], config: Path | None) -> int:
    """Run a gateway until it is told to stop; the exit code.

    The picker gets the options and the config file as they were given: it watches the file for changes of pools.
    """
    find_envoy()
    log = Log(sys.stderr)
    with ExitStack() as stack:
        listen = stack.enter_context(_reserved(settings.listen))
        admin = stack.enter_context(_reserved(settings.admin))
        picker, envoy_admin = (stack.enter_context(_reserved(_LOOPBACK)) for _ in range(2))
        folder = stack.enter_context(_private_folder())
        bootstrap = envoy_config(
            listen=listen,
            picker=picker,
            pools=None,
            admin=envoy_admin,
            health_path=settings.health_path,
            connections=_connections(),
        )
        bootstrap["admin"]["allow_paths"] = [{"prefix": path} for path in (*ADMIN_PATHS, "/clusters")]
        options = _picker_options(
            {**given, "listen": picker, "admin": admin, "state": folder / "picker.json"}, config
        )
        gateway = Gateway(listen, PickerProcess(options), EnvoyProcess(bootstrap, folder), settings.drain, log)
        return asyncio.run(gateway.run())


def _picker_options(values: Mapping[str, Any], config: Path | None) -> list[str]:
    """The command line of the picker: as the gateway's, apart from what only concerns Envoy and clients."""
    words = [] if config is None else ["--config", str(config)]
    for name, value in values.items():
        if name not in {"drain", "health_path"}:
            for one in value if isinstance(value, list) else [value]:
                words += [f"--{name.replace('_', '-')}", str(one)]
    return words


@contextmanager
def _reserved(address: Address) -> Iterator[Address]:
    """Hold a port, a free one for 0, for a program that will listen there, and listen again after its death.

    A socket that is bound but does not listen keeps the port from everybody but those who ask for it by number.
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
def _private_folder() -> Iterator[Path]:
    """A folder that goes away with us, even if we are killed: a shell removes it when our pipe to it ends."""
    folder = tempfile.mkdtemp(prefix="evenly-gateway-")
    command = ("/bin/sh", "-c", 'read -r _; rm -rf "$1"', "sh", folder)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, start_new_session=True
    ):  # the end of `with` closes the pipe
        yield Path(folder)


def _connections() -> int:
    """How many clients Envoy may take, by the files that it may open: past those it would lose all sessions."""
    most = allow_files()
    if most == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return min(max(most // 2 - _OTHER_FILES, _FEWEST), MOST_CONNECTIONS)
