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


Record: TypeAlias = Any  # a NumPy record: its fields are in RULES or STATE

NO_LIMIT = np.iinfo(np.int64).max // 4

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
        ("service_rate", np.float64),
        # The demand in force: load + amplitude * sin(2 pi (t - start) / period).
        ("load", np.float64),
        ("amplitude", np.float64),
        ("period", np.float64),
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
        ("green", np.int64),
        ("yellow", np.int64),
        ("resync", np.int64),
        ("changes", np.int64),
        ("path_length", np.int64),
        # integrals
        ("gap", np.float64),  # see `distance`
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
    full: NDArray[np.float64]  # pools up to floor(load), 0 above, for the load in force
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
    return Book(counts, full, area, max_time, threshold_time, np.zeros(path), np.zeros(path, np.int64))


def grown(book: Book) -> Book:
    """Return the same book with twice the levels."""
    return book._replace(
        at_least=_doubled(book.at_least),
        full=_doubled(book.full),
        area=_doubled(book.area),
        max_time=_doubled(book.max_time),
        threshold_time=_doubled(book.threshold_time),
    )


def _doubled(array: NDArray[_Number]) -> NDArray[_Number]:
    return np.concatenate([array, np.zeros_like(array)])


@inlined
def load_at(rules: Record, time: float) -> float:
    """Return the offered load per pool at a time within the phase in force."""
    if rules.amplitude == 0.0:
        return float(rules.load)
    turn = 2.0 * math.pi * (time - rules.start) / rules.period
    return float(rules.load + rules.amplitude * math.sin(turn))


@kernel
def balance(book: Book, pools: int, load: float) -> float:
    """Fill `full` for a constant load, and return the sum over levels of (at_least - full)^2.

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
def distance(gap: float, count: int, part: float) -> float:
    """Return the Euclidean distance to balance, times pools.

    `gap` covers all levels but the one above floor(load), which has `count` pools and should have `part`.
    """
    return math.sqrt(max(gap + part * (part - 2.0 * count), 0.0))


@inlined
def part_of(pools: int, load: float) -> float:
    """Return the pools that should have one task more than floor(load)."""
    return pools * (load - math.floor(load))


@kernel
def wave_distance(rules: Record, at_least: NDArray[np.int64], time: float) -> float:
    """Return the Euclidean distance to balance under a wave, times pools."""
    load = load_at(rules, time)
    total = 0.0
    for level in range(at_least.size):
        balanced = rules.pools * min(max(load + 1.0 - level, 0.0), 1.0)
        total += (at_least[level] - balanced) ** 2
    return math.sqrt(total)


@kernel
def _quadrature(rules: Record, at_least: NDArray[np.int64], begin: float, length: float) -> float:
    """Integrate the distance over at most a period: Gauss's rule with two points on panels of a 512th of it."""
    panels = 1 + int(length / rules.period * 512.0)
    half = 0.5 * length / panels
    area = 0.0
    for panel in range(panels):
        middle = begin + (2 * panel + 1) * half
        area += wave_distance(rules, at_least, middle - half / math.sqrt(3.0))
        area += wave_distance(rules, at_least, middle + half / math.sqrt(3.0))
    return area * half


@kernel
def wave_area(rules: Record, at_least: NDArray[np.int64], begin: float, end: float) -> float:
    """Integrate the distance while the load swings and no task arrives or departs: whole periods are alike."""
    periods = math.floor((end - begin) / rules.period)
    area = 0.0
    if periods > 0:
        area = periods * _quadrature(rules, at_least, begin, rules.period)
    rest = min(max(end - begin - periods * rules.period, 0.0), rules.period)
    return area + _quadrature(rules, at_least, begin, rest)


@inlined
def spread(total: int, squares: int, pools: int) -> float:
    """Return the standard deviation of tasks over pools."""
    # Products of whole numbers, as floats: no rounding below 2**53.
    return math.sqrt(max(float(pools) * squares - float(total) * total, 0.0)) * (1.0 / pools)


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


@kernel
def settle(rules: Record, state: Record, book: Book, time: float) -> None:
    """Bring the lazily kept integrals up to `time`; nothing has happened since the last event."""
    if rules.amplitude != 0.0:
        state.gap_area += wave_area(rules, book.at_least, state.since, time)
    else:
        count = book.at_least[math.floor(rules.load) + 1]
        state.gap_area += distance(state.gap, count, part_of(rules.pools, rules.load)) * (time - state.since)
    state.spread_area += spread(state.total, state.squares, rules.pools) * (time - state.since)
    state.since = time
    book.max_time[state.max_level] += time - state.max_since
    state.max_since = time
    if state.threshold >= 0:
        book.threshold_time[state.threshold] += time - state.threshold_since
        state.threshold_since = time
    state.time = time
