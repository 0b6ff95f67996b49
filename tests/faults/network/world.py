"""Virtual time, one queue of events, one source of randomness, and a record of what happened."""

import random
from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any


class ViolationError(AssertionError):
    """Something that must hold does not."""


def require(holds: bool, text: str, *values: object) -> None:
    """Raise ViolationError unless the condition holds; `values` fill the braces in the text."""
    if not holds:
        raise ViolationError(text.format(*values))


class World:
    """A clock that jumps from event to event. Everything random comes from `random`, drawn from one seed."""

    def __init__(self, seed: int, *, tracing: bool = False) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.events = 0
        self.faults: Counter[str] = Counter()  # by kind, and other things that schedules should not miss
        self.trace: list[str] | None = [] if tracing else None
        self.after_event: Callable[[], None] = lambda: None
        self._queue: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = count()  # events at the same time happen in the order in which they were planned

    def after(self, delay: float, action: Callable[..., None], *arguments: object) -> None:
        """Plan an event."""
        heappush(self._queue, (self.now + delay, next(self._order), action, arguments))

    def run_until(self, time: float) -> None:
        """Let everything happen that is planned up to this time."""
        queue = self._queue
        while queue and queue[0][0] <= time:
            self.now, _, action, arguments = heappop(queue)
            self.events += 1
            action(*arguments)
            self.after_event()
        self.now = time

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return probability > 0 and self.random.random() < probability

    def fault(self, kind: str, text: str = "", *values: object) -> None:
        """Count a fault, and write it into the trace."""
        self.faults[kind] += 1
        if self.trace is not None:
            self.note(f"! {kind}{': ' if text else ''}{text}", *values)

    def note(self, text: str, *values: object) -> None:
        """Write a line into the trace; `values` fill the braces in the text."""
        if self.trace is not None:
            self.trace.append(f"{self.now:9.4f}  {text.format(*values)}")
