"""The tasks at time 0: those given for each pool, or a mean that is spread as evenly as possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from evenly.sim.scenario import Scenario

Counts = NDArray[np.int64]


def tasks_of_pools(scenario: Scenario) -> Counts:
    """Return the tasks of each pool."""
    if not isinstance(scenario.initial_tasks, float):
        return np.asarray(scenario.initial_tasks, np.int64)
    low, fuller = _split(scenario, scenario.initial_tasks)
    tasks = np.full(scenario.pools, low, np.int64)
    tasks[:fuller] += 1
    return tasks


def at_least(scenario: Scenario) -> Counts:
    """Return the number of pools with at least i tasks, for i = 0, 1, ... up to the maximum."""
    return _counts(scenario, 0, scenario.pools)


def tasks_by_class(scenario: Scenario) -> list[Counts]:
    """Return the same for each class of pools."""
    first = np.cumsum([0, *(each.count for each in scenario.classes)]).tolist()
    return [_counts(scenario, begin, each.count) for begin, each in zip(first[:-1], scenario.classes, strict=True)]


def _counts(scenario: Scenario, first: int, count: int) -> Counts:
    """Return it for `count` pools from number `first` on. A billion pools need no more room than one."""
    start = scenario.initial_tasks
    if isinstance(start, float):
        low, fuller = _split(scenario, start)
        fuller = min(max(fuller - first, 0), count)
        return np.array([count] * (low + 1) + [fuller] * (fuller > 0), np.int64)
    exactly = np.bincount(np.asarray(start[first : first + count], np.int64))
    return np.cumsum(exactly[::-1])[::-1].astype(np.int64)


def _split(scenario: Scenario, mean: float) -> tuple[int, int]:
    """Return the tasks that every pool has, and how many of the first pools have one more."""
    low = int(mean)
    return low, round((mean - low) * scenario.pools)
