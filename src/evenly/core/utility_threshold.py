"""The threshold policy for pools of different sizes: one learned index gives each size its own threshold.

This is our own extension of the paper's policy. With pools of one size, it makes the paper's decisions.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import cast

from evenly.core.checks import MAX_COUNT, check_pool, check_tasks
from evenly.core.cut import Bounds, Cut, Marginal
from evenly.core.dispatcher import Dispatcher
from evenly.core.learning import LearningRule
from evenly.core.messages import PoolId
from evenly.core.randomness import Choose
from evenly.core.sized_pool import SizedPool
from evenly.core.threshold import ThresholdPolicy
from evenly.inputs import whole_number
from evenly.workload.pools import DEFAULT_UTILITY, checked_size, find_utility

_MAX_INDEX = 10**7  # the cut moves there step by step


class SizedDispatcher(Dispatcher):
    """The paper's dispatcher with thresholds for each size. `threshold` is the index that they follow from.

    The index rises and falls by the paper's rule on the numbers of tokens. A step usually changes the thresholds
    of few sizes, and only the pools of these must be told: `take_changed` returns them.
    """

    def __init__(self, marginal: Marginal, index: int = 0, rule: LearningRule | None = None) -> None:
        super().__init__(index, rule, _MAX_INDEX)
        self._cut = Cut(marginal, self._threshold)
        self._sizes: dict[PoolId, float] = {}
        self._changed: list[PoolId] = []  # whose thresholds are new
        self._used = False  # by a task, or fitted to some

    @property
    def threshold(self) -> int:
        """The index in force."""
        return self._cut.index

    def bounds(self, pool: PoolId) -> Bounds:
        """Return the thresholds of a member."""
        return self._cut.bounds(self._sizes[pool])

    def bounds_of(self, size: float) -> Bounds:
        """Return the thresholds of a size; of one that no member has, those that it would get."""
        return self._cut.bounds(size)

    def take_changed(self) -> list[PoolId]:
        """Return the members whose thresholds have changed since the last call, in the order of the members."""
        changed, self._changed = self._changed, []
        return changed

    def index_for(self, tasks: int) -> int:
        """Return the best index for `tasks` tasks in all pools together."""
        return self._cut.index_for(tasks)

    def join(self, pool: PoolId, size: float = 1.0) -> None:
        """Add a pool of this size, without tokens until it reports.

        A new size changes the order of the marginal utilities. Before the first task the index stays, so that the
        thresholds of others may change. Later, the thresholds of others stay.
        """
        size = checked_size(size)
        super().join(pool)
        self._sizes[pool] = size
        before = self._cut.all_bounds()
        if self._cut.add(size, keep_index=not self._used):
            self._moved(before)

    def leave(self, pool: PoolId) -> None:
        """Remove a pool and its tokens."""
        super().leave(pool)
        self._cut.discard(self._sizes.pop(pool))

    def dispatch(self, choose: Choose, avoid: Container[PoolId] = ()) -> PoolId | None:
        """Pick a pool and count the task in, by the rules of the paper's dispatcher."""
        self._used = True
        return super().dispatch(choose, avoid)

    def learn(self) -> bool:
        """Apply the rule's step from the last dispatch; return True if the index changes."""
        step, self._pending_step = self._pending_step, 0
        if step == 0:
            return False
        before = self._cut.all_bounds()
        if step > 0 and all(bounds.lower < self._highest for bounds in before.values()):
            self._cut.up()
        elif step > 0 or not self._cut.down():
            return False
        self._moved(before)
        return True

    def restart(self, threshold: int) -> None:
        """Set the index."""
        index = self._allowed(threshold)
        before = self._cut.all_bounds()
        self._cut.move_to(index)
        self._moved(before)

    def fit(self, tasks: int, pools: Mapping[float, int]) -> None:
        """Set the index to the best one for `tasks` tasks in `pools` pools of each size.

        Pools that join later get their thresholds from it.
        """
        self._used = True
        before = self._cut.all_bounds()
        self._cut.fit(tasks, pools)
        self._moved(before)

    def _moved(self, before: dict[float, Bounds]) -> None:
        """Note the pools whose thresholds are not those of `before`, and rebuild the tokens."""
        after = self._cut.all_bounds()
        changed = {size for size, bounds in before.items() if after[size] != bounds}
        self._changed = [pool for pool in self._pools if self._sizes[pool] in changed]
        self._rebuild_tokens()

    def _set_estimate(self, pool: PoolId, estimate: int) -> None:
        self._estimates[pool] = estimate
        lower, upper = self._cut.bounds(self._sizes[pool])
        for tokens, bound in ((self._green, lower), (self._yellow, upper)):
            if estimate < bound:
                tokens.add(pool)
            else:
                tokens.discard(pool)


class UtilityThreshold(ThresholdPolicy):
    """The threshold version of `GreedyUtility`: each size has its own threshold, learned through one index.

    Sort the marginal utilities of all sizes, the largest first; equal ones share a place. At index l, a pool is
    green if the marginal utility of its next task lies before place l, and yellow if it lies at or before l.
    Tasks, tokens, messages and the learning rule are those of the paper in terms of these colors: the index rises
    when at most one yellow token is left, and falls when at most a fraction alpha of all pools is not green.

    `threshold` is the index, `utility` a name of `evenly.workload.pools.UTILITIES`.
    """

    def __init__(
        self, threshold: int = 0, rule: LearningRule | None = None, utility: str = DEFAULT_UTILITY
    ) -> None:
        super().__init__(0, rule)
        self._sized = SizedDispatcher(find_utility(utility).marginal, threshold, rule)
        self._dispatcher = self._sized

    def threshold_of(self, pool: PoolId) -> int:
        """Return the number of tasks below which the pool is green."""
        self._member(pool)
        return self._sized.bounds(pool).lower

    def threshold_for(self, size: float) -> int:
        """Return the number of tasks below which a pool of this size is green, or would be."""
        return self._sized.bounds_of(size).lower

    def join(self, pool: PoolId, tasks: int = 0, size: float = 1.0) -> None:
        """Add a pool of this size that has `tasks` tasks already. It reports them."""
        check_pool(pool)
        check_tasks(pool, tasks, None)
        self._sized.join(pool, size)
        member = SizedPool(pool, self._sized.bounds(pool), tasks)
        self._pools[pool] = member
        self._rethreshold()
        self._resync(member.announce())

    def raise_threshold(self, threshold: int) -> None:
        """Raise the index to at least `threshold`."""
        if whole_number("threshold", threshold, 0, MAX_COUNT) > self.threshold:
            self._dispatcher.restart(threshold)
            self._rethreshold()

    def catch_up(self, tasks: int, pools: Mapping[float, int], slack: int = 0) -> None:
        """Fit the index if its thresholds leave out more than `slack` tasks of each of the `pools`, by size."""
        if sum(count * (self.threshold_for(size) + slack + 1) for size, count in pools.items()) <= tasks:
            self.fit(tasks, pools)

    def fit(self, tasks: int, pools: Mapping[float, int]) -> None:
        """Set the index to the best one for `tasks` tasks in `pools` pools of each size, if there are any."""
        if pools:
            self._sized.fit(tasks, pools)
            self._rethreshold()

    def _rethreshold(self) -> None:
        """Tell the pools whose thresholds have changed, and take in the tokens that the dispatcher lacks."""
        for pool in self._sized.take_changed():
            report = cast(SizedPool, self._pools[pool]).rebound(self._sized.bounds(pool))
            if report is not None:
                self._resync(report)
