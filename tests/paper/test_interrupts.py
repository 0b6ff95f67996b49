"""A long run can be stopped at any time, leaves no process behind, and reports a worker that was killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

PATIENCE = 120.0


def children(pid: int) -> list[int]:
    """Return the children of a process, none if it has ended."""
    with suppress(OSError):
        return [*map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split())]
    return []


def running(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    return False


def ignores_interrupts(pid: int) -> bool:
    """Return whether a worker is set up: an interrupt is for its parent."""
    with suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        ignored = int(status.partition("SigIgn:")[2].split()[0], 16)
        return bool(ignored & 1 << signal.SIGINT - 1)
    return False


def within_patience(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def strike(tmp_path: Path, blow: Callable[[int, list[int]], None]) -> tuple[int, str]:
    """Start a full run, call `blow` with it and its workers once they work, and return how it ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "evenly", "paper", "--out", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert within_patience(lambda: len(children(process.pid)) >= min(2, len(os.sched_getaffinity(0))))
        workers = children(process.pid)
        assert within_patience(lambda: all(map(ignores_interrupts, workers)))
        blow(process.pid, workers)
        _, error = process.communicate(timeout=PATIENCE)
        assert within_patience(lambda: not any(running(worker) for worker in workers))
        return process.returncode, error
    finally:
        process.kill()
        process.communicate()


def test_an_interrupt_ends_all_processes(tmp_path: Path) -> None:
    code, error = strike(tmp_path, lambda pid, _: os.killpg(pid, signal.SIGINT))
    assert code == 130
    assert "Traceback" not in error


def test_no_worker_outlives_the_command(tmp_path: Path) -> None:
    code, _ = strike(tmp_path, lambda pid, _: os.kill(pid, signal.SIGTERM))
    assert code == -signal.SIGTERM


def test_a_killed_worker_is_reported(tmp_path: Path) -> None:
    code, error = strike(tmp_path, lambda _, workers: os.kill(workers[0], signal.SIGKILL))
    assert (code, error) == (3, "evenly: A worker process was killed, perhaps because memory ran out.\n")
