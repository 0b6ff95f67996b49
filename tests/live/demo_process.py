"""`evenly demo` as a process of the tests: its family, its terminal, and how it ends."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PATIENCE = 60.0


def descendants(pid: int) -> dict[int, str]:
    """Return the descendants of a process: pid and command."""
    found: dict[int, str] = {}
    parents = [pid]
    while parents:
        parent = parents.pop()
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            with suppress(OSError):  # the thread has ended
                for child in map(int, children.read_text().split()):
                    found[child] = command_of(child)
                    parents.append(child)
    return found


def command_of(pid: int) -> str:
    """Return the command of a process, or an empty string if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def eventually(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def check_all_gone(family: dict[int, str]) -> None:
    eventually(lambda: [pid for pid, command in family.items() if command and command_of(pid) == command] == [])


@contextmanager
def demo(
    *words: str, stdout: int, stderr: int, environment: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "evenly", "demo", *words]
    environment = {**os.environ, **(environment or {})}
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env=environment
    ) as process:
        try:
            yield process
        finally:
            process.terminate()  # if it runs still, it cleans up


def check_ctrl_c(*words: str, shown: bytes, is_complete: Callable[[dict[int, str]], bool]) -> None:
    """Run the demo in a terminal until `shown` is on the screen, press Ctrl-C, and check what is left."""
    ours, theirs = pty.openpty()
    try:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        with demo(*words, stdout=theirs, stderr=theirs) as process:
            os.close(theirs)
            seen = bytearray()
            eventually(lambda: shown in _read_more(ours, seen))
            family = descendants(process.pid)
            assert is_complete(family)
            process.send_signal(signal.SIGINT)
            with suppress(AssertionError):
                eventually(lambda: _read_more(ours, seen).endswith(b"Stopped.\r\n"))
            assert seen.endswith(b"Stopped.\r\n"), seen[-2000:]
            assert process.wait(PATIENCE) == 130
    finally:
        os.close(ours)
    check_all_gone(family)
    assert seen.count(b"\x1b[?1049h") == seen.count(b"\x1b[?1049l") == 1  # the screen is as it was before
    assert b"Traceback" not in seen


def _read_more(terminal: int, seen: bytearray) -> bytearray:
    if select.select([terminal], [], [], 0.1)[0]:
        with suppress(OSError):  # the writer has gone
            seen += os.read(terminal, 2**16)
    return seen
