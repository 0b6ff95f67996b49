"""Policies for pools of different sizes that know every pool's tasks, and weighted round robin."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from evenly.core.base import CountingPolicy
from evenly.core.checks import check_pool, chosen
from evenly.core.messages import PoolId
from evenly.core.poolset import PoolSet
from evenly.core.randomness import Choose
from evenly.workload.pools import DEFAULT_UTILITY, checked_size, find_utility, rounded


class SizedPolicy(CountingPolicy):
    """The events of a policy whose pools have sizes."""

    def __init__(self) -> None:
        super().__init__()
        self._sizes: dict[PoolId, float] = {}

    def join(self, pool: PoolId, tasks: int = 0, size: float = 1.0) -> None:
        """Add a pool of this size that has `tasks` tasks already."""
        check_pool(pool)
        size = checked_size(size)
        joined = pool not in self._pools
        if joined:
            self._sizes[pool] = size
        try:
            super().join(pool, tasks)
        except Exception:
            if joined:
                del self._sizes[pool]
            raise

    def leave(self, pool: PoolId) -> None:
        """Remove a pool; its tasks are forgotten."""
        super().leave(pool)
        del self._sizes[pool]


class HighestFirst(SizedPolicy):
    """Each task goes to a pool of the highest priority, uniformly among them. A subclass defines the priority.

    The dispatcher counts the tasks that it sends. Pools report every departure (`other`).
    """

    def __init__(self) -> None:
        super().__init__()
        self._ranks: dict[float, PoolSet[PoolId]] = {}  # priority -> the pools that have it, at least one
        self._highest: float  # priority, where there are pools

    def _priority(self, size: float, tasks: int) -> float:
        """Return the priority of a pool, which must fall with its tasks."""
        raise NotImplementedError

    def _pick(self, choose: Choose) -> PoolId:
        return chosen(choose, self._ranks[self._highest])

    def _joined(self, pool: PoolId, tasks: int) -> None:
        self._insert(pool, tasks)

    def _left(self, pool: PoolId, tasks: int) -> None:
        self._remove(pool, tasks)

    def _arrived(self, pool: PoolId, tasks: int) -> None:
        self._insert(pool, tasks)
        self._remove(pool, tasks - 1)

    def _departed(self, pool: PoolId, tasks: int) -> None:
        self._messages.other += 1
        self._insert(pool, tasks)
        self._remove(pool, tasks + 1)

    def _insert(self, pool: PoolId, tasks: int) -> None:
        priority = self._priority(self._sizes[pool], tasks)
        self._highest = max(self._highest, priority) if self._ranks else priority
        self._ranks.setdefault(priority, PoolSet()).add(pool)

    def _remove(self, pool: PoolId, tasks: int) -> None:
        priority = self._priority(self._sizes[pool], tasks)
        self._ranks[priority].discard(pool)
        if not self._ranks[priority]:
            del self._ranks[priority]
            if priority == self._highest and self._ranks:
                self._highest = max(self._ranks)


class GreedyUtility(HighestFirst):
    """Greedy: each task goes to a pool where it adds the most utility, uniformly among them.

    With pools of one size this is join the shortest queue. `utility` is a name of
    `evenly.workload.pools.UTILITIES`.
    """

    def __init__(self, utility: str = DEFAULT_UTILITY) -> None:
        super().__init__()
        self._utility = find_utility(utility)

    def _priority(self, size: float, tasks: int) -> float:
        return self._utility.marginal(size, tasks)


class WeightedLeast(HighestFirst):
    """Weighted least connections: each task goes to a pool with the fewest tasks per size, on a tie uniformly."""

    def _priority(self, size: float, tasks: int) -> float:
        return -rounded(tasks / size)


class WeightedRoundRobin(SizedPolicy):
    """Weighted round robin: pools take turns in proportion to their sizes; deterministic, no messages.

    The pools of each size take turns among themselves. The turns of a size are evenly spaced in virtual time, at
    the rate of the total size of its pools, so that a pool four times larger gets a task four times as often. With
    pools of one size this is round robin.
    """

    def __init__(self) -> None:
        super().__init__()
        self._turns: dict[float, _Turns] = {}  # of each size
        self._now = 0.0  # virtual time

    def _pick(self, choose: Choose) -> PoolId:
        size = min(self._turns, key=self._next)  # of equals, the size that came first
        turns = self._turns[size]
        self._now = self._next(size)
        turns.next += 1
        turns.pools.rotate(-1)
        return turns.pools[-1]

    def _next(self, size: float) -> float:
        turns = self._turns[size]
        return turns.start + turns.next / (size * len(turns.pools))

    def _joined(self, pool: PoolId, tasks: int) -> None:
        size = self._sizes[pool]
        if size in self._turns:
            self._start_over(size)
        else:
            self._turns[size] = _Turns(self._now)
        self._turns[size].pools.append(pool)

    def _left(self, pool: PoolId, tasks: int) -> None:
        size = self._sizes[pool]
        self._start_over(size)
        self._turns[size].pools.remove(pool)
        if not self._turns[size].pools:
            del self._turns[size]

    def _start_over(self, size: float) -> None:
        """Count turns from now on, because the rate is about to change; what is left of a turn stays."""
        turns = self._turns[size]
        turns.next -= (self._now - turns.start) * size * len(turns.pools)
        turns.start = self._now


@dataclass(slots=True)
class _Turns:
    """The turns of one size: the next one is due `next` turns after `start`, in virtual time."""

    start: float
    next: float = 0.5
    pools: deque[PoolId] = field(default_factory=deque)
