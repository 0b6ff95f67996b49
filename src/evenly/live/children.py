"""Processes that we start and that end with us, even if we are killed."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, Process
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
