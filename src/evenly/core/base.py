"""What the baselines share: members, their task counts, and the loss of tasks sent to a full pool.

No rule of any policy lives here; a subclass picks the pool and handles the events that follow.
"""

from evenly.core.checks import (
    already_member,
    check_capacity,
    check_pool,
    check_tasks,
    no_room,
    not_member,
    nothing_to_depart,
)
from evenly.core.messages import MessageCount, PoolId
from evenly.core.poolset import PoolSet
from evenly.core.randomness import Choose


class CountingPolicy:
    """The events of a policy, with the tasks counted; a subclass defines `_pick` and the hooks after it."""

    def __init__(self, capacity: int | None = None) -> None:
        self._capacity = check_capacity(capacity)
        self._pools: PoolSet[PoolId] = PoolSet()
        self._tasks: dict[PoolId, int] = {}
        self._messages = MessageCount()

    @property
    def messages(self) -> MessageCount:
        """The messages sent so far."""
        return self._messages

    @property
    def pools(self) -> PoolSet[PoolId]:
        """The members."""
        return self._pools

    def tasks(self, pool: PoolId) -> int:
        """Return the number of tasks in the pool."""
        try:
            return self._tasks[pool]
        except (KeyError, TypeError):  # TypeError: not hashable
            raise not_member(pool) from None

    def join(self, pool: PoolId, tasks: int = 0) -> None:
        """Add a pool that has `tasks` tasks already."""
        check_pool(pool)
        if pool in self._tasks:
            raise already_member(pool)
        tasks = check_tasks(pool, tasks, self._capacity)
        self._pools.add(pool)
        self._tasks[pool] = tasks
        self._joined(pool, tasks)

    def leave(self, pool: PoolId) -> None:
        """Remove a pool; its tasks are forgotten."""
        tasks = self.tasks(pool)
        self._pools.discard(pool)
        del self._tasks[pool]
        self._left(pool, tasks)

    def arrive(self, choose: Choose) -> PoolId | None:
        """Place a task. The pick ignores the capacity, and the task is lost if the pool is full."""
        pool = self._pick(choose) if self._tasks else None
        if pool is None or self._tasks[pool] == self._capacity:
            return None
        self._tasks[pool] += 1
        self._arrived(pool, self._tasks[pool])
        return pool

    def record_arrival(self, pool: PoolId) -> None:
        """Count a task that reached the pool without `arrive`."""
        if self.tasks(pool) == self._capacity:
            raise no_room(pool, self._capacity)
        self._bypassed(pool)
        self._tasks[pool] += 1
        self._arrived(pool, self._tasks[pool])

    def depart(self, pool: PoolId) -> None:
        """Finish one task of the pool."""
        tasks = self.tasks(pool) - 1
        if tasks < 0:
            raise nothing_to_depart(pool)
        self._tasks[pool] = tasks
        self._departed(pool, tasks)

    def _pick(self, choose: Choose) -> PoolId | None:
        """Return the pool for the next task, or None to lose it. There is at least one pool."""
        raise NotImplementedError

    def _joined(self, pool: PoolId, tasks: int) -> None:
        """Handle a new pool that has `tasks` tasks."""

    def _left(self, pool: PoolId, tasks: int) -> None:
        """Handle the departure of a pool that had `tasks` tasks."""

    def _bypassed(self, pool: PoolId) -> None:
        """Handle a task that arrives without a pick; `_arrived` follows."""

    def _arrived(self, pool: PoolId, tasks: int) -> None:
        """Handle a placed task; the pool now has `tasks` tasks."""

    def _departed(self, pool: PoolId, tasks: int) -> None:
        """Handle a finished task; the pool has `tasks` tasks left."""
