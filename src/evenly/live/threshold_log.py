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
class _Range:
    """The range of some thresholds."""

    lowest: int
    highest: int

    def add(self, threshold: int) -> None:
        self.lowest, self.highest = min(self.lowest, threshold), max(self.highest, threshold)

    def __contains__(self, threshold: int) -> bool:
        return self.lowest <= threshold <= self.highest


class ThresholdLog:
    """Writes `threshold changed` at once, and then at most once per `INTERVAL_S`, with the changes since.

    Each line begins where the one before ended. At a steady load, the threshold goes back and forth between two
    neighbors for ever. So a threshold next to that of the last line is no news if that line had it in its range,
    or if the threshold had it since and left it again. The last line has the last threshold in any case.
    """

    def __init__(self, log: Log, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._due = -inf
        self._logged: int | None = None  # the threshold of the last line; before the first, where it began
        self._threshold = 0
        self._known = self._since = _Range(0, 0)  # that of the last line and what was left since; since that line

    def changed(self, *, before: int, threshold: int) -> None:
        """Log a change."""
        if self._logged is None:
            self._logged, self._known, self._since = before, _Range(before, before), _Range(before, before)
        self._known.add(before)
        self._since.add(before)
        self._since.add(threshold)
        self._threshold = threshold
        self.catch_up()

    def catch_up(self) -> None:
        """Write the changes that wait, if they are news and their time has come. To be called now and then."""
        if self._logged is None or self._clock() < self._due:
            return
        if abs(self._threshold - self._logged) > 1 or self._threshold not in self._known:
            self.close()

    def close(self) -> None:
        """Write the changes that wait, if they lead to another threshold."""
        if self._logged is None or self._threshold == self._logged:
            return
        written = self._log.offer(
            "threshold changed",
            before=self._logged,
            threshold=self._threshold,
            lowest=self._since.lowest,
            highest=self._since.highest,
        )
        self._due = self._clock() + (INTERVAL_S if written else _RETRY_S)
        if written:
            self._logged, self._known = self._threshold, self._since
            self._since = _Range(self._threshold, self._threshold)
