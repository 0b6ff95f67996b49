"""`evenly picker` as a child process."""

from __future__ import annotations

import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from typing import IO

from evenly.errors import InputError
from evenly.live.picker.ready import Ready
from evenly.live.processes import end_child, start_child


class PickerProcess:
    """A picker with the given options. It can be started again after it has ended.

    Without `log` it writes its log to this process's standard error.
    """

    name = "picker"

    def __init__(self, options: Sequence[str], log: IO[bytes] | None = None) -> None:
        self._log = log
        self._command = (sys.executable, "-m", "evenly", "picker", "--ready-json", *options)
        self._process: Process | None = None
        self._ready: Ready | None = None

    @property
    def ready(self) -> Ready:
        """What the picker reported when it became ready; only after `wait_ready` has returned True."""
        assert self._ready is not None, "the picker is not ready"
        return self._ready

    async def start(self) -> None:
        """Start the process. It is not ready yet."""
        self._process = await start_child(*self._command, stdout=PIPE, stderr=self._log)

    async def wait_ready(self) -> bool:
        """Wait for the ready line; return False if the process ends first.

        A process that prints something else is ended, and the line is reported as an InputError.
        """
        assert self._process is not None
        assert self._process.stdout is not None
        line = (await self._process.stdout.readline()).decode(errors="replace").strip()
        if not line:
            return False
        try:
            self._ready = Ready.from_json(line)
        except InputError:
            await self.stop()
            raise
        return True

    async def wait_exit(self) -> int:
        """Wait for the process to end; return its exit code."""
        assert self._process is not None
        return await self._process.wait()

    async def stop(self) -> None:
        """End the process if it runs."""
        if self._process is not None:
            await end_child(self._process)
