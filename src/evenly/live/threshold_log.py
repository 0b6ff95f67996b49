"""The log lines about the threshold. Under load it changes many times per second, and the changes share a line."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from evenly.live.log import Log

INTERVAL_S = 10.0  # between two lines
_RETRY_S = 1.0  # until a line is tried again that the log left out


@dataclass(slots=True)
class _Changes:
    """Changes that are not logged yet: where they began and ended, their number, their range, and other facts."""

    before: int
    threshold: int
    changes: int
    lowest: int
    highest: int
    facts: dict[str, object]


class ThresholdLog:
    """Writes `threshold changed` at once, and then at most once per `INTERVAL_S`, with the changes since.

    A threshold that is back where the last line left it is no news: its changes wait until it is elsewhere. So
    each line begins where the one before ended, and has all changes in between.
    """

    def __init__(self, log: Log, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._due = -inf
        self._waiting: _Changes | None = None

    def changed(self, *, before: int, threshold: int, changes: int, **facts: object) -> None:
        """Log `changes` changes, the first from `before`, the last to `threshold`. A line has the last `facts`."""
        lowest, highest = min(before, threshold), max(before, threshold)
        if self._waiting is not None:
            before, changes = self._waiting.before, self._waiting.changes + changes
            lowest, highest = min(lowest, self._waiting.lowest), max(highest, self._waiting.highest)
        self._waiting = _Changes(before, threshold, changes, lowest, highest, facts)
        self.catch_up()

    def catch_up(self) -> None:
        """Write the changes that wait, if their time has come. To be called now and then."""
        if self._clock() >= self._due:
            self.close()

    def close(self) -> None:
        """Write the changes that wait, if they lead to another threshold."""
        waiting = self._waiting
        if waiting is None or waiting.before == waiting.threshold:
            return
        written = self._log.offer(
            "threshold changed",
            before=waiting.before,
            threshold=waiting.threshold,
            changes=waiting.changes,
            lowest=waiting.lowest,
            highest=waiting.highest,
            **waiting.facts,
        )
        self._due = self._clock() + (INTERVAL_S if written else _RETRY_S)
        if written:
            self._waiting = None
