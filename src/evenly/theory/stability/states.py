"""States of a chain in which the threshold is at a level, or below it.

Fix a level. A pool with fewer tasks is short: `short` counts them, `missing` is what they lack in all, `extra` =
missing - short what they lack beyond one task each, and `over` counts the pools with more tasks than the level.
A state is high when the threshold is the level, and low when it is less. In both a task goes to a short pool
while there is one, so that `missing` and `over` are a chain by themselves; `extra` tells when the threshold
changes. The states here do not include `over`: there is one such set for each of its values.

Paper: Sec. 4.1, the rule; Prop. 2, for a fixed threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from evenly.theory.stability.missing import extra_when_short, missing_at_fall

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

OVERSHOOT = 16  # departures between the cut and the arrival that sees it: more have odds of about 2**-16
_FEW, _MANY = 600, 4000  # high states up to which `extra` is kept, when few or many short pools have some
_MANY_LACK_MORE = 0.1  # from this share of short pools on
_MAX_WORK = 5 * 10**8  # multiplications of a level with many, about: some seconds
_NEAR = 8  # missing tasks up to which a low state keeps `extra`, to tell when the threshold rises
_NEAR_OF_FEW = 24  # the same when arrivals are few enough that `extra` lasts
_GROWTH = 8  # rows over which the gap between rows grows by one
_GAPS = 15  # widest gaps in a standard deviation of the number of tasks


@dataclass(frozen=True)
class Fleet:
    """The system. The threshold falls at an arrival that finds `cut` short pools."""

    pools: int
    load: float
    cut: int

    @property
    def arrivals(self) -> float:
        """Arrivals per mean task time."""
        return self.pools * self.load


@dataclass(frozen=True)
class Shape:
    """The extent and the resolution of the states of a level.

    `resolved` is True if high states keep `extra`. If not, the threshold falls when `edge` tasks are missing,
    which is `accurate` while few short pools lack more than one task.
    """

    near: int
    low_extra: int
    most_short: int
    most_extra: int
    edge: float
    top: int  # most missing tasks of a high state
    resolved: bool
    accurate: bool


@dataclass(frozen=True)
class Sheet:
    """The high or the low states: rows of `missing`, each with a range of `extra`, or a zero if it is not kept."""

    missing: IntArray
    least: IntArray
    most: IntArray
    resolved: BoolArray

    @cached_property
    def row(self) -> IntArray:
        """The row of each state."""
        return np.repeat(np.arange(self.missing.size), self.most - self.least + 1)

    @cached_property
    def extra(self) -> IntArray:
        """The extra of each state."""
        return np.arange(self.row.size) - self._first[self.row] + self.least[self.row]

    @cached_property
    def _first(self) -> IntArray:
        return np.concatenate([[0], np.cumsum(self.most - self.least + 1)[:-1]])

    def find(self, missing: IntArray, extra: IntArray) -> IntArray:
        """Return the numbers of states, with the nearest `extra` that there is; -1 where there is no such row."""
        row = np.minimum(np.searchsorted(self.missing, missing), self.missing.size - 1)
        number = self._first[row] + np.clip(extra, self.least[row], self.most[row]) - self.least[row]
        return np.where(self.missing[row] == missing, number, -1)


def shape_of(fleet: Fleet, level: int, resolve: bool | None = None) -> Shape:
    """Return the shape of a level; `extra` is kept if that is quick, unless `resolve` decides."""
    most_short = min(fleet.pools, fleet.cut + OVERSHOOT)
    rest, lacking_more = extra_when_short(fleet.arrivals, level, fleet.cut)
    most_extra = min(ceil(rest + 6 * sqrt(rest) + 3), (level - 1) * most_short)
    many = lacking_more > _MANY_LACK_MORE
    if resolve is None:
        states = most_short * (most_extra + 1)
        quick = states <= _MANY and fleet.pools * states * most_short**2 <= _MAX_WORK
        resolved = quick if many else states <= _FEW
    else:
        resolved = resolve
    edge = missing_at_fall(fleet.arrivals, level, fleet.cut)
    top = most_short + most_extra if resolved else ceil(edge) + OVERSHOOT
    # Extra of a low state is a queue that fills at (level - 1) * short and empties at the rate of arrivals.
    near = _NEAR_OF_FEW if (level - 1) * _NEAR > fleet.arrivals / 10 else _NEAR
    return Shape(
        near=near,
        low_extra=near // 2,
        most_short=most_short,
        most_extra=most_extra,
        edge=edge,
        top=min(top, level * fleet.pools),
        resolved=resolved,
        accurate=resolved or not many,
    )


def low_and_high(fleet: Fleet, level: int, shape: Shape, most_missing: int) -> tuple[Sheet, Sheet]:
    """Return both sheets, with up to this many tasks missing, or more if the threshold needs more to fall."""
    last = min(max(most_missing, shape.top), level * fleet.pools)
    rows = np.array(_rows(shape, last, max(int(sqrt(fleet.arrivals) / _GAPS), 1)), dtype=np.int64)
    return _low(fleet, level, shape, rows[1:]), _high(level, shape, rows[rows <= shape.top])


def _rows(shape: Shape, last: int, widest: int) -> list[int]:
    """Return the values of `missing`: one by one where the threshold may change, sparser elsewhere."""
    fine_to = shape.top if shape.resolved else min(shape.near + 1, shape.top)
    fine_from = shape.top if shape.resolved else ceil(shape.edge) - _NEAR
    rows = [0]
    while rows[-1] < last:
        now = rows[-1]
        far = max(now - shape.top, 0)
        if fine_to <= now < fine_from:
            far = min(now - fine_to, fine_from - now)
        rows.append(min(now + min(1 + far // _GROWTH, widest), fine_from if now < fine_from else last))
    return rows


def _low(fleet: Fleet, level: int, shape: Shape, missing: IntArray) -> Sheet:
    resolved = missing <= shape.near
    least = np.maximum(missing - fleet.pools, 0)  # no more pools are short than there are
    most = np.maximum(np.minimum(missing * (level - 1) // level, shape.low_extra), least)
    return Sheet(missing, np.where(resolved, least, 0), np.where(resolved, most, 0), resolved)


def _high(level: int, shape: Shape, missing: IntArray) -> Sheet:
    if not shape.resolved:
        none = np.zeros_like(missing)
        return Sheet(missing, none, none, none.astype(bool))
    least = np.maximum(missing - shape.most_short, 0)
    most = np.minimum(missing * (level - 1) // level, shape.most_extra)
    kept = least <= most
    return Sheet(missing[kept], least[kept], most[kept], np.ones(int(kept.sum()), dtype=bool))
