"""The coupling of join-the-shortest-queue and the threshold policy as the paper prints it, which picks pools.

`evenly.sim.coupling.jsq` picks tasks instead.

Paper: Sec. 3.4, before Prop. 2.
"""

from __future__ import annotations

from math import floor

import numpy as np


def printed_differences(*, pools: int, load: float, events: int, rng: np.random.Generator) -> tuple[int, int]:
    """Run the printed coupling from empty pools.

    Return the events after which the two systems differ in tasks up to floor(load) or in pools above it, and the
    departures for which an empty pool was picked, so that nothing could leave.
    """
    low = floor(load)
    systems = [[0] * pools, [0] * pools]  # the tasks of each pool: shortest queue, threshold
    differ = empty = 0
    for _ in range(events):
        if rng.random() * (load + low + 1) < load:
            for tasks, join in zip(systems, (_shortest, _by_threshold), strict=True):
                pool = join(tasks, low, rng)
                tasks[pool] += tasks[pool] <= low  # otherwise it is discarded
        else:
            where = rng.random()
            for tasks in systems:
                picked = _picked(tasks, low, where, rng)
                if picked is not None:
                    empty += tasks[picked] == 0
                    tasks[picked] -= tasks[picked] > 0
        differ += _pair(systems[0], low) != _pair(systems[1], low)
    return differ, empty


def _shortest(tasks: list[int], low: int, rng: np.random.Generator) -> int:
    return tasks.index(min(tasks))


def _by_threshold(tasks: list[int], low: int, rng: np.random.Generator) -> int:
    green = [pool for pool, count in enumerate(tasks) if count < low]
    return int(rng.choice(green)) if green else _shortest(tasks, low, rng)


def _picked(tasks: list[int], low: int, where: float, rng: np.random.Generator) -> int | None:
    """Return the pool that the text picks at a potential departure, or None if no task is to leave."""
    full = [pool for pool, count in enumerate(tasks) if count == low + 1]
    others = [pool for pool, count in enumerate(tasks) if count <= low]
    if where < len(full) / len(tasks):
        return int(rng.choice(full))
    return int(rng.choice(others)) if where < sum(tasks) / (len(tasks) * (low + 1)) else None


def _pair(tasks: list[int], low: int) -> tuple[int, int]:
    return sum(min(count, low) for count in tasks), sum(count > low for count in tasks)
