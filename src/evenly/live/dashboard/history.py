"""The last hour in a bounded number of points, kept in the process so that a page that opens now can show it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from evenly.live.dashboard.source import Figures

HOUR_S = 3600.0
SAMPLE_S = 5.0  # between two points
POINTS = int(HOUR_S / SAMPLE_S)


@dataclass(frozen=True, slots=True)
class Point:
    """The figures at one time, in seconds since the epoch. `starts` is a total since the start."""

    time: float
    sessions: int
    starts: int
    threshold: int | None
    spread: float

    def row(self) -> list[object]:
        """Return it as the page gets it."""
        return [round(self.time, 1), self.sessions, self.starts, self.threshold, round(self.spread, 3)]


class History:
    """The points of the last hour."""

    def __init__(self) -> None:
        self._points: deque[Point] = deque(maxlen=POINTS)
        self._due = 0.0

    def note(self, figures: Figures, now: float) -> Point:
        """Add a point."""
        self._due = now + SAMPLE_S
        point = Point(now, figures.sessions, figures.starts, figures.threshold, figures.spread)
        self._points.append(point)
        return point

    def is_due(self, now: float) -> bool:
        """Return whether it is time for the next point. A clock that was set back does not stop the history."""
        return now >= self._due or now < self._due - 2 * SAMPLE_S

    def rows(self) -> Iterator[list[object]]:
        """Yield the points as the page gets them, oldest first."""
        return (point.row() for point in list(self._points))
