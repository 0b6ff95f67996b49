"""Cumulative records of one simulation, and the averages over the window between two of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from evenly.frames import ReadOnly

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Tally(ReadOnly):
    """Time integrals and counts. Tallies subtract (a window) and add (windows of several replications)."""

    time: float
    at_least: FloatArray  # integral of the number of pools with at least i tasks
    max_time: FloatArray  # time with maximum i
    threshold_time: FloatArray  # time at threshold i
    gap: float  # integral of pools * imbalance
    spread: float  # integral of the standard deviation of tasks over pools
    events: int
    arrivals: int
    lost_tasks: int
    without_token: int  # arrivals that found no token and went to a random pool
    green: int
    yellow: int
    resync: int
    other: int
    change_count: int  # changes of the threshold
    utility: float  # integral of the utility of all pools; 0 if they have no sizes
    class_tasks: FloatArray  # integral of the tasks in each class of pools; empty if they have no sizes
    returned: int = 0  # arrivals of clients who wanted to return to their pool
    kept: int = 0  # those of them who did

    def __sub__(self, earlier: Tally) -> Tally:
        return self._combine(earlier, -1)

    def __add__(self, more: Tally) -> Tally:
        return self._combine(more, +1)

    def _combine(self, second: Tally, sign: int) -> Tally:
        values = {}
        for field in fields(self):
            a, b = getattr(self, field.name), getattr(second, field.name)
            if isinstance(a, np.ndarray):
                size = max(a.size, b.size)
                a, b = np.pad(a, (0, size - a.size)), np.pad(b, (0, size - b.size))
            values[field.name] = a + sign * b
        return Tally(**values)


def total(tallies: Sequence[Tally]) -> Tally:
    """Return the sum of the tallies."""
    return reduce(Tally.__add__, tallies)


def trimmed(values: FloatArray) -> FloatArray:
    """Drop trailing zeros."""
    used = np.flatnonzero(values)
    return values[: used[-1] + 1] if used.size else values[:1]


@dataclass(frozen=True)
class Averages(ReadOnly):
    """Time averages over a window."""

    mean_tasks: float
    pools_with_exactly: FloatArray
    task_share: FloatArray
    max_tasks: float
    max_tasks_distribution: FloatArray
    spread: float
    imbalance: float
    messages_per_task: float
    resync_per_task: float
    threshold: float | None
    threshold_share: dict[int, float]
    lost_share: float
    mean_utility: float | None

    def scalars(self) -> dict[str, float]:
        """Return the means that get a confidence interval, by name."""
        values = {
            "mean_tasks": self.mean_tasks,
            "max_tasks": self.max_tasks,
            "spread": self.spread,
            "imbalance": self.imbalance,
            "messages_per_task": self.messages_per_task,
            "resync_per_task": self.resync_per_task,
            "lost_share": self.lost_share,
        }
        optional = {"threshold": self.threshold, "mean_utility": self.mean_utility}
        return values | {name: value for name, value in optional.items() if value is not None}


def averages(window: Tally, pools: int) -> Averages:
    """Return the averages of a window.

    Shares of tasks are weighted by task and by time, as in the paper's Figure 5.

    Paper: Sec. 5.2.
    """
    at_least = window.at_least / (window.time * pools)
    exactly = at_least - np.append(at_least[1:], 0.0)
    # Differences of nearly equal integrals can fall below zero by rounding.
    exactly = trimmed(np.where(exactly > 1e-15, exactly, 0.0))
    levels = np.arange(exactly.size)
    mean_tasks = float(trimmed(at_least)[1:].sum())  # NumPy's sum rounds differently with more zeros at the end
    maxima = trimmed(window.max_time / window.time)
    thresholds = window.threshold_time / window.time
    share = {int(level): float(thresholds[level]) for level in np.flatnonzero(thresholds > 0)}
    tasks = window.arrivals or math.inf  # without arrivals, averages per task are 0
    return Averages(
        mean_tasks=mean_tasks,
        pools_with_exactly=exactly,
        task_share=levels * exactly / mean_tasks if mean_tasks > 0 else np.zeros_like(exactly),
        max_tasks=float(maxima @ np.arange(maxima.size)),
        max_tasks_distribution=maxima,
        spread=window.spread / window.time,
        imbalance=window.gap / (window.time * pools),
        messages_per_task=(window.green + window.yellow + window.other) / tasks,
        resync_per_task=window.resync / tasks,
        threshold=sum(level * part for level, part in share.items()) if share else None,
        threshold_share=share,
        lost_share=window.lost_tasks / tasks,
        mean_utility=window.utility / (window.time * pools) if window.class_tasks.size else None,
    )
