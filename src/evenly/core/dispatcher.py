"""The dispatcher's role: it holds tokens, picks a pool for each task and learns the threshold.

It knows its members and what they told it, never their numbers of tasks. How a message travels is not its
business: it returns notices and is handed messages.
"""

from evenly.core.checks import already_member, not_member
from evenly.core.learning import LearningRule
from evenly.core.messages import Color, PoolId, ThresholdNotice, TokenMessage
from evenly.core.poolset import PoolSet
from evenly.core.randomness import Choose
from evenly.errors import InputError


class Dispatcher:
    """Tokens, at most one green and one yellow a pool; a threshold; and a rule that moves it, or none.

    `highest` is the largest threshold allowed, None for no limit.

    Paper: Sec. 2.1, and Sec. 4.1.
    """

    def __init__(self, threshold: int, rule: LearningRule | None = None, highest: int | None = None) -> None:
        if threshold < 0:
            raise InputError(f"The threshold must be at least 0, not {threshold}.")
        if highest is not None and threshold > highest:
            raise InputError(f"The threshold must be at most {highest}, not {threshold}.")
        self._notice = ThresholdNotice(threshold, epoch=0)
        self.rule = rule
        self._highest = highest
        self._pending_step = 0
        self._pools: PoolSet[PoolId] = PoolSet()
        self._green: PoolSet[PoolId] = PoolSet()
        self._yellow: PoolSet[PoolId] = PoolSet()

    @property
    def notice(self) -> ThresholdNotice:
        """The threshold in force and its epoch, for pools that join."""
        return self._notice

    @property
    def threshold(self) -> int:
        """The threshold in force."""
        return self._notice.threshold

    @property
    def epoch(self) -> int:
        """How many times the threshold has changed."""
        return self._notice.epoch

    @property
    def pools(self) -> PoolSet[PoolId]:
        """The members."""
        return self._pools

    @property
    def green(self) -> PoolSet[PoolId]:
        """The pools known to have fewer than `threshold` tasks."""
        return self._green

    @property
    def yellow(self) -> PoolSet[PoolId]:
        """The pools known to have at most `threshold` tasks, the green ones among them."""
        return self._yellow

    def join(self, pool: PoolId) -> None:
        """Admit a pool, without tokens until it announces them."""
        if pool in self._pools:
            raise already_member(pool)
        self._pools.add(pool)

    def leave(self, pool: PoolId) -> None:
        """Forget a pool and its tokens."""
        if pool not in self._pools:
            raise not_member(pool)
        self._pools.discard(pool)
        self._green.discard(pool)
        self._yellow.discard(pool)

    def dispatch(self, choose: Choose) -> PoolId | None:
        """Pick a pool and discard the token used; None if there is no pool at all.

        The learning rule looks at the tokens before that; `learn` acts on it once the task is placed.

        Paper: Sec. 2.1.
        """
        if not self._pools:
            return None
        if self.rule is not None:
            self._pending_step = self.rule.step(len(self._pools), len(self._green), len(self._yellow))
        tokens = self._green or self._yellow
        pool = choose(tokens or self._pools)
        tokens.discard(pool)
        return pool

    def use_token(self, pool: PoolId) -> None:
        """Discard the token that a task to this pool uses; for one that came by another way than `dispatch`."""
        (self._green if pool in self._green else self._yellow).discard(pool)

    def receive(self, message: TokenMessage) -> bool:
        """Hold the token that a pool sends; False if the message is ignored.

        Ignored are those of an old epoch, which speak of another threshold, and those of strangers.
        A pool that is green is yellow too, so a green message brings both tokens where one was missing.
        """
        if message.epoch != self._notice.epoch or message.pool not in self._pools:
            return False
        if message.color is Color.GREEN:
            self._green.add(message.pool)
        self._yellow.add(message.pool)
        return True

    def learn(self) -> ThresholdNotice | None:
        """Act on what the rule said at the last dispatch; return the notice for the pools if it changes.

        Paper: Sec. 4.1. Departs: never below 0, never above `highest`.
        """
        step, self._pending_step = self._pending_step, 0
        threshold = self._notice.threshold + step
        if step == 0 or threshold < 0 or (self._highest is not None and threshold > self._highest):
            return None
        if step > 0:
            # At most the old threshold is less than the new one: yellow turns green, and stays yellow.
            self._green = PoolSet(self._yellow)
        else:
            # Less than the old threshold is at most the new one: green turns yellow, the old yellow is void.
            self._green, self._yellow = PoolSet(), self._green
        self._notice = ThresholdNotice(threshold, self._notice.epoch + 1)
        return self._notice

    def restart(self, threshold: int) -> ThresholdNotice:
        """Begin anew at another threshold, without tokens until pools announce them."""
        self._green, self._yellow = PoolSet(), PoolSet()
        self._notice = ThresholdNotice(threshold, self._notice.epoch + 1)
        return self._notice
