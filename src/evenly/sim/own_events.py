"""Where the events come from that a policy of the user's own decides about.

Each task has a number while it is in the system. A source draws batches of arrivals and departures; the numbers
below its `size` are all that it uses.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from evenly.sim.kernels.ahead import (
    NUMBER_BITS,
    Events,
    Tasks,
    back_to,
    draw_memoryless,
    draw_sessions,
    new_events,
)
from evenly.sim.kernels.rng import BUFFER
from evenly.sim.sessions import Arrivals
from evenly.sim.system import System

_FEW = 8  # events to draw after a lost task; the next may be lost soon


class EventSource(Protocol):
    """Arrivals and departures in the order of time, a batch at a time."""

    @property
    def arrivals(self) -> Arrivals | None:
        """The clock of the arrivals, if the demand moves it."""
        ...

    @property
    def size(self) -> int:
        """One more than the highest number of a task; it may grow with each draw."""
        ...

    @property
    def redraws(self) -> bool:
        """True if a lost task changes the events after it: decide none of these, and call `lose`."""
        ...

    def draw(self, until: float, most: int) -> tuple[Events, int, bool]:
        """Return at most `most` events up to a time: arrays, how many are filled, and whether these are all."""
        ...

    def lose(self, index: int) -> None:
        """Go back to an event of the last draw, an arrival that was lost."""
        ...


class MemorylessEvents:
    """Exponential service and Poisson arrivals: every event depends on the number of tasks, hence on losses."""

    arrivals = None
    redraws = True

    def __init__(self, system: System) -> None:
        self._system = system
        self._events = new_events()
        self._most = BUFFER  # events to draw at a time
        self._drawn = 0
        total = int(system.state["total"])
        empty = np.zeros(0)
        self._tasks = Tasks(np.array([total]), np.arange(total + BUFFER), empty, empty.astype(np.int64))

    @property
    def size(self) -> int:
        """Numbers of tasks, used or not."""
        return self._tasks.numbers.size

    def draw(self, until: float, most: int) -> tuple[Events, int, bool]:
        """Draw the next events."""
        system = self._system
        self._tasks = _with_room(self._tasks)
        most = min(self._most, most)
        self._drawn = draw_memoryless(
            system.rules, system.state, system.streams, self._tasks, self._events, until, most
        )
        self._most = min(2 * self._most, BUFFER)
        known = system.state["position"] < BUFFER
        return self._events, self._drawn, bool(known and system.state["next_time"] > until)

    def lose(self, index: int) -> None:
        """Go back to a lost task."""
        system = self._system
        back_to(system.rules, system.state, system.streams, self._tasks, self._events, index, self._drawn)
        self._most = max(index + 1, _FEW)


class SessionEvents:
    """Any service law and arrivals, or given sessions: every task has its own end, also those that are lost."""

    redraws = False

    def __init__(self, system: System, seed: np.random.SeedSequence) -> None:
        self._system = system
        self._events = new_events()
        self.arrivals = Arrivals(system, seed)
        total = int(system.state["total"])
        ends = self.arrivals.durations_at_start()
        first = np.argsort(ends, kind="stable")  # what is sorted is a heap
        more = np.zeros(BUFFER)
        self._tasks = Tasks(
            total=np.array([total]),
            numbers=np.arange(total + BUFFER),
            due=np.append(ends[first], more),
            sessions=np.append((first << NUMBER_BITS) | first, more.astype(np.int64)),
        )

    @property
    def size(self) -> int:
        """Numbers of tasks, used or not."""
        return self._tasks.numbers.size

    def draw(self, until: float, most: int) -> tuple[Events, int, bool]:
        """Draw the next events."""
        system, arrivals = self._system, self.arrivals
        self._tasks = _with_room(self._tasks)
        drawn, last = draw_sessions(
            system.rules,
            system.state,
            system.streams,
            self._tasks,
            arrivals.drawn,
            arrivals.clock,
            system.given,
            self._events,
            until,
            min(most, BUFFER),
        )
        return self._events, drawn, last

    def lose(self, index: int) -> None:
        """Do nothing: the task ends nevertheless."""


def _with_room(tasks: Tasks) -> Tasks:
    """Return the same tasks with room for as many more as can arrive in a batch."""
    size = tasks.numbers.size
    if int(tasks.total[0]) + BUFFER <= size:
        return tasks
    more = np.arange(size, size + max(BUFFER, size // 8))
    numbers = np.append(tasks.numbers, more)
    if tasks.due.size == 0:
        return tasks._replace(numbers=numbers)
    if numbers.size > 1 << NUMBER_BITS:
        raise MemoryError(f"more than {size} open sessions")
    return tasks._replace(
        numbers=numbers, due=np.append(tasks.due, 0.0 * more), sessions=np.append(tasks.sessions, 0 * more)
    )
