"""Baseline policies that hold tokens, behind the same events as the paper's policy.

Token messages count as `green`, or as `resync` when a pool joins.
"""

from evenly.core.base import CountingPolicy
from evenly.core.checks import MAX_COUNT, chosen
from evenly.core.messages import PoolId
from evenly.core.poolset import PoolSet
from evenly.core.randomness import Choose
from evenly.inputs import whole_number

MAX_SLOTS = 10**6  # of a pool under `Pull`, which holds a token for each


class JoinBelowThreshold(CountingPolicy):
    """Join below threshold: a pool with fewer than `threshold` tasks, uniformly, or any pool if there is none.

    Each pool below the threshold has one token. The token is discarded when used, replaced by a message if the
    pool is still below, and sent again when a departure takes the pool below.

    Paper: Sec. 1.2 (JBT). Departs: the threshold is fixed, and tasks are never queued.
    """

    def __init__(self, threshold: int, capacity: int | None = None) -> None:
        super().__init__(capacity)
        why = "" if self._capacity is None else "the capacity"
        self._threshold = whole_number("threshold", threshold, 1, self._capacity or MAX_COUNT, why)
        self._tokens: PoolSet[PoolId] = PoolSet()

    def _pick(self, choose: Choose) -> PoolId:
        pool = chosen(choose, self._tokens or self._pools)
        self._tokens.discard(pool)  # a pool with a token is not full, so the token is not wasted
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
    """Join an idle queue: each task goes to an idle pool, uniformly, or to any pool if there is none.

    Paper: Sec. 1.2 (JIQ).
    """

    def __init__(self, capacity: int | None = None) -> None:
        super().__init__(threshold=1, capacity=capacity)


class Pull(CountingPolicy):
    """Pull: each task goes to a free slot, uniformly among those of all pools, or is lost if there is none.

    Each free slot has one token, so a pool is picked in proportion to its free slots. A message frees a slot;
    the slot used last is freed first.

    Paper: Sec. 1.2 (the policy with one token for each available task slot).
    """

    def __init__(self, capacity: int) -> None:
        self._slots = whole_number("capacity", capacity, 1, MAX_SLOTS)
        super().__init__(self._slots)
        self._tokens: PoolSet[tuple[PoolId, int]] = PoolSet()
        self._busy: dict[PoolId, list[int]] = {}

    def _pick(self, choose: Choose) -> PoolId | None:
        if not self._tokens:
            return None
        token = chosen(choose, self._tokens)
        self._tokens.discard(token)
        pool, slot = token
        self._busy[pool].append(slot)
        return pool

    def _joined(self, pool: PoolId, tasks: int) -> None:
        self._busy[pool] = list(range(tasks))
        for slot in range(tasks, self._slots):
            self._messages.resync += 1
            self._tokens.add((pool, slot))

    def _left(self, pool: PoolId, tasks: int) -> None:
        del self._busy[pool]
        for slot in range(self._slots):
            self._tokens.discard((pool, slot))

    def _bypassed(self, pool: PoolId) -> None:
        slot = next(slot for slot in range(self._slots) if (pool, slot) in self._tokens)
        self._tokens.discard((pool, slot))
        self._busy[pool].append(slot)

    def _departed(self, pool: PoolId, tasks: int) -> None:
        self._messages.green += 1
        self._tokens.add((pool, self._busy[pool].pop()))
