"""What limits a pool: its capacity, and the operator who drains it."""

from collections.abc import Container

from evenly.core.checks import check_capacity, check_pool
from evenly.core.messages import PoolId
from evenly.core.protocol.records import MAX_POOLS, too_many_pools


class Restrictions:
    """The capacities of pools, and the pools that the operator drains. They outlive all else known of a pool."""

    def __init__(self) -> None:
        self._capacities: dict[PoolId, int] = {}
        self._draining: set[PoolId] = set()

    def set_capacity(self, pool: PoolId, capacity: int | None, known: Container[PoolId]) -> None:
        """Set the capacity of a pool; None means no limit.

        It is set before the pool's first message. When there are too many, those of pools that are not `known` are
        forgotten.
        """
        check_pool(pool)
        capacity = check_capacity(capacity)
        self._capacities.pop(pool, None)
        if capacity is None:
            return
        if len(self._capacities) >= MAX_POOLS:
            self._capacities = {each: value for each, value in self._capacities.items() if each in known}
        if len(self._capacities) >= MAX_POOLS:
            raise too_many_pools()
        self._capacities[pool] = capacity

    def full(self, pool: PoolId, tasks: int) -> bool:
        """Return whether the pool has no room for another task."""
        capacity = self._capacities.get(pool)
        return capacity is not None and tasks >= capacity

    def drain(self, pool: PoolId) -> None:
        """Note that the pool drains."""
        check_pool(pool)
        if len(self._draining) >= MAX_POOLS and pool not in self._draining:
            raise too_many_pools()
        self._draining.add(pool)

    def undrain(self, pool: PoolId) -> None:
        """Note that the pool drains no more."""
        check_pool(pool)
        self._draining.discard(pool)

    @property
    def drained(self) -> frozenset[PoolId]:
        """The pools that drain."""
        return frozenset(self._draining)

    def draining(self, pool: PoolId) -> bool:
        """Return whether the pool drains."""
        return pool in self._draining
