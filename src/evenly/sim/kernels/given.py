"""Sessions that are given, not drawn: a log's, or those of an earlier run; and what is measured of them besides.

A session keeps its number, its place in the arrays, which begin with the sessions of time 0. The watch integrates
spread and crowding over time on its own: phases of the demand, of which a log has none, do not cut its sums.

A pool is crowded if it has at least `CROWDED` sessions more than the average over pools, rounded up.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenly.sim.kernels.integrals import spread
from evenly.sim.kernels.jit import inlined, kernel
from evenly.sim.kernels.ledger import Record

CROWDED = 2  # sessions above the average, rounded up

IntArray = NDArray[np.int64]


class Given(NamedTuple):
    """Starts in ascending order, durations, and the pool of each session: read if it is known, else written.

    No starts: sessions are drawn. No pools: they are neither read nor written.
    """

    starts: NDArray[np.float64]
    durations: NDArray[np.float64]
    pools: NDArray[np.int32]


WATCH = np.dtype(
    [
        ("since", np.float64),  # the time up to which the areas are integrated
        ("spread_area", np.float64),
        ("crowded_area", np.float64),
        ("crowded", np.int64),  # sessions in crowded pools
        ("level", np.int64),  # tasks from which a pool is crowded
    ]
)


def nothing_given() -> Given:
    """Return the arrays for sessions that are drawn."""
    return Given(np.zeros(0), np.zeros(0), np.zeros(0, np.int32))


def new_watch(at_least: IntArray, total: int, pools: int) -> Record:
    """Return the watch of a system with these counts at time 0."""
    watch = np.zeros(1, WATCH)[0]
    level = -(-total // pools) + CROWDED
    exactly = at_least - np.append(at_least[1:], 0)
    watch["level"] = level
    watch["crowded"] = int((np.arange(exactly.size) * exactly)[level:].sum())
    return watch


@inlined
def watch_time(watch: Record, state: Record, pools: int) -> None:
    """Integrate up to now; nothing has happened since."""
    length = state.time - watch.since
    watch.spread_area += spread(state.total, state.squares, pools) * length
    watch.crowded_area += watch.crowded * length
    watch.since = state.time


@inlined
def watch_change(watch: Record, at_least: IntArray, total: int, pools: int, level: int, step: int) -> None:
    """Take note that a pool has reached the level, or left it; the counts and the total are those after it.

    Level 0 stands for a session that was lost.
    """
    if level >= watch.level:
        watch.crowded += step * (level if level == watch.level else 1)
    crowded_from = -(-total // pools) + CROWDED
    while watch.level < crowded_from:
        watch.crowded -= watch.level * (at_least[watch.level] - at_least[watch.level + 1])
        watch.level += 1
    while watch.level > crowded_from:
        watch.level -= 1
        watch.crowded += watch.level * (at_least[watch.level] - at_least[watch.level + 1])


@kernel
def settle_watch(watch: Record, state: Record, pools: int) -> None:
    """Integrate up to now: for copies, so that where a run stops does not change its sums."""
    watch_time(watch, state, pools)


@kernel
def next_start(given: Given, number: int) -> float:
    """Return when the session of this number begins; infinity after the last."""
    return float(given.starts[number]) if number < given.starts.size else math.inf
