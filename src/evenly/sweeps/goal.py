"""How accurate a point must be: `spread < 0.005`, for the half-width of a value's 95 % interval."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from evenly.errors import InputError
from evenly.inputs import shown
from evenly.sim import Result
from evenly.sweeps.values import VALUES, value_name

MAX_REPLICATIONS = 4096  # of one point
FIRST = 4  # replications to begin with, unless more are asked for
_GROWTH = 2.0  # at most, from one look at the interval to the next
_MARGIN = 1.1  # more than the intervals so far call for: another look costs accuracy
_TEXT = re.compile(
    r"\s*([\w-]{1,40})\s*<\s*(\d{1,20}\.?\d{0,20}(?:[eE][+-]?\d{1,3})?|\.\d{1,20})\s*(%?)\s*", re.ASCII
)


@dataclass(frozen=True)
class Goal:
    """The half-width that a value must be below, in units of the value or, if `relative`, as a share of it."""

    value: str
    limit: float
    relative: bool

    def __str__(self) -> str:
        return f"{self.value} < {self.limit * 100:.12g}%" if self.relative else f"{self.value} < {self.limit:.12g}"

    def excess(self, result: Result) -> float:
        """Return the half-width relative to the goal: below 1 if that is reached, infinite if it is unknown."""
        value = VALUES[self.value]
        mean = value.take(result)
        if mean is None:
            return 0.0  # the point has no such value: no number of replications would give it one
        half = result.half_widths().get(value.interval or "", math.nan)
        limit = self.limit * abs(mean) if self.relative else self.limit
        return math.inf if math.isnan(half) else half / limit if limit else math.inf if half else 0.0

    def next_replications(self, result: Result) -> int:
        """Return how many replications the point needs in all: as many as it has if the goal is reached."""
        excess, done = self.excess(result), result.replications
        if excess < 1 or done >= MAX_REPLICATIONS:
            return done
        needed = done * min(excess**2 * _MARGIN, _GROWTH)
        return min(max(math.ceil(needed), done + 1), MAX_REPLICATIONS)


def read_goal(written: object) -> Goal | None:
    """Return the goal in a text such as "spread < 0.005" or "spread < 1%"; None for None."""
    if written is None or isinstance(written, Goal):
        return written
    match = _TEXT.fullmatch(written) if isinstance(written, str) else None
    if match is None:
        raise InputError(f'until must be written like "spread < 0.005" or "spread < 1%", not {shown(written)}.')
    name, limit = value_name(match[1]), float(match[2]) / (100 if match[3] else 1)
    if VALUES[name].interval is None:
        known = ", ".join(each.name for each in VALUES.values() if each.interval)
        raise InputError(f"until must name a value with an interval ({known}), not {name!r}.")
    if not 0 < limit < math.inf:
        raise InputError(f"until must have a positive limit, not {match[2]}.")
    return Goal(name, limit, bool(match[3]))
