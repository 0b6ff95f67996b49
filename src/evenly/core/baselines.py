"""Baseline policies that choose by load or at random, behind the same events as the paper's policy.

The baselines that hold tokens are in `token_baselines.py`.
"""

from collections import deque

from evenly.core.base import CountingPolicy
from evenly.core.checks import MAX_COUNT, chosen
from evenly.core.messages import PoolId
from evenly.core.poolset import PoolSet
from evenly.core.randomness import Choose
from evenly.inputs import whole_number


class JoinShortestQueue(CountingPolicy):
    """Join the shortest queue: each task goes to a pool with the fewest tasks, uniformly among them.

    The dispatcher counts the tasks that it sends. Pools report every departure (`other`).

    Paper: Sec. 1.2 and Sec. 2.1 (JSQ).
    """

    def __init__(self, capacity: int | None = None) -> None:
        super().__init__(capacity)
        self._levels: dict[int, PoolSet[PoolId]] = {}  # tasks -> the pools with that number, at least one
        self._lowest: int  # level, where there are pools

    def _pick(self, choose: Choose) -> PoolId:
        return chosen(choose, self._levels[self._lowest])

    def _joined(self, pool: PoolId, tasks: int) -> None:
        self._insert(pool, tasks)
        self._lowest = min(self._levels)

    def _left(self, pool: PoolId, tasks: int) -> None:
        self._remove(pool, tasks)
        if self._levels:
            self._lowest = min(self._levels)

    def _arrived(self, pool: PoolId, tasks: int) -> None:
        self._remove(pool, tasks - 1)
        self._insert(pool, tasks)
        if self._lowest not in self._levels:
            self._lowest = tasks  # the last pool at the lowest level moved up by one

    def _departed(self, pool: PoolId, tasks: int) -> None:
        self._messages.other += 1
        self._remove(pool, tasks + 1)
        self._insert(pool, tasks)
        self._lowest = min(self._lowest, tasks)

    def _insert(self, pool: PoolId, level: int) -> None:
        self._levels.setdefault(level, PoolSet()).add(pool)

    def _remove(self, pool: PoolId, level: int) -> None:
        self._levels[level].discard(pool)
        if not self._levels[level]:
            del self._levels[level]


class PowerOfD(CountingPolicy):
    """Power-of-d: each task goes to the least loaded of d distinct random pools, on a tie the first sampled.

    Each sampled pool gets a query and answers it: 2d messages per task (`other`). With fewer than d pools, all
    of them are sampled.

    Paper: Sec. 1.2 (power-of-d).
    """

    def __init__(self, sample_size: int, capacity: int | None = None) -> None:
        super().__init__(capacity)
        self._sample_size = whole_number("sample_size", sample_size, 1, MAX_COUNT)

    def _pick(self, choose: Choose) -> PoolId:
        sampled = self._sample(choose)
        self._messages.other += 2 * len(sampled)
        return min(sampled, key=self._tasks.__getitem__)  # min keeps the first of equals

    def _sample(self, choose: Choose) -> list[PoolId]:
        # A partial shuffle: a sampled pool moves behind the ones that can still be sampled. The new order is
        # kept: the next uniform choice works with any order.
        sampled = []
        for left in range(len(self._pools), max(0, len(self._pools) - self._sample_size), -1):
            pool = chosen(choose, self._pools.prefix(left))
            self._pools.exchange(pool, left - 1)
            sampled.append(pool)
        return sampled


class StaleReports(CountingPolicy):
    """The least loaded by the last reports: each task goes to a pool that reported the fewest, uniformly.

    Pools report their tasks when they join, and then whenever the caller says so, such as at regular intervals
    (`other`). The dispatcher does not count the tasks that it sends.
    """

    def __init__(self, capacity: int | None = None) -> None:
        super().__init__(capacity)
        self._levels: dict[int, PoolSet[PoolId]] = {}  # tasks -> the pools that reported that number, at least one
        self._reported: dict[PoolId, int] = {}

    def report(self, pool: PoolId, tasks: int | None = None) -> None:
        """Take in a report of the pool: the tasks that it has, or had when the report was sent."""
        now = self.tasks(pool)
        tasks = now if tasks is None else whole_number("tasks", tasks, 0, MAX_COUNT)
        self._messages.other += 1
        self._remove(pool)
        self._insert(pool, tasks)

    def _pick(self, choose: Choose) -> PoolId:
        return chosen(choose, self._levels[min(self._levels)])

    def _joined(self, pool: PoolId, tasks: int) -> None:
        self._insert(pool, tasks)

    def _left(self, pool: PoolId, tasks: int) -> None:
        self._remove(pool)

    def _insert(self, pool: PoolId, tasks: int) -> None:
        self._reported[pool] = tasks
        self._levels.setdefault(tasks, PoolSet()).add(pool)

    def _remove(self, pool: PoolId) -> None:
        level = self._reported.pop(pool)
        self._levels[level].discard(pool)
        if not self._levels[level]:
            del self._levels[level]


class RandomRouting(CountingPolicy):
    """Random routing: each task goes to any pool, uniformly; no messages."""

    def _pick(self, choose: Choose) -> PoolId:
        return chosen(choose, self._pools)


class RoundRobin(CountingPolicy):
    """Round robin: tasks go to the pools in turn, in the order of joining; deterministic, no messages.

    A new pool waits for a full round. A lost task uses up the turn: a full pool must not hold up the others.
    """

    def __init__(self, capacity: int | None = None) -> None:
        super().__init__(capacity)
        self._turns: deque[PoolId] = deque()

    def _pick(self, choose: Choose) -> PoolId:
        pool = self._turns[0]
        self._turns.rotate(-1)
        return pool

    def _joined(self, pool: PoolId, tasks: int) -> None:
        self._turns.append(pool)

    def _left(self, pool: PoolId, tasks: int) -> None:
        self._turns.remove(pool)
