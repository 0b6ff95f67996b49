"""How far a sweep is, and how long the rest takes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple


class Status(NamedTuple):
    """The state of a sweep. `reused` points were done before; `seconds_left` is None until there is a measure.

    `device_seconds` is the time that a GPU has worked.
    """

    points: int
    reused: int
    done: int
    failed: int
    seconds_left: float | None
    device_seconds: float = 0.0

    @property
    def fraction(self) -> float:
        """The share of all points that is done, from 0 to 1."""
        return (self.reused + self.done) / self.points if self.points else 1.0


Progress = Callable[[Status], None]
_LEAST_S = 1.0  # to measure before there is an estimate
_MARKS = 1000  # times at which to remember how far a sweep was


class Pace:
    """The speed of a sweep over the later half of its time, so that a slow start is forgotten.

    Points run in an order in which any stretch is typical of the whole grid. The time per point so far is
    therefore an estimate for the points to come, also if some cost a thousand times more than others.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._marks: deque[tuple[float, int]] = deque()

    def seconds_left(self, done: int, left: int) -> float | None:
        """Return how long the points that are left take, given how many are done; None if it is not known yet."""
        now = self._clock()
        if not self._marks:
            if done:  # from here on: what was before is the start of processes
                self._start = now
                self._marks.append((now, done))
            return None
        if now - self._marks[-1][0] >= (now - self._start) / _MARKS:
            self._marks.append((now, done))
        while len(self._marks) > 2 and self._marks[1][0] <= (now + self._start) / 2:
            self._marks.popleft()
        then, before = self._marks[0]
        if done <= before or now - self._start < _LEAST_S:
            return None
        return left * (now - then) / (done - before)
