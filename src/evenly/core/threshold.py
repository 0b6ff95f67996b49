"""The paper's policy: one dispatcher and its pools, connected by a channel that delivers instantly.

Wiring only: it carries and counts messages. The rules are in the dispatcher and the pool.
"""

from collections.abc import Container, Mapping

from evenly.core.checks import MAX_COUNT, check_capacity, not_member
from evenly.core.dispatcher import Dispatcher
from evenly.core.learning import LearningRule
from evenly.core.messages import MessageCount, PoolId, Report
from evenly.core.pool import Pool
from evenly.core.poolset import PoolSet
from evenly.core.randomness import Choose
from evenly.inputs import whole_number


class ThresholdPolicy:
    """The threshold policy: tasks go to pools below the threshold, else to pools at it, else to any pool.

    With a rule it learns the threshold. With a capacity the threshold stays below it, so that only tasks sent
    without a token can be lost.

    Paper: Sec. 2.1, and Sec. 4.1.
    """

    def __init__(self, threshold: int = 0, rule: LearningRule | None = None, capacity: int | None = None) -> None:
        self._capacity = check_capacity(capacity)
        if self._capacity is not None:
            threshold = whole_number("threshold", threshold, 0, self._capacity - 1, why="less than the capacity")
        self._dispatcher = Dispatcher(threshold, rule, None if self._capacity is None else self._capacity - 1)
        self._pools: dict[PoolId, Pool] = {}
        self._messages = MessageCount()

    @property
    def threshold(self) -> int:
        """The threshold in force."""
        return self._dispatcher.threshold

    @property
    def dispatcher(self) -> Dispatcher:
        """The dispatcher, to inspect its tokens."""
        return self._dispatcher

    @property
    def messages(self) -> MessageCount:
        """The messages sent so far."""
        return self._messages

    @property
    def pools(self) -> PoolSet[PoolId]:
        """The members."""
        return self._dispatcher.pools

    def tasks(self, pool: PoolId) -> int:
        """Return the number of tasks in the pool."""
        return self._member(pool).tasks

    def join(self, pool: PoolId, tasks: int = 0) -> None:
        """Add a pool that has `tasks` tasks already. It reports them."""
        member = Pool(pool, self.threshold, tasks, self._capacity)
        self._dispatcher.join(pool)
        self._pools[pool] = member
        self._resync(member.announce())

    def leave(self, pool: PoolId) -> None:
        """Remove a pool, with its tasks and its tokens."""
        self._dispatcher.leave(pool)
        del self._pools[pool]

    def arrive(self, choose: Choose, avoid: Container[PoolId] = ()) -> PoolId | None:
        """Place a task, let its pool replace the token if one is due, and only then adjust the threshold.

        None if there is no pool, or none but those to `avoid`, or if the task is lost.

        Paper: Sec. 2.1, and Sec. 4.1. Departs: the paper has no pools to avoid.
        """
        pool = self._dispatcher.dispatch(choose, avoid)
        if pool is None:
            return None
        member = self._pools[pool]
        lost = member.full
        if lost:
            self._dispatcher.add(pool, -1)
        else:
            self._deliver(member.arrive())
        if self._dispatcher.learn():
            self._rethreshold()
        return None if lost else pool

    def record_arrival(self, pool: PoolId) -> None:
        """Count a task that reached the pool without `arrive`. It uses a token; the threshold does not learn."""
        report = self._member(pool).arrive()
        self._dispatcher.add(pool, 1)
        self._deliver(report)

    def raise_threshold(self, threshold: int) -> None:
        """Raise the threshold to at least `threshold`. For a dispatcher that starts against busy pools."""
        threshold = whole_number("threshold", threshold, 0, MAX_COUNT)
        if self._capacity is not None:
            threshold = min(threshold, self._capacity - 1)
        if threshold > self.threshold:
            self._dispatcher.restart(threshold)
            self._rethreshold()

    def catch_up(self, tasks: int, pools: Mapping[float, int], slack: int = 0) -> None:
        """Raise the threshold to the mean, if it is lower by more than `slack`.

        There are `tasks` tasks in `pools` pools of each size, which makes no difference here.
        """
        mean = tasks // max(sum(pools.values()), 1)
        if self.threshold < mean - slack:
            self.raise_threshold(mean)

    def depart(self, pool: PoolId) -> None:
        """Finish one task of the pool, which announces itself if it turns green or yellow.

        Paper: Sec. 2.1.
        """
        self._deliver(self._member(pool).depart())

    def _member(self, pool: PoolId) -> Pool:
        try:
            return self._pools[pool]
        except (KeyError, TypeError):  # TypeError: not hashable
            raise not_member(pool) from None

    def _deliver(self, report: Report | None) -> None:
        if report is not None and report.color is not None:
            self._messages.count(report.color)
            self._dispatcher.receive(report)

    def _rethreshold(self) -> None:
        """Tell the pools the threshold, and take in the tokens that the dispatcher lacks."""
        for pool in self._dispatcher.pools:  # the order is the dispatcher's, also after a pool has left
            report = self._pools[pool].rethreshold(self.threshold)
            if report is not None:
                self._resync(report)

    def _resync(self, report: Report) -> None:
        if report.color is not None:
            self._messages.resync += 1
        self._dispatcher.receive(report)
