"""Helpers for tests of real processes: ports, waiting, HTTP requests, and programs that can be killed."""

from __future__ import annotations

import atexit
import http.client
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Self, TypeVar

_MAX_PRINTED = 4000  # characters: Envoy writes a line for each session without a picker
PATIENCE = 60.0  # seconds, for what takes milliseconds on an idle machine

T = TypeVar("T")


def free_port() -> int:
    """Return a loopback port for a server, which can be restarted on it. No port is given out twice.

    A socket that is bound but does not listen holds the port until the tests end. Only a server that names this
    port and sets SO_REUSEADDR, as ours do, can listen on it.
    """
    holder = socket.socket()
    atexit.register(holder.close)
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    return int(holder.getsockname()[1])


def eventually(look: Callable[[], T], wanted: Callable[[T], object], seconds: float = PATIENCE) -> T:
    """Call `look` until `wanted` accepts its result, and return it. Fail after `seconds` with the last result."""
    deadline = time.monotonic() + seconds
    while True:
        last = time.monotonic() > deadline
        seen = look()
        if wanted(seen):
            return seen
        assert not last, f"After {seconds} s it is still {seen!r}."
        time.sleep(0.01)


def ask(port: int, path: str, method: str = "GET", body: object = None) -> tuple[int, str]:
    """Send one HTTP request to a loopback port; return the status and the body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        sent = None if body is None else json.dumps(body)
        connection.request(method, path, sent, {"content-type": "application/json"} if sent else {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


class Process:
    """A program that can be killed and started again."""

    def __init__(self, *command: str) -> None:
        self.command = command
        self._output = TemporaryFile()  # noqa: SIM115
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        print(f"--- {' '.join(self.command)}\n{self.output()[-_MAX_PRINTED:]}")
        self._output.close()

    @property
    def pid(self) -> int:
        return self._running().pid

    def start(self) -> None:
        """Start it, without waiting until it is ready."""
        assert self._process is None
        self._process = subprocess.Popen(
            self.command, stdin=subprocess.DEVNULL, stdout=self._output, stderr=self._output
        )

    def kill(self, number: signal.Signals = signal.SIGKILL) -> int:
        """End it and return its exit code, 0 if it does not run."""
        if self._process is None:
            return 0
        self._process.send_signal(number)
        code = self._process.wait(PATIENCE)
        self._process = None
        return code

    def send(self, number: signal.Signals) -> None:
        self._running().send_signal(number)

    def output(self) -> str:
        """Return all its output, of every start."""
        number = self._output.fileno()  # shared with the process, so its position must not move
        return os.pread(number, os.fstat(number).st_size, 0).decode(errors="replace")

    def memory(self) -> int:
        """Return the resident memory in bytes."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return 1024 * int(status.split("VmRSS:")[1].split()[0])

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def ready_line(self, lines_before: int, start: str) -> str:
        """Wait for one more line that starts like this than there were before."""

        def lines() -> list[str]:
            assert self._running().poll() is None, f"It ended at once: {self.output()}"
            return [line for line in self.output().splitlines(keepends=True) if line.startswith(start)]

        return eventually(lines, lambda seen: len(seen) > lines_before and seen[-1].endswith("\n"))[-1]
