"""The kernel of the common probability space: events of one system, driven by primitives that all sizes share.

A third implementation of the dispatching and learning rules, next to `evenly.core` and `aggregate`: here a task's
level comes from the appendix's intervals, and each level's departures from its own process.

Paper: App. B.1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenly.sim.kernels.jit import kernel
from evenly.sim.kernels.ledger import Record
from evenly.sim.kernels.rng import Bits, Floats, next_bits, unit

SYSTEM = np.dtype(
    [
        ("pools", np.int64),
        ("learning", np.int64),
        ("fall_at", np.int64),  # the threshold falls when at most this many pools have at least `threshold` tasks
        ("service_rate", np.float64),
        # The arrivals' clock reads `clock` at `start`, and runs at `arrival_rate` from then on.
        ("start", np.float64),
        ("clock", np.float64),
        ("arrival_rate", np.float64),
        ("next_arrival", np.float64),  # on that clock
        ("time", np.float64),  # of the last event
        ("threshold", np.int64),
        ("lowest", np.int64),  # fewest tasks of any pool
        ("highest", np.int64),  # most tasks of any pool
        ("path_length", np.int64),
    ]
)


class Book(NamedTuple):
    """The arrays that grow: counts, the departure clocks of the levels, and the threshold's path."""

    at_least: NDArray[np.int64]
    left: Floats  # on each level's own clock, until its next departure
    departures: Bits  # one generator per level
    path_time: Floats
    path_value: NDArray[np.int64]


class Shared(NamedTuple):
    """The generators that do not belong to a level."""

    arrivals: Bits
    selection: Bits


def generator(seed: int, *key: int) -> Bits:
    """Return the state of an xoshiro256++ generator that depends on the seed and the key alone."""
    words = np.random.SeedSequence(seed, spawn_key=key).generate_state(4, np.uint64)
    return np.asarray(words, np.uint64).reshape(4, 1)


@kernel
def uniform(state: Bits) -> float:
    """Return the generator's next number on [0, 1)."""
    return float(unit(next_bits(state)))


@kernel
def exponential(state: Bits) -> float:
    """Return the generator's next standard exponential."""
    return -math.log1p(-uniform(state))


@kernel
def level_of_rank(at_least: NDArray[np.int64], pools: int, rank: int, lowest: int) -> int:
    """Return the tasks of the pool with this rank, counted from the emptiest; no pool has fewer than `lowest`.

    A uniform U lies in the interval I_i or J_i exactly if the rank floor(U * pools) or floor(U * pools below the
    threshold) belongs to a pool with i - 1 tasks: the ends of the intervals are whole numbers on that scale.

    Paper: App. B.1, the partitions before eq. (17).
    """
    level = lowest
    while pools - at_least[level + 1] <= rank:
        level += 1
    return level


@kernel
def _arrival_time(system: Record) -> float:
    if system.arrival_rate == 0.0:
        return math.inf
    return float(system.start + (system.next_arrival - system.clock) / system.arrival_rate)


@kernel
def _next_departure(system: Record, book: Book) -> tuple[int, float]:
    """Return the level with the next departure, and its time."""
    first, shortest = 0, math.inf
    for level in range(max(system.lowest, 1), system.highest + 1):
        tasks = level * (book.at_least[level] - book.at_least[level + 1])
        if tasks > 0 and book.left[level] < shortest * tasks:
            first, shortest = level, book.left[level] / tasks
    return first, system.time + shortest / system.service_rate


@kernel
def _run_clocks(system: Record, book: Book, now: float) -> None:
    """Advance each level's clock at the rate at which tasks leave its pools; without tasks it stands still."""
    elapsed = max(now - system.time, 0.0) * system.service_rate
    for level in range(max(system.lowest, 1), system.highest + 1):
        tasks = level * (book.at_least[level] - book.at_least[level + 1])
        book.left[level] = max(book.left[level] - tasks * elapsed, 0.0)
    system.time = now


@kernel
def _depart(system: Record, book: Book, level: int) -> None:
    book.left[level] = exponential(book.departures[level])
    book.at_least[level] -= 1
    system.lowest = min(system.lowest, level - 1)
    if level == system.highest and book.at_least[level] == 0:
        system.highest -= 1


@kernel
def _arrive(system: Record, book: Book, shared: Shared) -> None:
    """Dispatch a task and learn: both use the counts right before it, and learning acts after the dispatch.

    Paper: eqs. (17) and (18b).
    """
    system.next_arrival += exponential(shared.arrivals)
    selection = uniform(shared.selection)  # every task draws one, even if it decides nothing
    pools, threshold = system.pools, system.threshold
    green = pools - book.at_least[threshold]
    yellow = pools - book.at_least[threshold + 1]
    if green > 0:
        level = level_of_rank(book.at_least, pools, int(selection * green), system.lowest)
    elif yellow > 0:
        level = threshold
    else:
        level = level_of_rank(book.at_least, pools, int(selection * pools), system.lowest)
    book.at_least[level + 1] += 1
    system.highest = max(system.highest, level + 1)
    if book.at_least[system.lowest + 1] == pools:
        system.lowest += 1
    step = int(yellow <= 1) - int(pools - green <= system.fall_at)
    if system.learning != 0 and step != 0:
        system.threshold += step
        book.path_time[system.path_length] = system.time
        book.path_value[system.path_length] = system.threshold
        system.path_length += 1


@kernel
def advance(system: Record, book: Book, shared: Shared, until: float, budget: int) -> bool:
    """Return True once everything up to `until` has happened; False if the budget is spent or the book is full.

    Events do not depend on where a call ends: the clocks are read at events only.
    """
    for _ in range(budget):
        level, departure = _next_departure(system, book)
        arrival = _arrival_time(system)
        if min(arrival, departure) > until:
            return True
        if departure < arrival:
            _run_clocks(system, book, departure)
            _depart(system, book, level)
        else:
            _run_clocks(system, book, arrival)
            _arrive(system, book, shared)
            top = max(system.highest, system.threshold)
            if system.highest + 2 >= book.left.size or top + 3 >= book.at_least.size:
                return False
            if system.path_length == book.path_time.size:
                return False
    return False
