"""Saving the state file whenever the state has changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from evenly.errors import InputError
from evenly.live.log import Log
from evenly.live.picker.state_file import PickerState, save


class StateSaver:
    """Writes `current()` to the file `path` whenever it has changed since the last write.

    With 1,000 pools, making the state takes milliseconds, in which picks wait. So it is made only if `source()`
    has changed: all that the state is made of, quick to read and to compare.
    """

    def __init__(
        self, path: Path, current: Callable[[], PickerState], source: Callable[[], object], log: Log
    ) -> None:
        self._path = path
        self._current = current
        self._source = source
        self._saved_source: object = None
        self._log = log
        self._saved: PickerState | None = None
        self._complaint = ""

    def save(self) -> None:
        """Write the file if there is something new. A failure is logged once, until a write succeeds."""
        source = self._source()
        if self._saved is not None and source == self._saved_source:
            return
        state = self._current()
        try:
            if state != self._saved:
                save(self._path, state)
            self._saved, self._saved_source, self._complaint = state, source, ""
        except (OSError, InputError) as error:
            if str(error) != self._complaint:
                self._log.event("state not written", reason=str(error))
            self._complaint = str(error)
