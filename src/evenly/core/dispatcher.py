"""The dispatcher's role: it estimates each pool's tasks, picks a pool for each task and learns the threshold.

Its estimate is what the pool last reported, plus its own picks since. Tokens follow from estimates and threshold.
Messages take no time here; `evenly.core.protocol` has the dispatcher for a network.
"""

from collections.abc import Container

from evenly.core.checks import MAX_COUNT, already_member, check_pool, chosen, not_member
from evenly.core.learning import LearningRule
from evenly.core.messages import PoolId, Report
from evenly.core.poolset import PoolSet
from evenly.core.randomness import Choose
from evenly.errors import InputError
from evenly.inputs import shown, whole_number

_TRIES = 4  # to hit a pool that need not be avoided


class Dispatcher:
    """Tokens, at most one green and one yellow per pool; a threshold; and a rule that moves it, or None.

    `highest` is the largest threshold allowed (default: no limit).

    Paper: Sec. 2.1, and Sec. 4.1.
    """

    def __init__(self, threshold: int, rule: LearningRule | None = None, highest: int | None = None) -> None:
        self._highest = MAX_COUNT if highest is None else whole_number("highest", highest, 0, MAX_COUNT)
        self._threshold = self._allowed(threshold)
        self.rule = rule
        self._pending_step = 0
        self._pools: PoolSet[PoolId] = PoolSet()
        self._estimates: dict[PoolId, int] = {}  # without pools that have not reported yet
        self._green: PoolSet[PoolId] = PoolSet()
        self._yellow: PoolSet[PoolId] = PoolSet()

    @property
    def rule(self) -> LearningRule | None:
        """The rule that moves the threshold, None if it stays."""
        return self._rule

    @rule.setter
    def rule(self, rule: LearningRule | None) -> None:
        self._rule = check_rule(rule)

    @property
    def threshold(self) -> int:
        """The threshold in force."""
        return self._threshold

    @property
    def pools(self) -> PoolSet[PoolId]:
        """The members."""
        return self._pools

    @property
    def green(self) -> PoolSet[PoolId]:
        """The pools estimated to have fewer than `threshold` tasks."""
        return self._green

    @property
    def yellow(self) -> PoolSet[PoolId]:
        """The pools estimated to have at most `threshold` tasks, the green ones among them."""
        return self._yellow

    def estimate(self, pool: PoolId) -> int | None:
        """Return the estimated number of the pool's tasks; None before its first report."""
        if pool not in self._pools:
            raise not_member(pool)
        return self._estimates.get(pool)

    def join(self, pool: PoolId) -> None:
        """Add a pool, without tokens until it reports."""
        check_pool(pool)
        if pool in self._pools:
            raise already_member(pool)
        self._pools.add(pool)

    def leave(self, pool: PoolId) -> None:
        """Remove a pool and its tokens."""
        if pool not in self._pools:
            raise not_member(pool)
        self._pools.discard(pool)
        self._estimates.pop(pool, None)
        self._green.discard(pool)
        self._yellow.discard(pool)

    def dispatch(self, choose: Choose, avoid: Container[PoolId] = ()) -> PoolId | None:
        """Pick a pool and count the task in; return None if there is no pool, or none but those to `avoid`.

        The learning rule sees the tokens before that, with those of the pools to avoid: other tasks may go there.
        `learn` applies its step once the task is placed.

        Paper: Sec. 2.1. Departs: the paper has no pools to avoid.
        """
        pools, green, yellow = len(self._pools), len(self._green), len(self._yellow)
        if avoid:
            pool = self._dispatch_around(choose, avoid)
        elif pools:
            tokens = self._green if green else self._yellow
            pool = chosen(choose, tokens if yellow else self._pools)  # a pool with a green token has a yellow one
        else:
            pool = None
        if pool is None:
            return None
        if self._rule is not None:
            self._pending_step = self._rule.step(pools, green, yellow)
        self.add(pool, 1)
        return pool

    def add(self, pool: PoolId, tasks: int) -> None:
        """Change the estimate of a pool: by 1 for a pick or a task that came without, by -1 for a lost one."""
        if pool not in self._pools:
            raise not_member(pool)
        if type(tasks) is not int or not -MAX_COUNT <= tasks <= MAX_COUNT:
            tasks = whole_number("tasks", tasks, -MAX_COUNT, MAX_COUNT)
        estimate = self._estimates.get(pool)
        if estimate is not None:
            self._set_estimate(pool, max(estimate + tasks, 0))

    def receive(self, report: Report) -> bool:
        """Take in what a pool reports. Return False if the pool is not a member."""
        if not isinstance(report, Report):
            raise InputError(f"report must be a Report, not {shown(report)}.")
        if report.pool not in self._pools:
            return False
        report.check()
        self._set_estimate(report.pool, int(report.tasks))
        return True

    def learn(self) -> bool:
        """Apply the rule's step from the last dispatch; return True if the threshold changes.

        Paper: Sec. 4.1. Departs: never below 0, never above `highest`.
        """
        step, self._pending_step = self._pending_step, 0
        threshold = self._threshold + step
        if step == 0 or not 0 <= threshold <= self._highest:
            return False
        self.restart(threshold)
        return True

    def restart(self, threshold: int) -> None:
        """Set the threshold, and rebuild the tokens from the estimates."""
        self._threshold = self._allowed(threshold)
        self._rebuild_tokens()

    def _dispatch_around(self, choose: Choose, avoid: Container[PoolId]) -> PoolId | None:
        """Choose among the pools that need not be avoided, in the same order of preference.

        A few random tries usually do; only then is it worth looking at every pool.
        """
        for candidates in (self._green, self._yellow, self._pools):
            for _ in range(_TRIES if candidates else 0):
                pool = chosen(choose, candidates)
                if pool not in avoid:
                    return pool
            left = [pool for pool in candidates if pool not in avoid]
            if left:
                return chosen(choose, left)
        return None

    def _rebuild_tokens(self) -> None:
        self._green, self._yellow = PoolSet(), PoolSet()
        for pool in self._pools:  # in the order of the members: compiled kernels rebuild them in the same order
            if pool in self._estimates:
                self._set_estimate(pool, self._estimates[pool])

    def _set_estimate(self, pool: PoolId, estimate: int) -> None:
        self._estimates[pool] = estimate
        above = estimate - self._threshold
        if above < 0:
            self._green.add(pool)
        else:
            self._green.discard(pool)
        if above <= 0:
            self._yellow.add(pool)
        else:
            self._yellow.discard(pool)

    def _allowed(self, threshold: int) -> int:
        return whole_number("threshold", threshold, 0, self._highest)


def check_rule(rule: LearningRule | None) -> LearningRule | None:
    """Return the rule, or raise InputError if it is something else."""
    if rule is not None and not isinstance(rule, LearningRule):
        raise InputError(f"rule must be a LearningRule or None, not {shown(rule)}.")
    return rule
