"""The threshold policy for pools of different sizes: one learned index gives each size its own threshold.

This is our own extension of the paper's policy. With pools of one size, it makes the paper's decisions.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from evenly.core.checks import MAX_COUNT, check_pool, check_tasks
from evenly.core.cut import Bounds, Cut, Marginal
from evenly.core.dispatcher import Dispatcher
from evenly.core.learning import LearningRule
from evenly.core.messages import PoolId, ThresholdNotice
from evenly.core.poolset import PoolSet
from evenly.core.randomness import Choose
from evenly.core.sized_pool import SizedNotice, SizedPool
from evenly.core.threshold import ThresholdPolicy
from evenly.inputs import whole_number
from evenly.workload.pools import DEFAULT_UTILITY, checked_size, find_utility

_MAX_INDEX = 10**7  # the cut moves there step by step


class SizedDispatcher(Dispatcher):
    """The paper's dispatcher with thresholds for each size. `threshold` is the index that they follow from.

    The index rises and falls by the paper's rule on the numbers of tokens. A step usually changes the thresholds
    of few sizes, and only the pools of these are told, with `notice_for`.
    """

    def __init__(self, marginal: Marginal, index: int = 0, rule: LearningRule | None = None) -> None:
        super().__init__(index, rule, _MAX_INDEX)
        self._cut = Cut(marginal, self._notice.threshold)
        self._sizes: dict[PoolId, float] = {}
        self._used = False  # by a task, or fitted to some

    @property
    def threshold(self) -> int:
        """The index in force."""
        return self._cut.index

    @property
    def notice(self) -> ThresholdNotice:
        """The index in force and its epoch."""
        return ThresholdNotice(self._cut.index, self.epoch)

    def bounds(self, pool: PoolId) -> Bounds:
        """Return the thresholds of a member."""
        return self._cut.bounds(self._sizes[pool])

    def bounds_of(self, size: float) -> Bounds:
        """Return the thresholds of a size; of one that no member has, those that it would get."""
        return self._cut.bounds(size)

    def notice_for(self, pool: PoolId) -> ThresholdNotice:
        """Return what a member is sent: its thresholds and the epoch."""
        lower, upper = self.bounds(pool)
        return SizedNotice(lower, self.epoch, upper)

    def index_for(self, tasks: int) -> int:
        """Return the best index for `tasks` tasks in all pools together."""
        return self._cut.index_for(tasks)

    def join(self, pool: PoolId, size: float = 1.0) -> None:
        """Add a pool of this size, without tokens until it reports.

        A new size changes the order of the marginal utilities. Before the first task the index stays, so that the
        thresholds of others may change, and `awaits` says who must be told. Later, the thresholds of others stay.
        """
        size = checked_size(size)
        super().join(pool)
        self._sizes[pool] = size
        if self._cut.add(size, keep_index=not self._used):
            self._begin_epoch(dict.fromkeys(self._pools))

    def leave(self, pool: PoolId) -> None:
        """Remove a pool and its tokens."""
        super().leave(pool)
        self._cut.discard(self._sizes.pop(pool))

    def dispatch(self, choose: Choose, avoid: Container[PoolId] = ()) -> PoolId | None:
        """Pick a pool and count the task in, by the rules of the paper's dispatcher."""
        self._used = True
        return super().dispatch(choose, avoid)

    def learn(self) -> ThresholdNotice | None:
        """Apply the rule's step from the last dispatch; return a notice if the index changes."""
        step, self._pending_step = self._pending_step, 0
        if step == 0:
            return None
        before = self._cut.all_bounds()
        if step > 0 and all(bounds.lower < self._highest for bounds in before.values()):
            self._cut.up()
        elif step > 0 or not self._cut.down():
            return None
        return self._moved(before)

    def restart(self, threshold: int, epoch: int | None = None) -> ThresholdNotice:
        """Set the index, and return a notice."""
        index = self._allowed(threshold)
        before = self._cut.all_bounds()
        self._cut.move_to(index)
        return self._moved(before)

    def fit(self, tasks: int, pools: Mapping[float, int]) -> ThresholdNotice:
        """Set the index to the best one for `tasks` tasks in `pools` pools of each size, and return a notice.

        Pools that join later get their thresholds from it.
        """
        self._used = True
        before = self._cut.all_bounds()
        self._cut.fit(tasks, pools)
        return self._moved(before)

    def _moved(self, before: dict[float, Bounds]) -> ThresholdNotice:
        """Begin an epoch in which the pools are told whose thresholds are not those of `before`."""
        changed = {size for size, bounds in self._cut.all_bounds().items() if bounds != before[size]}
        return self._begin_epoch({pool: None for pool in self._pools if self._sizes[pool] in changed})

    def _begin_epoch(self, told: dict[PoolId, None]) -> ThresholdNotice:
        # Without the index, which `notice` adds: it takes long to count if a size has come or gone.
        self._notice = ThresholdNotice(0, self.epoch + 1)
        self._unsettled = told
        self._green, self._yellow = PoolSet(), PoolSet()
        for pool in self._pools:  # in the order of the members, as the paper's dispatcher
            if pool in self._estimates:
                self._set_estimate(pool, self._estimates[pool])
        return self._notice

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
        member = SizedPool(pool, self._sized.notice_for(pool), tasks)
        self._pools[pool] = member
        self._tell()
        self._answer(member.announce())

    def raise_threshold(self, threshold: int) -> None:
        """Raise the index to at least `threshold`."""
        if whole_number("threshold", threshold, 0, MAX_COUNT) > self.threshold:
            self._rethreshold(self._dispatcher.restart(threshold))

    def catch_up(self, tasks: int, pools: Mapping[float, int], slack: int = 0) -> None:
        """Fit the index if its thresholds leave out more than `slack` tasks of each of the `pools`, by size."""
        if sum(count * (self.threshold_for(size) + slack + 1) for size, count in pools.items()) <= tasks:
            self.fit(tasks, pools)

    def fit(self, tasks: int, pools: Mapping[float, int]) -> None:
        """Set the index to the best one for `tasks` tasks in `pools` pools of each size, if there are any."""
        if pools:
            self._rethreshold(self._sized.fit(tasks, pools))

    def _rethreshold(self, notice: ThresholdNotice) -> None:
        self._tell()

    def _tell(self) -> None:
        """Send their thresholds to the pools that await them, and take in the answers."""
        for pool in self._dispatcher.pools:
            if self._dispatcher.awaits(pool):
                answer = self._pools[pool].rethreshold(self._sized.notice_for(pool))
                if answer is not None:
                    self._answer(answer)
