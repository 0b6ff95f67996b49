"""The pools that can take a task, by estimate: who has the fewest, and how many tokens there are."""

from bisect import bisect_left, insort
from collections.abc import Sequence, Set

from evenly.core.messages import PoolId
from evenly.core.poolset import PoolSet


class Ranking:
    """Pools in buckets by their estimated number of tasks, so that a pick need not look at every pool.

    A pool has a green token if its estimate is below the threshold, a yellow one if it is at most the threshold.
    """

    def __init__(self, threshold: int) -> None:
        self._threshold = threshold
        self._green = 0
        self._estimates: dict[PoolId, int] = {}
        self._buckets: dict[int, PoolSet[PoolId]] = {}  # by estimate, none of them empty
        self._occupied: list[int] = []  # the estimates that have a bucket, ascending

    def __len__(self) -> int:
        return len(self._estimates)

    @property
    def threshold(self) -> int:
        """The threshold in force."""
        return self._threshold

    @threshold.setter
    def threshold(self, threshold: int) -> None:
        self._threshold = threshold
        below = self._occupied[: bisect_left(self._occupied, threshold)]
        self._green = sum(len(self._buckets[estimate]) for estimate in below)

    @property
    def green(self) -> int:
        """The number of pools with fewer tasks than the threshold."""
        return self._green

    @property
    def yellow(self) -> int:
        """The number of pools with at most as many tasks as the threshold."""
        return self._green + len(self._buckets.get(self._threshold, ()))

    def put(self, pool: PoolId, estimate: int) -> None:
        """Add the pool, or move it to its new estimate."""
        if self._estimates.get(pool) == estimate:
            return
        self.discard(pool)
        self._estimates[pool] = estimate
        if estimate not in self._buckets:
            self._buckets[estimate] = PoolSet()
            insort(self._occupied, estimate)
        self._buckets[estimate].add(pool)
        self._green += estimate < self._threshold

    def discard(self, pool: PoolId) -> None:
        """Remove the pool, if it is there."""
        estimate = self._estimates.pop(pool, None)
        if estimate is None:
            return
        self._buckets[estimate].discard(pool)
        if not self._buckets[estimate]:
            del self._buckets[estimate]
            del self._occupied[bisect_left(self._occupied, estimate)]
        self._green -= estimate < self._threshold

    def lowest(self, exclude: Set[PoolId] = frozenset()) -> Sequence[PoolId]:
        """Return the pools with the smallest estimate, without those to `exclude`; none if there are no others."""
        for estimate in self._occupied:
            left = self._buckets[estimate].without(exclude)
            if left:
                return left
        return ()

    def median(self) -> int:
        """Return the median estimate, the lower one of two; 0 without pools."""
        left = (len(self) - 1) // 2
        for estimate in self._occupied:
            left -= len(self._buckets[estimate])
            if left < 0:
                return estimate
        return 0
