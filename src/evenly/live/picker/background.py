"""Saving the state file whenever the state has changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from evenly.errors import InputError
from evenly.live.log import Log
from evenly.live.picker.state_file import PickerState, save


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
