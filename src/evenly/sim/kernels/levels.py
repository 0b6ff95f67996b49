"""Find the level of a pool or a task in the counts, whatever the number of levels.

Most systems have their pools on a few levels near the fullest, where a walk down from there is fastest. A start
such as 0, 1, ..., 9999 tasks has thousands of them, so books with many levels also keep sums of `at_least` in a
Fenwick tree: `tree[i]` is the sum over the levels from i - (lowest set bit of i) + 1 to i.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenly.sim.kernels.jit import inlined, kernel

IntArray = NDArray[np.int64]

_DEEP = 512  # levels; with fewer, a walk costs less than it takes to keep the tree
_NEAR = 8  # levels to walk down before the search begins

# An unsigned index needs no check for a negative one, which counts from the end: this saves a tenth of the time.
at = np.uintp


def tree_of(at_least: IntArray) -> IntArray:
    """Return the tree of the counts; without entries if there are few levels."""
    if at_least.size <= _DEEP:
        return np.zeros(0, np.int64)
    levels = np.arange(at_least.size)
    sums = np.concatenate([[0], np.cumsum(at_least[1:])])
    return np.asarray(sums - sums[levels - (levels & -levels)], np.int64)


@kernel
def update_tree(tree: IntArray, level: int, change: int) -> None:
    """Record that `at_least` changed at a level; the level is at least 1."""
    while level < tree.size:
        tree[at(level)] += change
        level += level & -level


@inlined
def level_of_rank(at_least: IntArray, tree: IntArray, pools: int, rank: int, top: int) -> int:
    """Return the tasks of the pool with this rank, counted from the emptiest; it has at most `top`."""
    level = top
    if tree.size > 0 and top > _NEAR and at_least[at(top - _NEAR)] + rank < pools:
        level = _bisected(at_least, pools - rank, top - _NEAR)
    while at_least[at(level)] + rank < pools:
        level -= 1
    return level


@kernel
def _bisected(at_least: IntArray, count: int, above: int) -> int:
    """Return the highest level that at least `count` pools have reached; it is below `above`."""
    level = 0
    while above - level > 1:
        middle = (level + above) >> 1
        if at_least[at(middle)] < count:
            above = middle
        else:
            level = middle
    return level


@inlined
def level_of_task(at_least: IntArray, tree: IntArray, total: int, task: int, top: int) -> int:
    """Return the tasks in the pool of this task, when tasks are counted from the fullest pools down."""
    last = top - _NEAR if tree.size > 0 else 0
    left = task
    here = top * at_least[at(top)]
    below = int(left >= here)
    level = top - below
    left -= below * here
    here = level * (at_least[at(level)] - at_least[at(level + 1)])
    while left >= here and level > last:
        left -= here
        level -= 1
        here = level * (at_least[at(level)] - at_least[at(level + 1)])
    if left >= here:
        level = _descended(at_least, tree, total, task)
    return level


@kernel
def _descended(at_least: IntArray, tree: IntArray, total: int, task: int) -> int:
    """Return the same by the tree, bit by bit from the highest.

    The pools with `level` tasks or more have level * at_least[level] tasks plus the sum of `at_least` above it.
    The highest level where that exceeds `task` is the one.
    """
    bit = 1
    while 2 * bit < tree.size:
        bit *= 2
    level = 0
    above = total  # the sum of `at_least` above the level
    while bit > 0:
        higher = level + bit
        if higher < tree.size:
            left = above - tree[at(higher)]
            if higher * at_least[at(higher)] + left > task:
                level, above = higher, left
        bit >>= 1
    return level
