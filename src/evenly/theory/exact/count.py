"""Count the states of a small system before building any, so that one that is too large is rejected at once.

The count is exact for join-the-shortest-queue, random assignment and a fixed threshold. For power-of-d and for a
learned threshold it is a lower bound: the states that surely can be reached.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from math import comb, lgamma, log

import numpy as np

from evenly.policies import DEFAULT
from evenly.theory.exact.chain import IntArray, SmallSystem, too_large

_MOST_TASKS, _MOST_POOLS = 600, 30  # enough for power-of-d to exceed any limit on states


def check_size(system: SmallSystem, policy: str, sample_size: int, max_states: int) -> None:
    """Reject a system of more than `max_states` states; `sample_size` is that of power-of-d, or 1."""
    levels, above = divmod(system.total_limit, system.pools)
    rough = lgamma(system.pools + levels + 1) - lgamma(system.pools + 1) - lgamma(levels + 1)
    if rough > log(1e12):  # the numbers below would be too long
        raise too_large(f"1e{int(rough / log(10))}", max_states)
    counts: Iterator[int]
    if system.falls_at is not None:
        counts = _learning(system, system.falls_at, max_states)
    elif system.capacity is not None or policy == "jsq":
        counts = iter([up_to(system.pools, levels, above)])
    elif policy == DEFAULT:
        counts = _fixed_threshold(system, max_states)
    else:
        counts = _sampling(system, sample_size, max_states)
    for states in accumulate(counts):
        if states > max_states:
            raise too_large(f"{states:,}", max_states)


def up_to(pools: int, level: int, above: int) -> int:
    """Count the occupancies with at most `above` pools at level + 1, and the others at `level` or below.

    Join-the-shortest-queue reaches these and no others: it fills all pools to `level` first, and departures lead
    from there to every occupancy below. Any policy can make the same choices, so that all of them reach these.
    """
    return comb(pools + level, level) + comb(pools + level, level + 1) - comb(pools - above + level, level + 1)


def partitions(pools: int, largest: int, total: int) -> Iterator[IntArray]:
    """Count the occupancies of 1, 2, ... pools with up to `largest` tasks each, by their total from 0 to `total`.

    The generating function is a Gaussian binomial, which is symmetric in pools and levels: the loop runs over
    the smaller number. The last array is the one for all pools.
    """
    steps, other = sorted((pools, largest))
    counts = np.zeros(total + 1, np.int64)
    counts[0] = 1
    for step in range(1, min(steps, total) + 1):
        if other + step <= total:
            counts[other + step :] -= counts[: -(other + step)].copy()
        rows = -(-counts.size // step)
        padded = np.zeros(rows * step, np.int64)
        padded[: counts.size] = counts
        counts = np.cumsum(padded.reshape(rows, step), axis=0).ravel()[: counts.size]
        yield counts
    if steps == 0 or total == 0:
        yield counts


def _by_total(pools: int, largest: int, total: int, enough: int) -> IntArray:
    """Count the occupancies with at most 0, 1, ... `total` tasks in all, or stop when there are `enough`."""
    counts = np.ones(1, np.int64)
    for found in partitions(pools, largest, total):
        counts = np.cumsum(found)
        if counts[-1] > enough:
            break
    return counts


def _fixed_threshold(system: SmallSystem, enough: int) -> Iterator[int]:
    """Count by the fullest pool: up to the threshold, one above it, or higher.

    The second requires that all pools have been at the threshold, and the third all one above it.
    """
    pools, total, threshold = system.pools, system.total_limit, system.threshold
    high = threshold + 1
    if total <= threshold * pools:
        yield int(_by_total(pools, threshold, total, enough)[-1])
        return
    yield up_to(pools, threshold, min(pools, total - threshold * pools))
    yield from _spilled(pools, high, total - high * pools, pools)


def _spilled(pools: int, high: int, excess: int, most_over: int) -> Iterator[int]:
    """Count the occupancies with 1, 2, ... pools above `high`, which share up to `excess` tasks beyond it."""
    if excess < 1 or most_over < 1:
        return
    for over, counts in enumerate(partitions(most_over, excess, excess), start=1):
        yield int(counts[: max(excess - over + 1, 0)].sum()) * comb(pools - over + high, high)


def _sampling(system: SmallSystem, sample_size: int, enough: int) -> Iterator[int]:
    """Count by the fullest pool, at level v.

    It rose to v when the other pools sampled with it were at v - 1 or higher. So it suffices that the limit on all
    tasks allows v - 1 or more in each of the `sample_size` fullest pools, and in the others what they have. With a
    sample of one pool, every occupancy can be reached.
    """
    pools, total = system.pools, system.total_limit
    if sample_size == 1:
        yield int(_by_total(pools, total, total, enough)[-1])
        return
    surely = up_to(pools, *divmod(total, pools))
    if surely > enough or sample_size == pools:
        yield surely
        return
    total, others = min(total, _MOST_TASKS), min(pools - sample_size, _MOST_POOLS)
    rest: list[IntArray] = []  # by the most tasks of one of the others and of all of them
    yield 1  # the empty system
    for level in range(1, total + 1):
        while len(rest) <= level:
            rest.append(np.cumsum(list(partitions(others, len(rest), total))[-1]))
        found = 0
        for full in range(1, sample_size + 1):  # of the sampled pools, at `level`
            left = total - full * level - (sample_size - full) * (level - 1)
            if left < 0:
                break
            below = sample_size - full  # at most at level - 1, the last of them at `lowest`
            if below == 0:
                found += int(rest[level][left])
            for lowest in range(level if below else 0):
                found += comb(below - 1 + level - 1 - lowest, below - 1) * int(rest[lowest][left])
        if found == 0:
            return
        yield found


def _learning(system: SmallSystem, falls_at: int, enough: int) -> Iterator[int]:
    """Count by the threshold.

    All pools can fill up to a level together with the threshold. When it falls from there, pools can stay above
    it: at most `falls_at` of them, while the others go down with it and up again to threshold + 1, all but one.
    """
    pools, capacity = system.pools, system.capacity
    if (
        pools == 1 and capacity is not None
    ):  # the threshold never falls, and the pool is never above it until the end
        yield 1 + comb(capacity + 1, 2) - comb(system.threshold + 1, 2)
        return
    levels, above = divmod(system.total_limit, pools)
    if capacity is None:
        yield from _falling(system, levels, enough)
    yield up_to(pools, levels, above)
    for threshold in range(levels - 1 - (capacity is not None), -1, -1):
        high = threshold + 1
        if falls_at == pools - 1 and capacity is None:
            # Rules that cancel let the threshold fall to an arrival after which all pools are above it: the next
            # task goes to a random pool. All but two pools can be raised in this way, again and again.
            yield comb(pools + high, high)
            yield from _spilled(pools, high, system.total_limit - high * pools, pools - 2)
            continue
        most_over = min(falls_at, pools - 2) if high < levels else 0
        for over in range(most_over + 1):
            higher = comb(over + levels - high - 1, over) if over else 1
            yield higher * (comb(pools - over + high, high) - 1)


def _falling(system: SmallSystem, levels: int, enough: int) -> Iterator[int]:
    """Count the states on the way down from a start above every level that all pools can fill up to.

    The threshold falls with each arrival while no pool has reached it, and until then tasks go to any pool.
    """
    pools, total, start = system.pools, system.total_limit, system.threshold
    reached = max(levels, min(total - 1, start // 2))  # a pool may have as many tasks as the threshold or more
    falls = start - reached
    if falls > enough:
        yield falls
    elif falls > 0:
        most = min(total, falls - 1)
        counts = _by_total(pools, most, most, enough)
        yield int(counts[:falls].sum()) + max(falls - counts.size, 0) * int(counts[-1])
    for threshold in range(min(reached, start), levels, -1):
        yield int(_by_total(pools, threshold, min(total, start - threshold), enough)[-1])
