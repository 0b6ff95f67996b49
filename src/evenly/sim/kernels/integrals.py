"""The time integrals of a run: distance to balance, spread, and the time with each maximum and threshold."""

from __future__ import annotations

import math

from evenly.sim.kernels.jit import inlined, kernel
from evenly.sim.kernels.ledger import Book, Record
from evenly.sim.kernels.wave import load_at, swing


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


@inlined
def spread(total: int, squares: int, pools: int) -> float:
    """Return the standard deviation of tasks over pools."""
    # Products of whole numbers, as floats: no rounding below 2**53.
    return math.sqrt(max(float(pools) * squares - float(total) * total, 0.0)) * (1.0 / pools)


@inlined
def pass_time(rules: Record, state: Record, book: Book, edge: int, part: float, load: float) -> None:
    """Integrate distance and spread up to now, when the load is `load`; nothing has happened since."""
    if rules.amplitude != 0.0:
        state.gap_area += swing(rules, state, book.at_least, book.full, state.time, load)
    else:
        state.gap_area += distance(state.gap, book.at_least[edge], part) * (state.time - state.since)
    state.spread_area += spread(state.total, state.squares, rules.pools) * (state.time - state.since)
    state.since = state.time


@kernel
def settle(rules: Record, state: Record, book: Book) -> None:
    """Bring the lazily kept integrals up to now; nothing has happened since the last event.

    For the end of a phase, and for copies of state and book: if stops settled the run itself, its sums would round
    differently.
    """
    edge, part = math.floor(rules.load) + 1, part_of(rules.pools, rules.load)
    pass_time(rules, state, book, edge, part, load_at(rules, state.time))
    book.max_time[state.max_level] += state.time - state.max_since
    state.max_since = state.time
    if state.threshold >= 0:
        book.threshold_time[state.threshold] += state.time - state.threshold_since
        state.threshold_since = state.time
