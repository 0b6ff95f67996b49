"""Real processes for benchmarks: they start together, stop at the end of the block, and report processor time."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

from evenly.live.addresses import Address
from evenly.live.envoy.process import find_envoy

HOST = "127.0.0.1"
TIMEOUT_S = 30.0  # for a process to start
ALPHA = "0.65"  # the picker computes it for 20 pools in its first seconds, on an idle core
_ports = iter(random.sample(range(10_000, 32_000), 22_000))  # below the ephemeral ports of the kernel
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_TICKS = os.sysconf("SC_CLK_TCK")

Config = dict[str, Any]


def free_addresses(count: int) -> list[Address]:
    """Return free addresses. No address is returned twice, so a process may bind its address later."""
    found: list[Address] = []
    while len(found) < count:
        port = next(_ports)
        with suppress(OSError), socket.create_server((HOST, port)):
            found.append(Address(HOST, port))
    return found


def tries(complaint: str) -> Iterator[None]:
    """Yield once per try, until the timeout. Then raise a RuntimeError with the complaint."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        yield
        time.sleep(0.02)
    raise RuntimeError(complaint)


class Process:
    """A process that is stopped at the end of the block and must not end before. Several can start in parallel."""

    def __init__(self, command: Sequence[str], ready: Callable[[], bool]) -> None:
        self._ready = ready
        self._said = os.memfd_create("said")
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._said, stderr=self._said)

    @property
    def number(self) -> int:
        """The process id."""
        return self._process.pid

    def wait(self) -> None:
        """Wait until it is ready."""
        for _ in tries(f"{self._process.args!r} did not start"):
            self.check()
            if self._ready():
                return

    def check(self) -> None:
        """Raise a RuntimeError if the process has ended."""
        if self._process.poll() is not None:
            said = os.pread(self._said, 2**16, 0).decode(errors="replace")
            raise RuntimeError(f"{self._process.args!r} ended by itself: {said}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.check()
        finally:
            self._process.kill()
            self._process.wait()
            os.close(self._said)


class Processes(ExitStack):
    """Processes that start together and are stopped at the end of the block."""

    def __init__(self) -> None:
        super().__init__()
        self._all: list[Process] = []

    def add(self, process: Process) -> Process:
        """Add a process, which is stopped at the end of the block."""
        self._all.append(self.enter_context(process))
        return process

    def wait(self) -> None:
        """Wait until all of them are ready."""
        for process in self._all:
            process.wait()


def listens(address: Address) -> bool:
    """Return True if the address accepts connections."""
    try:
        socket.create_connection(address, timeout=1).close()
    except OSError:
        return False
    return True


def fetch(url: str) -> str | None:
    """Return the response of a local HTTP server, or None if there is no response."""
    try:
        with _direct.open(url, timeout=5) as answer:
            return str(answer.read().decode())
    except OSError:
        return None


def cpu_seconds(process: int) -> float:
    """Return the processor time that a process has used, in user and kernel mode."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def busy_seconds() -> float:
    """Return the total busy time of all cores."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / _TICKS  # without idle and I/O wait


def evenly_picker(listen: Address, admin: Address, pools: Sequence[Address]) -> Process:
    """Start `evenly picker`."""
    options = [option for pool in pools for option in ("--pool", str(pool))]
    start = [sys.executable, "-m", "evenly", "picker", "--listen", str(listen), "--admin", str(admin)]
    return Process([*start, "--alpha", ALPHA, *options], lambda: listens(listen))


def envoy(config: Config, folder: Path, *, concurrency: int = 1) -> Process:
    """Start Envoy with this config."""
    admin = config["admin"]["address"]["socket_address"]
    file = folder / f"envoy-{admin['port_value']}.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    options = ["--concurrency", str(concurrency), "-l", "error", "--disable-hot-restart"]
    url = f"http://{HOST}:{admin['port_value']}/ready"
    command = [str(find_envoy()), "-c", str(file), *options]
    return Process(command, lambda: (fetch(url) or "").startswith("LIVE"))
