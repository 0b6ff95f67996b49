"""`evenly demo` as users run it: with real Envoy, picker, pools and sessions; in a pipe and in a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
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

import pytest

from evenly.live.demo.plan import Plan

pytestmark = pytest.mark.envoy

PATIENCE = 60.0
SECONDS = 18.0


def descendants(pid: int) -> dict[int, str]:
    """Return the descendants of a process: pid and command."""
    found: dict[int, str] = {}
    parents = [pid]
    while parents:
        parent = parents.pop()
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
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


def is_complete(family: dict[int, str]) -> bool:
    commands = list(family.values())
    return (
        sum("evenly.live.demo.pools" in command for command in commands) == 2
        and any("evenly picker" in command for command in commands)
        and any("envoy" in command.partition(" ")[0] for command in commands)
    )


def check_all_gone(family: dict[int, str]) -> None:
    eventually(lambda: [pid for pid, command in family.items() if command and command_of(pid) == command] == [])


@contextmanager
def demo(*options: str, stdout: int, stderr: int) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "evenly", "demo", *options]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr) as process:
        try:
            yield process
        finally:
            process.terminate()  # if it runs still, it cleans up


def test_the_demo_in_a_pipe() -> None:
    """Too short to settle, but every session counts, and least-request is less even by far."""
    with demo("--seconds", str(SECONDS), "--seed", "3", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        eventually(lambda: is_complete(descendants(process.pid)) or process.poll() is not None)
        family = descendants(process.pid)
        out, complaints = (text.decode() for text in process.communicate(timeout=PATIENCE))
    assert (process.returncode, complaints) == (0, "")
    check_all_gone(family)
    lines = out.splitlines()
    heading, *moments = lines[: lines.index("")]
    _, _, titles, *rows = lines[lines.index("") + 1 :]
    assert "20 pools" in heading
    assert moments
    assert all(re.match(r" *\d+ s  load +[\d.]+  threshold", moment) for moment in moments)
    assert titles.split()[:3] == ["load", "threshold", "best"]
    figures = [[float(word) for word in row.split()] for row in rows[:3]]
    assert [row[0] for row in figures] == [5.5, 10.5, 2.5]
    # A few seconds per load only allow a weak claim: overall, evenly is more even than least-request.
    assert sum(row[3] for row in figures) < sum(row[5] for row in figures)
    visits = len(Plan(SECONDS, 3).visits())
    assert f"None of {2 * visits:,} sessions failed." in " ".join(out.split())


def test_the_demo_in_a_terminal_ends_cleanly_by_ctrl_c() -> None:
    ours, theirs = pty.openpty()
    try:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        with demo(stdout=theirs, stderr=theirs) as process:
            os.close(theirs)
            seen = bytearray()
            eventually(lambda: b"learned threshold" in read_more(ours, seen))
            family = descendants(process.pid)
            assert is_complete(family)
            process.send_signal(signal.SIGINT)
            with suppress(AssertionError):
                eventually(lambda: read_more(ours, seen).endswith(b"Stopped.\r\n"))
            assert seen.endswith(b"Stopped.\r\n"), seen[-2000:]
            assert process.wait(PATIENCE) == 130
    finally:
        os.close(ours)
    check_all_gone(family)
    assert seen.count(b"\x1b[?1049h") == seen.count(b"\x1b[?1049l") == 1  # the screen is as it was before
    assert b"Traceback" not in seen


def read_more(terminal: int, seen: bytearray) -> bytearray:
    if select.select([terminal], [], [], 0.1)[0]:
        with suppress(OSError):  # the writer has gone
            seen += os.read(terminal, 2**16)
    return seen
