"""Work that runs beside the picks: repeated calls that survive faults, and saving the state file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from evenly.errors import InputError
from evenly.live.log import Log
from evenly.live.picker.state_file import PickerState, save

Work = Coroutine[Any, Any, None]


class StateSaver:
    """Writes `current()` to the file `path` whenever it has changed since the last write."""

    def __init__(self, path: Path, current: Callable[[], PickerState], log: Log) -> None:
        self._path = path
        self._current = current
        self._log = log
        self._saved: PickerState | None = None
        self._complaint = ""

    def save(self) -> None:
        """Write the file if there is something new. A failure is logged once, until a write succeeds."""
        state = self._current()
        if state == self._saved:
            return
        try:
            save(self._path, state)
            self._saved, self._complaint = state, ""
        except (OSError, InputError) as error:
            if str(error) != self._complaint:
                self._log.event("state not written", reason=str(error))
            self._complaint = str(error)


async def repeat(act: Callable[[], None], seconds: float, log: Log) -> None:
    """Call `act` every `seconds` seconds until cancelled. A fault is logged, and the calls continue."""
    while True:
        await asyncio.sleep(seconds)
        try:
            act()
        except Exception as error:
            log.event("fault", where=act.__qualname__, error=repr(error))


@asynccontextmanager
async def running(work: Sequence[Work], log: Log) -> AsyncIterator[None]:
    """Run the work in tasks while the block runs. Picks continue even if some of it fails."""

    async def watched(each: Work) -> None:
        try:
            await each
        except Exception as error:
            log.event("fault", where=getattr(each, "__qualname__", ""), error=repr(error))

    tasks = [asyncio.get_running_loop().create_task(watched(each)) for each in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for each in work:
            each.close()  # if its task was cancelled before it started, Python would warn
