"""The integrals over a stretch of events that was only logged: what the records cost is paid here, and in bulk.

In a stretch (see `evenly.sim.kernels.window`) the threshold stays, and so do all counts but three: those of the
pools with at least threshold - 1, threshold and threshold + 1 tasks. Everything that a run records follows from
these counts and the times of the events. The terms of the sums do not depend on each other, so vector instructions
compute them, square roots included. Only the additions are made one after the other, in the order of the events:
the sums have the same bits as if each event had added its own term.

A record that is left out costs nothing. See `OMIT_SPREAD` and its neighbours in `evenly.sim.kernels.ledger`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenly.sim.kernels.integrals import part_of
from evenly.sim.kernels.jit import inlined
from evenly.sim.kernels.ledger import OMIT_ALL, OMIT_IMBALANCE, OMIT_SPREAD, Book, Record
from evenly.sim.kernels.levels import at

SEGMENT = 256  # events at most, so that the log and the random numbers fit into the fastest cache
RATES = 8 * SEGMENT
_VECTOR = 8  # terms are computed up to a multiple of this, because a remainder would be computed one by one

# Up to here, sums of whole numbers in floats are exact, with room for what a stretch adds.
EXACT = 2.0**52

Counts = NDArray[np.int32]
Floats = NDArray[np.float64]


class Log(NamedTuple):
    """The events of a stretch, and scratch space."""

    low: Counts  # the three counts that change, before each event
    mid: Counts
    high: Counts
    edge: Counts  # of the level above floor(load), if it is none of the three
    times: Floats  # of the event before each event
    terms: Floats  # five rows: spread, distance to balance, and three levels
    rates: Floats  # rates of the next event, by the total number of tasks,
    first: NDArray[np.int64]  # from this number on


def new_log() -> Log:
    """Return an empty log."""
    low, mid, high = np.zeros((3, SEGMENT + _VECTOR), np.int32)
    return Log(
        low=low,
        mid=mid,
        high=high,
        edge=np.zeros(SEGMENT + _VECTOR, np.int32),
        times=np.zeros(SEGMENT + _VECTOR),
        terms=np.zeros((5, SEGMENT)),
        rates=np.zeros(RATES),
        first=np.zeros(1, np.int64),
    )


@inlined
def write_up(rules: Record, state: Record, book: Book, log: Log, events: int) -> None:
    """Add the events to the integrals; `state` and `book` are those before them."""
    whole = (events + _VECTOR - 1) // _VECTOR * _VECTOR
    if rules.omit & OMIT_SPREAD == 0 or rules.omit & OMIT_IMBALANCE == 0:
        _all_terms(rules, state, book, log, whole)
    elif rules.omit != OMIT_ALL:
        _level_terms(log, whole)
    if rules.omit != OMIT_ALL:
        _add(state, book.area, log.terms, events)


@inlined
def _all_terms(rules: Record, state: Record, book: Book, log: Log, events: int) -> None:
    """Compute spread and distance to balance, times duration, and what `_level_terms` computes.

    One pass for all takes little more time than one for a single record.

    The square roots and what follows are the operations of `evenly.sim.kernels.integrals`. What they are taken of
    consists of whole numbers below 2**53, so its order of summation does not matter. Of the sum of squares,
    2 i - 1 is due to a pool that reaches level i.
    """
    low, mid, high, times, edge = log.low, log.mid, log.high, log.times, log.edge
    spreads, distances = log.terms[0], log.terms[1]
    out_low, out_mid, out_high = log.terms[2], log.terms[3], log.terms[4]
    threshold, full = state.threshold, book.full
    pools, share = float(rules.pools), 1.0 / rules.pools
    weight = 2.0 * threshold - 1.0
    rest = float(state.total - (low[0] + mid[0] + high[0]))
    rest_squares = state.squares - (weight * (low[0] + mid[0] + high[0]) + 2.0 * (high[0] - low[0]))
    full_low, full_mid, full_high = full[threshold - 1], full[threshold], full[threshold + 1]
    first_low, first_mid, first_high = low[0] - full_low, mid[0] - full_mid, high[0] - full_high
    rest_gap = state.gap - (first_low * first_low + first_mid * first_mid + first_high * first_high)
    level, part = math.floor(rules.load) + 1, part_of(rules.pools, rules.load)
    if level == threshold - 1:
        edge = low
    elif level == threshold:
        edge = mid
    elif level == threshold + 1:
        edge = high
    else:
        for place in range(events):
            edge[at(place)] = book.at_least[at(level)]
    for place in range(events):
        a, b, c = float(low[at(place)]), float(mid[at(place)]), float(high[at(place)])
        passed = times[at(place + 1)] - times[at(place)]
        sum_ = a + b + c
        total = rest + sum_
        squares = rest_squares + (weight * sum_ + 2.0 * (c - a))
        spreads[at(place)] = math.sqrt(max(pools * squares - total * total, 0.0)) * share * passed
        a, b, c = a - full_low, b - full_mid, c - full_high
        gap = rest_gap + (a * a + b * b + c * c)
        distances[at(place)] = math.sqrt(max(gap + part * (part - 2.0 * float(edge[at(place)])), 0.0)) * passed
        time = times[at(place + 1)]
        out_low[at(place)] = float(low[at(place)] - low[at(place + 1)]) * time
        out_mid[at(place)] = float(mid[at(place)] - mid[at(place + 1)]) * time
        out_high[at(place)] = float(high[at(place)] - high[at(place + 1)]) * time


@inlined
def _level_terms(log: Log, events: int) -> None:
    """Compute what each event adds to the integrals of the three counts: see `evenly.sim.kernels.ledger`."""
    low, mid, high = log.low, log.mid, log.high
    times, out_low, out_mid, out_high = log.times, log.terms[2], log.terms[3], log.terms[4]
    for place in range(events):
        time = times[at(place + 1)]
        out_low[at(place)] = float(low[at(place)] - low[at(place + 1)]) * time
        out_mid[at(place)] = float(mid[at(place)] - mid[at(place + 1)]) * time
        out_high[at(place)] = float(high[at(place)] - high[at(place + 1)]) * time


@inlined
def _add(state: Record, area: Floats, terms: Floats, events: int) -> None:
    """Add the terms in the order of the events. Those of omitted records are old, and mean nothing."""
    spread, apart, low, mid, high = terms[0], terms[1], terms[2], terms[3], terms[4]
    threshold = state.threshold
    spread_area, gap_area = state.spread_area, state.gap_area
    area_low, area_mid, area_high = area[threshold - 1], area[threshold], area[threshold + 1]
    for place in range(events):
        spread_area += spread[at(place)]
        gap_area += apart[at(place)]
        area_low += low[at(place)]
        area_mid += mid[at(place)]
        area_high += high[at(place)]
    state.spread_area, state.gap_area = spread_area, gap_area
    area[threshold - 1], area[threshold], area[threshold + 1] = area_low, area_mid, area_high
