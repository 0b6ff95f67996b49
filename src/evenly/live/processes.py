"""Processes that we start and that end with us, even if we are killed."""

from __future__ import annotations

import asyncio
import ctypes
import os
import resource
import signal
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable
from contextlib import suppress
from typing import IO

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)
_LIBC = (
    ctypes.CDLL(None) if sys.platform == "linux" else None
)  # elsewhere a killed parent leaves its children behind
_PATIENCE = 5.0


async def start_child(*command: str, stdout: int = DEVNULL, stderr: IO[bytes] | None = None) -> Process:
    """Start a program in a session of its own, where no Ctrl-C of the terminal reaches it: we say when it ends.

    Its errors go where ours go, if nothing else is said.
    """
    parent = os.getpid()

    def die_with_parent() -> None:
        if _LIBC is not None:
            _LIBC.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
            if os.getppid() != parent:  # it died a moment ago
                os._exit(1)

    return await asyncio.create_subprocess_exec(
        *command,
        stdin=DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
        preexec_fn=die_with_parent,
    )


PARTING = signal.SIGUSR1  # from a gateway that drains to its picker, which is then no longer ready


def on_signals(stop: Callable[[], None]) -> None:
    """Stop when asked to. A hang-up means that the terminal is gone; without one it is a habit, and is ignored."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    has_terminal = sys.stdin is not None and sys.stdin.isatty()
    loop.add_signal_handler(signal.SIGHUP, stop if has_terminal else lambda: None)


def allow_files() -> int:
    """Let this process and its children open as many files as they may; returns that number."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


async def end_child(process: Process) -> None:
    """Ask a program to end, and insist after a while."""
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _PATIENCE)
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
