"""The hours of the day in a log's window, for sizing by hour."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenly.logs import SessionLog
from evenly.whatif.concurrency import Concurrency
from evenly.whatif.replay import Replay
from evenly.whatif.sizing import Hour
from evenly.whatif.window import Window

_HOUR = 3600.0
_DAY = 24
_LEAST = 600.0  # seconds measured of an hour of the day: a few say nothing about it
MAX_HOURS = 2400  # a hundred days; a replay stops at each of them

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Hours:
    """The full hours inside a window, in the seconds of the log's starts; `origin` is the time of day at 0."""

    window: Window
    origin: float
    edges: Floats

    def _of(self, times: Floats) -> NDArray[np.int64]:
        """Return the hour of the day of each time."""
        return np.asarray(np.floor((times + self.origin) / _HOUR).astype(np.int64) % _DAY)

    def within(self, run: Replay) -> dict[Hour, float]:
        """Return the share of time within the limit: in each hour of the day, and in all of the window."""
        measured = run.stops >= self.window.first
        stops, over = run.stops[measured], run.over[measured]
        found: dict[Hour, float] = {None: 1 - float(over[-1] - over[0]) / (stops[-1] - stops[0])}
        if self.edges.size:
            lengths, above = np.diff(stops), np.diff(over)
            hours = self._of(0.5 * (stops[1:] + stops[:-1]))
            for hour in np.unique(hours):
                here = hours == hour
                found[int(hour)] = 1 - float(above[here].sum() / lengths[here].sum())
        return found

    def parts(self, held: Concurrency) -> dict[Hour, Concurrency]:
        """Return the open sessions in all of the window, and in each hour of the day that is measured for long."""
        found: dict[Hour, Concurrency] = {None: held}
        if self.edges.size:
            hours = self._of(held.times)
            each = {int(hour): held.part(hours == hour) for hour in np.unique(hours)}
            found |= {hour: part for hour, part in each.items() if part.lengths.sum() >= _LEAST}
        return found


def hours_of(log: SessionLog, window: Window) -> Hours:
    """Return the full hours of a log's window; none without a wall clock, or if they are too many."""
    origin = log.origin if log.has_clock else 0.0
    first = np.ceil((window.first + origin) / _HOUR)
    last = np.floor((window.last + origin) / _HOUR)
    if not log.has_clock or not 1 <= last - first + 1 <= MAX_HOURS:
        return Hours(window, origin, np.zeros(0))
    return Hours(window, origin, np.arange(first, last + 1) * _HOUR - origin)
