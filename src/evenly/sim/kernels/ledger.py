"""The state of a simulated system and its records; both kernels write here and nowhere else.

`at_least[i]` is the number of pools with at least i tasks. One event changes one entry of it by one, so the
records cost a few operations per event, whatever the number of pools: the time integral of at_least[i] is kept
as `area[i]`, from which each change subtracts (change * time); adding at_least[i] * now gives the integral.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from evenly.sim.kernels.jit import inlined, kernel
from evenly.sim.kernels.levels import tree_of

_Number = TypeVar("_Number", np.int64, np.float64)


class PolicyCode(IntEnum):
    """The policies as numbers, for the kernels."""

    THRESHOLD = 0
    JSQ = 1
    POWER_OF_D = 2
    RANDOM = 3
    ROUND_ROBIN = 4
    JBT = 5  # join-idle-queue is this one with threshold 1
    PULL = 6
    STALE_REPORTS = 7
    OWN = 8  # a class of the user's own
    OBSERVED = 9  # where the sessions of a log went


Record: TypeAlias = Any  # a NumPy record: its fields are in RULES or STATE

NO_THRESHOLD = -2  # of a state, under policies without one
NO_LIMIT = np.iinfo(np.int64).max // 4

# Records that are left out, in `omit`. Their integrals mean nothing then.
OMIT_SPREAD, OMIT_IMBALANCE, OMIT_LEVELS = 1, 2, 4
OMIT_ALL = OMIT_SPREAD | OMIT_IMBALANCE | OMIT_LEVELS

RULES = np.dtype(
    [
        ("policy", np.int64),
        ("pools", np.int64),
        ("capacity", np.int64),
        ("below", np.int64),  # join-below-threshold's threshold
        ("learning", np.int64),
        ("fall_at", np.int64),  # the threshold falls when at most this many pools have at least `threshold` tasks
        ("highest", np.int64),  # the threshold rises no further
        ("mean_holding", np.int64),
        ("margin", np.int64),  # tasks beyond the threshold with which a pool still takes its clients back
        ("returning", np.float64),  # share of the arrivals that are clients who return to their pool
        ("omit", np.int64),  # records to leave out; only the aggregate kernel saves the work
        ("service_rate", np.float64),
        # The demand in force: load + amplitude * sin(2 pi (t - start) / period).
        ("load", np.float64),
        ("amplitude", np.float64),
        ("period", np.float64),
        ("frequency", np.float64),  # of the wave, in radians
        ("start", np.float64),
    ]
)

STATE = np.dtype(
    [
        ("time", np.float64),
        ("next_time", np.float64),  # when the next event happens
        ("rate", np.float64),  # of the next event
        ("total", np.int64),
        ("squares", np.int64),  # sum over pools of tasks squared
        ("max_level", np.int64),
        ("threshold", np.int64),  # negative for policies without one
        ("position", np.int64),  # in the buffers of holding times and events
        ("choice_position", np.int64),
        ("turn", np.int64),  # the next pool under round-robin
        ("tokens", np.int64),  # tokens at the dispatcher, in the per-pool kernel
        # counters
        ("events", np.int64),
        ("arrivals", np.int64),
        ("lost", np.int64),
        ("without_token", np.int64),  # arrivals that found no token and went to a random pool
        ("returned", np.int64),  # arrivals that wanted to return to their pool
        ("kept", np.int64),  # those of them that did
        ("green", np.int64),
        ("yellow", np.int64),
        ("resync", np.int64),
        ("changes", np.int64),
        ("path_length", np.int64),
        # integrals
        ("gap", np.float64),  # see `balance`, for the load at `since`
        ("load", np.float64),  # at `since`
        ("gap_area", np.float64),  # time integral of the distance to balance
        ("spread_area", np.float64),  # time integral of the standard deviation of tasks over pools
        ("since", np.float64),  # the time up to which the last two are integrated
        ("max_since", np.float64),
        ("threshold_since", np.float64),
        ("last_change", np.float64),
    ]
)


class Book(NamedTuple):
    """The level arrays (index: number of tasks, or threshold) and the threshold's path."""

    at_least: NDArray[np.int64]
    tree: NDArray[np.int64]  # see `evenly.sim.kernels.levels`; the kernels on pools leave it alone
    full: NDArray[np.float64]  # pools up to floor(load), 0 above, for the load at `since`
    area: NDArray[np.float64]
    max_time: NDArray[np.float64]  # time with this maximum
    threshold_time: NDArray[np.float64]  # time at this threshold
    path_time: NDArray[np.float64]
    path_value: NDArray[np.int64]


def new_book(at_least: NDArray[np.int64], levels: int, path: int) -> Book:
    """Return an empty book for `levels` levels that holds the given counts."""
    counts = np.zeros(levels, np.int64)
    counts[: at_least.size] = at_least
    full, area, max_time, threshold_time = (np.zeros(levels) for _ in range(4))
    return Book(
        counts, tree_of(counts), full, area, max_time, threshold_time, np.zeros(path), np.zeros(path, np.int64)
    )


def grown(book: Book) -> Book:
    """Return the same book with twice the levels."""
    at_least = _doubled(book.at_least)
    return book._replace(
        at_least=at_least,
        tree=tree_of(at_least),
        full=_doubled(book.full),
        area=_doubled(book.area),
        max_time=_doubled(book.max_time),
        threshold_time=_doubled(book.threshold_time),
    )


def copied(book: Book) -> Book:
    """Return the same book with copies of what `settle` changes."""
    return book._replace(
        full=book.full.copy(), max_time=book.max_time.copy(), threshold_time=book.threshold_time.copy()
    )


def _doubled(array: NDArray[_Number]) -> NDArray[_Number]:
    return np.concatenate([array, np.zeros_like(array)])


@kernel
def balance(book: Book, pools: int, load: float) -> float:
    """Fill `full` for a load, and return the sum over levels of (at_least - full)^2.

    Balanced counts are pools * q*(i): equal to `full` except at the level above floor(load), where they are pools
    times the fraction of the load. All terms of the sum are whole numbers, so below 2**53 updates do not round.

    Paper: eq. (1).
    """
    whole = math.floor(load)
    total = 0.0
    for level in range(book.full.size):
        book.full[level] = pools if level <= whole else 0.0
        total += (book.at_least[level] - book.full[level]) ** 2
    return total


@inlined
def add_task(state: Record, at_least: NDArray[np.int64], full: NDArray[np.float64], area: NDArray[np.float64],
              max_time: NDArray[np.float64], level: int) -> None:  # fmt: skip
    """Record that a pool with `level - 1` tasks gets one more."""
    state.gap += 1.0 + 2.0 * (at_least[level] - full[level])
    at_least[level] += 1
    area[level] -= state.time
    state.total += 1
    state.squares += 2 * level - 1
    if level > state.max_level:
        max_time[state.max_level] += state.time - state.max_since
        state.max_since = state.time
        state.max_level = level


@inlined
def remove_task(state: Record, at_least: NDArray[np.int64], full: NDArray[np.float64], area: NDArray[np.float64],
                 max_time: NDArray[np.float64], level: int) -> None:  # fmt: skip
    """Record that a pool with `level` tasks loses one."""
    state.gap += 1.0 - 2.0 * (at_least[level] - full[level])
    at_least[level] -= 1
    area[level] += state.time
    state.total -= 1
    state.squares -= 2 * level - 1
    if level == state.max_level and at_least[level] == 0:
        max_time[level] += state.time - state.max_since
        state.max_since = state.time
        state.max_level -= 1
