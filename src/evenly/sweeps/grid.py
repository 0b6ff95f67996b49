"""The grid of a sweep: its points, numbered, and made one at a time.

Lists multiply, and lists that are zipped vary together. A parameter that a policy does not take is left out under
that policy, so that `policy jsq,threshold` times `alpha 0.8,0.9` has three points: jsq, and the threshold with
each alpha. Which parameters are left out depends on the policy alone. The grid is therefore a sequence of blocks,
one per policy, and each block is a plain product: a point is found from its number by division, and a million
points take no memory.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenly.errors import InputError
from evenly.policies import PARAMETERS, check_parameters, find_policy
from evenly.sweeps.axes import RUN
from evenly.sweeps.identity import Lanes, column_lanes, lanes_of_values

MAX_POINTS = 10**7
GOLDEN = (math.sqrt(5) - 1) / 2

Values = dict[str, Any]


def seeds(name: str) -> bool:
    """Return True for an option that the random numbers of a point depend on.

    More replications, or other batches, continue the same random numbers.
    """
    return name == "seed" or name not in RUN


@dataclass(frozen=True)
class Group:
    """Options that vary together: one row of values for each place."""

    names: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def without(self, dropped: frozenset[str]) -> Group:
        """Return the group without some options, and without the rows that are then repeated."""
        kept = [place for place, name in enumerate(self.names) if name not in dropped]
        if len(kept) == len(self.names):
            return self
        rows = dict.fromkeys(tuple(row[place] for place in kept) for row in self.rows)
        return Group(tuple(self.names[place] for place in kept), tuple(rows))

    @cached_property
    def lanes(self) -> Lanes:
        """The sum of the digests of each row's values."""
        total = np.zeros((len(self.rows), 2), np.uint64)
        for name, column in zip(self.names, zip(*self.rows, strict=True), strict=True):
            total += column_lanes(name, column)
        return total

    @cached_property
    def scenario_part(self) -> Group:
        """The group without the options that the random numbers do not depend on, in as many rows."""
        kept = [place for place, name in enumerate(self.names) if seeds(name)]
        rows = tuple(tuple(row[place] for place in kept) for row in self.rows)
        return Group(tuple(self.names[place] for place in kept), rows)


@dataclass(frozen=True)
class Block:
    """All points under one policy: fixed values, and groups that multiply. The last group varies fastest."""

    fixed: Values
    groups: tuple[Group, ...]

    @cached_property
    def size(self) -> int:
        """The number of points."""
        return math.prod(len(group.rows) for group in self.groups)

    @cached_property
    def _fixed_lanes(self) -> Lanes:
        return lanes_of_values(self.fixed)

    @cached_property
    def _seeded_lanes(self) -> Lanes:
        return lanes_of_values({name: value for name, value in self.fixed.items() if seeds(name)})

    def values(self, place: int) -> Values:
        """Return the values of a point."""
        found = dict(self.fixed)
        for group in reversed(self.groups):
            place, row = divmod(place, len(group.rows))
            found.update(zip(group.names, group.rows[row], strict=True))
        return found

    def lanes(self, places: NDArray[np.int64], *, scenario_only: bool = False) -> Lanes:
        """Return the digests of points: sums over their values, so that their order does not matter."""
        total = np.tile(self._seeded_lanes if scenario_only else self._fixed_lanes, (len(places), 1))
        for group in reversed(self.groups):
            places, rows = np.divmod(places, len(group.rows))
            total += (group.scenario_part if scenario_only else group).lanes[rows]
        return total


@dataclass(frozen=True)
class Grid:
    """The points of a sweep, numbered from 0."""

    blocks: tuple[Block, ...]
    groups: tuple[Group, ...]  # as given, also those with one row

    def __len__(self) -> int:
        return self._ends[-1]

    @cached_property
    def _ends(self) -> list[int]:
        return list(itertools.accumulate(block.size for block in self.blocks))

    def values(self, index: int) -> Values:
        """Return the values of a point by their options."""
        block = bisect_right(self._ends, index)
        return self.blocks[block].values(index - self._ends[block] + self.blocks[block].size)

    def lanes(self, indices: NDArray[np.int64], *, scenario_only: bool = False) -> Lanes:
        """Return 128 bits per point that identify its values: all, or those that the random numbers depend on."""
        found = np.zeros((len(indices), 2), np.uint64)
        homes = np.searchsorted(self._ends, indices, side="right")
        for home in np.unique(homes).tolist():
            here = homes == home
            start = self._ends[home] - self.blocks[home].size
            found[here] = self.blocks[home].lanes(indices[here] - start, scenario_only=scenario_only)
        return found

    @property
    def axes(self) -> dict[str, tuple[Any, ...]]:
        """The options with more than one value, zipped ones included, with their values."""
        found = {}
        for group in self.groups:
            for place, name in enumerate(group.names):
                values = tuple(dict.fromkeys(row[place] for row in group.rows))
                if len(values) > 1:
                    found[name] = values
        return found

    def order(self) -> Iterator[int]:
        """Yield all points, in steps of the golden section of their number.

        Any stretch of this order covers the whole grid evenly. What has been measured so far is then typical of
        the rest, for an estimate of the time left and for a picture of a sweep that still runs.
        """
        count = len(self)
        step = max(round(GOLDEN * count), 1)
        while math.gcd(step, count) != 1:
            step += 1
        place = 0
        for _ in range(count):
            yield place
            place = (place + step) % count


def make_grid(axes: Mapping[str, Sequence[Any]], zipped: Sequence[Sequence[str]] = ()) -> Grid:
    """Return the grid of these options, each with its values. Options of a group in `zipped` vary together."""
    groups = _groups(axes, zipped)
    policies = list(dict.fromkeys(axes["policy"]))
    check_parameters(policies, {name: values[0] for name, values in axes.items() if values})
    head = next(group for group in groups if "policy" in group.names)
    others = [group for group in groups if group is not head]
    place = head.names.index("policy")
    fixed = {group.names[0]: group.rows[0][0] for group in others if len(group.rows) == len(group.names) == 1}
    others = [group for group in others if not len(group.rows) == len(group.names) == 1]
    by_policy: dict[Any, list[tuple[Any, ...]]] = {}
    for row in head.rows:
        by_policy.setdefault(row[place], []).append(row)
    blocks = []
    for policy, rows in by_policy.items():
        dropped = frozenset(PARAMETERS) - find_policy(policy, own=True).parameters
        within = [group.without(dropped) for group in (Group(head.names, tuple(rows)), *others)]
        kept = {name: value for name, value in fixed.items() if name not in dropped}
        blocks.append(Block(kept, tuple(group for group in within if group.names)))
    count = sum(block.size for block in blocks)
    if count > MAX_POINTS:
        raise InputError(f"A sweep has at most {MAX_POINTS} points, not {count}.")
    return Grid(tuple(blocks), tuple(groups))


def _groups(axes: Mapping[str, Sequence[Any]], zipped: Sequence[Sequence[str]]) -> list[Group]:
    together = [name for names in zipped for name in names]
    if len(set(together)) < len(together):
        raise InputError("zip must name each option once.")
    groups = []
    for names in zipped:
        lengths = {name: len(axes[name]) for name in names}
        if len(set(lengths.values())) > 1:
            counts = " and ".join(f"{name} has {count}" for name, count in lengths.items())
            raise InputError(f"Options that are zipped need equal numbers of values, but {counts}.")
        rows = zip(*(axes[name] for name in names), strict=True)
        groups.append(Group(tuple(names), tuple(dict.fromkeys(rows))))
    groups += [
        Group((name,), tuple((value,) for value in dict.fromkeys(values)))
        for name, values in axes.items()
        if name not in together
    ]
    order = {name: place for place, name in enumerate(axes)}
    return sorted(groups, key=lambda group: order[group.names[0]])
