"""The dispatcher's role: it holds tokens, picks a pool for each task and learns the threshold.

It knows its members and their tokens, never their numbers of tasks. It returns notices and receives messages;
how they travel is up to the caller.
"""

from evenly.core.checks import MAX_COUNT, already_member, check_pool, chosen, not_member
from evenly.core.learning import LearningRule
from evenly.core.messages import Color, PoolId, ThresholdNotice, TokenMessage
from evenly.core.poolset import PoolSet
from evenly.core.randomness import Choose
from evenly.errors import InputError
from evenly.inputs import shown, whole_number


class Dispatcher:
    """Tokens, at most one green and one yellow per pool; a threshold; and a rule that moves it, or None.

    `highest` is the largest threshold allowed (default: no limit).

    Paper: Sec. 2.1, and Sec. 4.1.
    """

    def __init__(self, threshold: int, rule: LearningRule | None = None, highest: int | None = None) -> None:
        self._highest = MAX_COUNT if highest is None else whole_number("highest", highest, 0, MAX_COUNT)
        self._notice = ThresholdNotice(self._allowed(threshold), epoch=0)
        self.rule = rule
        self._pending_step = 0
        self._pools: PoolSet[PoolId] = PoolSet()
        self._green: PoolSet[PoolId] = PoolSet()
        self._yellow: PoolSet[PoolId] = PoolSet()

    @property
    def rule(self) -> LearningRule | None:
        """The rule that moves the threshold, None if it stays."""
        return self._rule

    @rule.setter
    def rule(self, rule: LearningRule | None) -> None:
        if rule is not None and not isinstance(rule, LearningRule):
            raise InputError(f"rule must be a LearningRule or None, not {shown(rule)}.")
        self._rule = rule

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
        """The number of threshold changes so far."""
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
        """Add a pool, without tokens until it announces them."""
        check_pool(pool)
        if pool in self._pools:
            raise already_member(pool)
        self._pools.add(pool)

    def leave(self, pool: PoolId) -> None:
        """Remove a pool and its tokens."""
        if pool not in self._pools:
            raise not_member(pool)
        self._pools.discard(pool)
        self._green.discard(pool)
        self._yellow.discard(pool)

    def dispatch(self, choose: Choose) -> PoolId | None:
        """Pick a pool and discard the token used; return None if there is no pool at all.

        The learning rule sees the tokens before that. `learn` applies its step once the task is placed.

        Paper: Sec. 2.1.
        """
        pools, green, yellow = len(self._pools), len(self._green), len(self._yellow)
        if pools == 0:
            return None
        tokens = self._green if green else self._yellow
        pool = chosen(choose, tokens if yellow else self._pools)  # a pool with a green token has a yellow one
        if self._rule is not None:
            self._pending_step = self._rule.step(pools, green, yellow)
        tokens.discard(pool)
        return pool

    def use_token(self, pool: PoolId) -> None:
        """Discard the token of a task that reached this pool without `dispatch`."""
        if pool not in self._pools:
            raise not_member(pool)
        (self._green if pool in self._green else self._yellow).discard(pool)

    def receive(self, message: TokenMessage) -> bool:
        """Store the token that a pool sends. Return False if the message is ignored.

        A message of an old epoch is ignored, because it is about another threshold, and so is one from a pool that
        is not a member. A green pool is yellow too, so a green message adds both tokens where they are missing.
        """
        if not isinstance(message, TokenMessage):
            raise InputError(f"message must be a TokenMessage, not {shown(message)}.")
        if message.epoch != self._notice.epoch or message.pool not in self._pools:
            return False
        if message.color is Color.GREEN:
            self._green.add(message.pool)
        elif message.color is not Color.YELLOW:
            raise InputError(f"The color of a token must be a Color, not {shown(message.color)}.")
        self._yellow.add(message.pool)
        return True

    def learn(self) -> ThresholdNotice | None:
        """Apply the rule's step from the last dispatch; return the notice for the pools if the threshold changes.

        Paper: Sec. 4.1. Departs: never below 0, never above `highest`.
        """
        step, self._pending_step = self._pending_step, 0
        threshold = self._notice.threshold + step
        if step == 0 or not 0 <= threshold <= self._highest:
            return None
        if step == 1:
            # A pool at or below the old threshold is below the new one: yellow turns green, and stays yellow.
            self._green = PoolSet(self._yellow)
        else:
            # A pool below the old threshold is at or below the new one: green turns yellow, old yellow is void.
            self._green, self._yellow = PoolSet(), self._green
        self._notice = ThresholdNotice(threshold, self._notice.epoch + 1)
        return self._notice

    def restart(self, threshold: int) -> ThresholdNotice:
        """Start again at another threshold, without tokens until pools announce them."""
        self._notice = ThresholdNotice(self._allowed(threshold), self._notice.epoch + 1)
        self._green, self._yellow = PoolSet(), PoolSet()
        return self._notice

    def _allowed(self, threshold: int) -> int:
        return whole_number("threshold", threshold, 0, self._highest)
