"""Child processes that end with their parent, even if the parent is killed."""

from __future__ import annotations

import asyncio
import ctypes
import os
import resource
import signal
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None  # elsewhere children survive a killed parent
_TERMINATE_TIMEOUT_S = 5.0
_GROUPS = Path("/sys/fs/cgroup")


async def start_child(
    *command: str,
    stdout: int = DEVNULL,
    stderr: int | IO[bytes] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Process:
    """Start a program in its own session, so that Ctrl-C in the terminal reaches only its parent.

    Without `stderr` the child writes to the parent's standard error. Without `environment` it inherits the
    parent's.
    """
    parent = os.getpid()

    def die_with_parent() -> None:
        if _LIBC is not None:
            _LIBC.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
            if os.getppid() != parent:  # the parent died before the call
                os._exit(1)

    return await asyncio.create_subprocess_exec(
        *command,
        stdin=DEVNULL,
        stdout=stdout,
        stderr=stderr,
        env=environment,
        start_new_session=True,
        preexec_fn=die_with_parent,
    )


async def end_child(process: Process) -> None:
    """Terminate a program, and kill it if it has not ended after 5 seconds."""
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(_TERMINATE_TIMEOUT_S):  # wait_for can lose a cancellation
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def last_line(log: IO[bytes]) -> str:
    """Return the last line that children have written to a log file."""
    log.seek(0)
    lines = log.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it gave no reason."


def raise_fd_limit() -> int:
    """Raise the limit of open files to its hard limit, for this process and its children. Return the new limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def available_memory() -> int:
    """Return the bytes of memory that this process may use: those of the machine, or fewer in a control group."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    return min(limits + [limit for (limit,) in _group_limits("memory.max")])


def available_processors() -> int:
    """Return how many processors this process may use: those of the machine, or fewer in a control group."""
    limits = [os.cpu_count() or 1]
    return min(limits + [max(quota // period, 1) for quota, period in _group_limits("cpu.max")])


def _group_limits(file: str) -> Iterator[list[int]]:
    """Yield the numbers in the file of this process's control group, and of each group around it."""
    group = _GROUPS / control_group()
    for folder in (group, *group.parents):
        with suppress(OSError, ValueError):  # no such file, or the word max
            yield [int(word) for word in (folder / file).read_text(encoding="ascii").split()]


def control_group() -> str:
    """Return the path of this process's control group (version 2), empty for the outermost."""
    with suppress(OSError):
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
        return next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), "")
    return ""
