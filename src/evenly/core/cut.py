"""A cut through the marginal utilities of pools of different sizes: it gives each size its own threshold.

All marginal utilities of all sizes are sorted, the largest first. Equal ones share a place. The cut is at one
place of this order, its index. A pool is below the cut while the marginal utility of its next task lies before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

_KEPT = 1024  # marginal utilities

Marginal = Callable[[float, int], float]  # of size and tasks; falls with the tasks


class Bounds(NamedTuple):
    """The thresholds of one size: green below `lower` tasks, yellow below `upper`, which is at most one more."""

    lower: int
    upper: int


class Cut:
    """The cut, and the sizes that are present. With one size, `lower` is the index and `upper` is one more.

    Only the marginal utilities near the cut are ever computed, so that a move costs time linear in the number of
    sizes, however different these are.
    """

    def __init__(self, marginal: Marginal, index: int = 0) -> None:
        self._marginal = lru_cache(maxsize=_KEPT)(marginal)  # a step asks for those of the step before again
        self._first = index  # as long as nothing has moved the cut
        self._value: float | None = None  # the marginal utility at the cut
        self._pools: dict[float, int] = {}  # of each size
        self._bounds: dict[float, Bounds] = {}
        self._index: int | None = index  # None: count again

    @property
    def index(self) -> int:
        """The number of different marginal utilities before the cut."""
        if self._index is None and len(self._bounds) == 1:
            [self._index] = (bounds.lower for bounds in self._bounds.values())
        if self._index is None:
            before = ((size, range(bounds.lower)) for size, bounds in self._bounds.items())
            self._index = len({self._marginal(size, tasks) for size, counts in before for tasks in counts})
        return self._index

    def bounds(self, size: float) -> Bounds:
        """Return the thresholds of a size; of one that is not present, those that it would get."""
        found = self._bounds.get(size)
        if found is None:
            found = Bounds(0, 0) if self._value is None else self._bounds_at(size, self._value)
        return found

    def all_bounds(self) -> dict[float, Bounds]:
        """Return the thresholds of all sizes that are present."""
        return dict(self._bounds)

    def add(self, size: float, *, keep_index: bool, pools: int = 1) -> bool:
        """Count in pools of one size. Return True if the cut has moved for other sizes.

        A new size changes the order. The cut then keeps its index, or else its place between the marginal
        utilities of the other sizes, whose thresholds stay.
        """
        self._pools[size] = self._pools.get(size, 0) + pools
        if size in self._bounds:
            return False
        if keep_index or self._value is None:
            others = bool(self._bounds)
            self._restart(self._first)
            return others
        self._bounds[size] = self._bounds_at(size, self._value)
        self._index = None
        return False

    def discard(self, size: float) -> None:
        """Count out a pool. The thresholds of the other sizes stay."""
        self._pools[size] -= 1
        if self._pools[size] == 0:
            self._index = self.index if len(self._bounds) == 1 else None  # without pools, it stays
            del self._pools[size]
            del self._bounds[size]

    def up(self) -> None:
        """Move to the next place in the order."""
        value = max(self._marginal(size, bounds.upper) for size, bounds in self._bounds.items())
        at_a_place = any(bounds.upper > bounds.lower for bounds in self._bounds.values())
        for size, (_, upper) in self._bounds.items():
            self._bounds[size] = Bounds(upper, upper + int(self._marginal(size, upper) == value))
        self._value = value
        if self._index is not None:
            self._index += int(at_a_place)

    def down(self) -> bool:
        """Move to the place before. Return False if there is none."""
        last = {size: self._marginal(size, lower - 1) for size, (lower, _) in self._bounds.items() if lower > 0}
        if not last:
            return False
        value = min(last.values())
        for size, (lower, _) in self._bounds.items():
            self._bounds[size] = Bounds(lower - int(last.get(size) == value), lower)
        self._value = value
        if self._index is not None:
            self._index -= 1
        return True

    def move_to(self, index: int) -> None:
        """Move to an index; without pools, as soon as there are some."""
        self._first = index
        if not self._bounds:
            self._index, self._value = index, None
        while self._bounds and self.index < index:
            self.up()
        while self._bounds and self.index > index:
            self.down()

    def index_for(self, tasks: float) -> int:
        """Return the largest index whose thresholds add up to at most `tasks` tasks over all pools."""
        return self._best_for(tasks, self._pools).index if self._pools else 0

    def fit(self, tasks: float, pools: Mapping[float, int]) -> None:
        """Move to the largest index whose thresholds add up to at most `tasks` tasks.

        `pools` are the numbers of pools by size, at least one, whether they are counted in or not.
        """
        best = self._best_for(tasks, pools)
        self._value, self._index = best._value, None
        self._bounds = {size: best.bounds(size) for size in self._pools}

    def _best_for(self, tasks: float, pools: Mapping[float, int]) -> Cut:
        """Return the cut at the largest index whose thresholds add up to at most `tasks` tasks.

        The marginal utilities of the largest size are the largest ones, and the closest to each other. Bisection
        among them ends a few steps before the place.
        """
        largest = max(pools)

        def fits(count: int) -> bool:
            value = self._marginal(largest, count)
            return sum(self._bounds_at(size, value).lower * many for size, many in pools.items()) <= tasks

        best = Cut(self._marginal)
        best._value = value = self._marginal(largest, _count(fits) - 1)
        best._bounds = {size: self._bounds_at(size, value) for size in pools}
        best._index = None
        while sum(best._bounds[size].upper * many for size, many in pools.items()) <= tasks:
            best.up()
        return best

    def _restart(self, index: int) -> None:
        """Go to the index from the beginning of the order."""
        self._value = max((self._marginal(size, 0) for size in self._pools), default=None)
        self._bounds = {size: Bounds(0, int(self._marginal(size, 0) == self._value)) for size in self._pools}
        self._index = 0
        while self._bounds and self.index < index:
            self.up()

    def _bounds_at(self, size: float, value: float) -> Bounds:
        """Return the numbers of marginal utilities of the size that are above a value, and not below it."""
        lower = _count(lambda tasks: self._marginal(size, tasks) > value)
        return Bounds(lower, lower + int(self._marginal(size, lower) == value))


def _count(holds: Callable[[int], bool]) -> int:
    """Return the first number for which a condition fails that holds for all numbers before."""
    high = 1
    while holds(high - 1):
        high *= 2
    low = high // 2
    while low < high - 1:
        middle = (low + high) // 2
        if holds(middle - 1):
            low = middle
        else:
            high = middle
    return low
