"""Moves between the states of `states`, and when they change the threshold.

A rate is base + slope * over, where `over` counts the pools above the level, or zero where that is negative.

Paper: Sec. 2.1, Sec. 4.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from evenly.theory.balance import FloatArray
from evenly.theory.stability.missing import extra_when_short, share_lacking_more
from evenly.theory.stability.states import BoolArray, Fleet, IntArray, Shape, Sheet, low_and_high, shape_of


@dataclass(frozen=True)
class Lattice:
    """The states in order of `missing`, which keeps moves local; `full` is the high state without short pools."""

    high: BoolArray
    missing: IntArray
    extra: FloatArray
    lacking_more: FloatArray  # share of short pools that lack more than one task, in high states
    rise: FloatArray  # rate at which the threshold rises
    fall: FloatArray  # rate at which it falls
    source: IntArray
    target: IntArray
    base: FloatArray
    slope: FloatArray
    full: int
    accurate: bool

    def high_state(self, missing: int) -> int:
        """Return the high state with about this many tasks missing, from as many pools as possible."""
        states = np.flatnonzero(self.high)
        distance = np.abs(self.missing[states] - missing)
        nearest = states[distance == distance.min()]
        return int(nearest[np.argmin(self.extra[nearest])])


@dataclass(frozen=True)
class _Moves:
    """Moves between states, which are numbered within their sheets; a target of -1 does not exist."""

    source: IntArray
    target: IntArray
    from_high: bool
    to_high: bool
    base: FloatArray
    slope: FloatArray | float = 0.0


@dataclass(frozen=True)
class _Level:
    """The data of all moves; `falling` is the chance that an arrival in a high state lowers the threshold."""

    fleet: Fleet
    level: int
    low: Sheet
    high: Sheet
    lacking_more: FloatArray
    falling: FloatArray

    def sheet(self, high: bool) -> Sheet:
        return self.high if high else self.low


def build_lattice(fleet: Fleet, level: int, most_missing: int, resolve: bool | None = None) -> Lattice:
    """Build states with up to `most_missing` tasks missing; `resolve` overrides whether high ones keep `extra`."""
    shape = shape_of(fleet, level, resolve)
    low, high = low_and_high(fleet, level, shape, most_missing)
    here = _Level(fleet, level, low, high, _lacking_more(fleet, level, shape, high), _falling(fleet, shape, high))
    moves = [
        *_departures(here, False),
        *_departures(here, True),
        *_low_arrivals(here),
        *_high_arrivals(here),
        *_coarse_moves(here, False),
        *_coarse_moves(here, True),
    ]
    return _assemble(here, shape, moves)


def _lacking_more(fleet: Fleet, level: int, shape: Shape, high: Sheet) -> FloatArray:
    if not shape.resolved:
        return np.full(high.row.size, extra_when_short(fleet.arrivals, level, fleet.cut)[1])
    table = share_lacking_more(level, shape.most_short, shape.most_extra)
    shares: FloatArray = table[high.missing[high.row] - high.extra, high.extra]
    return shares


def _falling(fleet: Fleet, shape: Shape, high: Sheet) -> FloatArray:
    """Return the chance that an arrival makes the threshold fall.

    Without `extra` the edge lies between two rows: a chance of (1-x)/(1+x) at the lower one acts on a random
    walk like a sure fall at a distance x above it.
    """
    missing = high.missing[high.row]
    if shape.resolved:
        return np.where(missing - high.extra >= fleet.cut, 1.0, 0.0)
    before: FloatArray = np.clip(shape.edge - missing, 0.0, 1.0)
    return (1 - before) / (1 + before)


def _departures(here: _Level, high: bool) -> Iterator[_Moves]:
    """Yield the moves by a departure, from a pool at the level or from a short one."""
    sheet = here.sheet(high)
    states = np.flatnonzero(sheet.resolved[sheet.row]).astype(np.int64)
    missing, extra = sheet.missing[sheet.row[states]], sheet.extra[states]
    short = (missing - extra).astype(float)
    slope = -float(here.level)
    yield _Moves(
        states, sheet.find(missing + 1, extra), high, high, here.level * (here.fleet.pools - short), slope
    )
    yield _Moves(states, sheet.find(missing + 1, extra + 1), high, high, (here.level - 1) * short - extra)


def _low_arrivals(here: _Level) -> Iterator[_Moves]:
    """Yield the moves by an arrival in a low state.

    Pools that lack more than one task come first. The threshold rises if at most one pool was short.
    """
    low = here.low
    states = np.flatnonzero(low.resolved[low.row]).astype(np.int64)
    missing, extra = low.missing[low.row[states]], low.extra[states]
    for rises in (False, True):
        found = here.sheet(rises).find(missing - 1, np.maximum(extra - 1, 0))
        yield _Moves(
            states, found, False, rises, np.where((missing - extra <= 1) == rises, here.fleet.arrivals, 0.0)
        )


def _high_arrivals(here: _Level) -> Iterator[_Moves]:
    """Yield the moves by an arrival in a high state.

    All short pools are equally likely. The threshold falls if too many were short.
    """
    high = here.high
    states = np.flatnonzero(high.resolved[high.row] & (high.missing[high.row] > 0)).astype(np.int64)
    missing, extra = high.missing[high.row[states]] - 1, high.extra[states]
    for stays in (False, True):
        rate = here.fleet.arrivals * (1 - here.falling[states] if stays else here.falling[states])
        more = rate * here.lacking_more[states]
        yield _Moves(states, here.sheet(stays).find(missing, extra), True, stays, rate - more)
        yield _Moves(states, here.sheet(stays).find(missing, extra - 1), True, stays, more)


def _coarse_moves(here: _Level, high: bool) -> Iterator[_Moves]:
    """Yield moves between rows that do not keep `extra`, with the mean and variance of single tasks."""
    sheet = here.sheet(high)
    states = np.flatnonzero(~sheet.resolved[sheet.row]).astype(np.int64)
    row = sheet.row[states]
    missing, none = sheet.missing[row], np.zeros_like(row)
    after = np.append(sheet.missing, sheet.missing[-1] + 1)[row + 1]
    before = np.where(row > 0, sheet.missing[row - 1], missing - 1)
    up, down = (after - missing).astype(float), (missing - before).astype(float)
    departures = here.level * here.fleet.pools - missing
    drift, variance = departures - here.fleet.arrivals, departures + here.fleet.arrivals
    grow, shrink = up * (up + down), down * (up + down)
    base, slope = (variance + drift * down) / grow, -here.level * (1 + down) / grow
    yield _Moves(states, sheet.find(after, none), high, high, base, slope)
    base, slope = (variance - drift * up) / shrink, -here.level * (1 - up) / shrink
    falling = here.falling[states] if high else np.zeros(states.size)
    yield _Moves(states, sheet.find(before, none), high, high, (1 - falling) * base, (1 - falling) * slope)
    if high:
        yield _Moves(states, here.low.find(before, none), True, False, falling * base, falling * slope)


def _assemble(here: _Level, shape: Shape, moves: list[_Moves]) -> Lattice:
    """Number both sheets together, and drop moves that lead nowhere or never happen."""
    low, high = here.low, here.high
    missing = np.concatenate([low.missing[low.row], high.missing[high.row]])
    order = np.argsort(missing, kind="stable")
    number = np.empty_like(order)
    number[order] = np.arange(order.size)
    shift = {False: 0, True: low.row.size}
    source = np.concatenate([number[move.source + shift[move.from_high]] for move in moves])
    target = np.concatenate([np.where(m.target < 0, -1, number[m.target + shift[m.to_high]]) for m in moves])
    base = np.concatenate([move.base for move in moves])
    slope = np.concatenate([np.broadcast_to(move.slope, move.base.shape) for move in moves])
    kept = (target >= 0) & ((base != 0) | (slope != 0))
    is_high = order >= low.row.size
    rising = kept & ~is_high[source] & is_high[target]
    none = np.zeros(low.row.size)
    high_extra = high.extra if shape.resolved else np.full(high.row.size, shape.edge - here.fleet.cut)
    return Lattice(
        high=is_high,
        missing=missing[order],
        extra=np.concatenate([low.extra, high_extra])[order].astype(float),
        lacking_more=np.concatenate([none, here.lacking_more])[order],
        rise=np.bincount(source[rising], weights=base[rising], minlength=order.size).astype(float),
        fall=np.concatenate([none, here.fleet.arrivals * here.falling])[order],
        source=source[kept],
        target=target[kept],
        base=base[kept],
        slope=slope[kept],
        full=int(np.flatnonzero(is_high)[0]),
        accurate=shape.accurate,
    )
