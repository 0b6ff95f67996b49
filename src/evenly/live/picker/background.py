"""Saving the state files whenever the state has changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from evenly.errors import InputError
from evenly.live.log import Log
from evenly.live.picker.state_file import PickerState, save


class StateSaver:
    """Writes `current()` to files whenever it has changed since the last write.

    `paths` returns the files to write now. With 1,000 pools, making the state takes milliseconds, in which picks
    wait. So it is made only if `source()` has changed: all that the state is made of, quick to read and compare.
    """

    def __init__(
        self,
        paths: Callable[[], Sequence[Path]],
        current: Callable[[], PickerState],
        source: Callable[[], object],
        log: Log,
    ) -> None:
        self._paths = paths
        self._current = current
        self._source = source
        self._source_seen: object = None
        self._log = log
        self._state: PickerState | None = None
        self._written: dict[Path, PickerState] = {}
        self._complaints: dict[Path, str] = {}

    def save(self) -> None:
        """Write what is new. A failure is logged once, until a write of that file succeeds."""
        source = self._source()
        if self._state is None or source != self._source_seen:
            state = self._current()
            self._state = self._state if state == self._state else state
            self._source_seen = source
        for path in self._paths():
            if self._state is not None and self._written.get(path) is not self._state:
                self._write(path, self._state)

    def fails(self, path: Path) -> bool:
        """Return whether the last write of this file has failed."""
        return path in self._complaints

    def _write(self, path: Path, state: PickerState) -> None:
        try:
            save(path, state)
        except (OSError, InputError) as error:
            if str(error) != self._complaints.get(path):
                self._log.event("state not written", reason=str(error))
            self._complaints[path] = str(error)
        else:
            self._written[path] = state
            self._complaints.pop(path, None)
