"""The rivals that hold tokens, behind the same events as the paper's policy.

Token messages count as `green`; those of a pool that joins as `resync`.
"""

from evenly.core.base import CountingPolicy
from evenly.core.messages import PoolId
from evenly.core.poolset import PoolSet
from evenly.core.randomness import Choose
from evenly.errors import InputError


class JoinBelowThreshold(CountingPolicy):
    """Send each task to a pool with fewer than `threshold` tasks, uniformly, or anywhere if there is none.

    One token for each pool below the threshold: discarded when used, replaced by a message if the pool is
    still below, and sent again when a departure takes the pool below.

    Paper: Sec. 1.2 (JBT). Departs: the threshold is fixed, and tasks are never queued.
    """

    def __init__(self, threshold: int, capacity: int | None = None) -> None:
        super().__init__(capacity)
        if threshold < 1:
            raise InputError(f"The threshold must be at least 1, not {threshold}.")
        if capacity is not None and threshold > capacity:
            raise InputError(f"The threshold must be at most the capacity {capacity}, not {threshold}.")
        self._threshold = threshold
        self._tokens: PoolSet[PoolId] = PoolSet()

    def _pick(self, choose: Choose) -> PoolId:
        pool = choose(self._tokens or self._pools)
        self._tokens.discard(pool)  # a pool with a token is not full, so the token is not spent in vain
        return pool

    def _joined(self, pool: PoolId, tasks: int) -> None:
        if tasks < self._threshold:
            self._messages.resync += 1
            self._tokens.add(pool)

    def _left(self, pool: PoolId, tasks: int) -> None:
        self._tokens.discard(pool)

    def _bypassed(self, pool: PoolId) -> None:
        self._tokens.discard(pool)

    def _arrived(self, pool: PoolId, tasks: int) -> None:
        if tasks < self._threshold:
            self._send_token(pool)

    def _departed(self, pool: PoolId, tasks: int) -> None:
        if tasks == self._threshold - 1:
            self._send_token(pool)

    def _send_token(self, pool: PoolId) -> None:
        self._messages.green += 1
        self._tokens.add(pool)


class JoinIdleQueue(JoinBelowThreshold):
    """Send each task to an idle pool, uniformly, or anywhere if there is none.

    Paper: Sec. 1.2 (JIQ).
    """

    def __init__(self, capacity: int | None = None) -> None:
        super().__init__(threshold=1, capacity=capacity)


class Pull(CountingPolicy):
    """Send each task to a free place, uniformly among the free places of all pools; lose it if there is none.

    One token for each free place, so a pool is picked in proportion to its room. A place is freed by a
    message; the place used last is freed first.

    Paper: Sec. 1.2 (the policy with one token for each available task slot).
    """

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity)
        self._places = capacity
        self._tokens: PoolSet[tuple[PoolId, int]] = PoolSet()
        self._busy: dict[PoolId, list[int]] = {}

    def _pick(self, choose: Choose) -> PoolId | None:
        if not self._tokens:
            return None
        token = choose(self._tokens)
        self._tokens.discard(token)
        pool, slot = token
        self._busy[pool].append(slot)
        return pool

    def _joined(self, pool: PoolId, tasks: int) -> None:
        self._busy[pool] = list(range(tasks))
        for slot in range(tasks, self._places):
            self._messages.resync += 1
            self._tokens.add((pool, slot))

    def _left(self, pool: PoolId, tasks: int) -> None:
        del self._busy[pool]
        for slot in range(self._places):
            self._tokens.discard((pool, slot))

    def _bypassed(self, pool: PoolId) -> None:
        slot = next(slot for slot in range(self._places) if (pool, slot) in self._tokens)
        self._tokens.discard((pool, slot))
        self._busy[pool].append(slot)

    def _departed(self, pool: PoolId, tasks: int) -> None:
        self._messages.green += 1
        self._tokens.add((pool, self._busy[pool].pop()))
