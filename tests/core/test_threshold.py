"""The paper's policy as a whole: tokens that match the tasks, message counts, the learned threshold."""

from fractions import Fraction

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from evenly.core import Dispatcher, LearningRule, PoolId, ThresholdPolicy
from evenly.errors import InputError
from tests.core.support import Watched, choice, filled, first, loads, ordered

ALPHAS = [None, "0.1", "0.34", "0.5", "0.57", "0.75", "0.9", "0.99"]


class TrueToTheTasks(RuleBasedStateMachine):
    """Any history of events, next to a model that knows only the tasks of every pool."""

    @initialize(
        alpha=st.sampled_from(ALPHAS),
        threshold=st.integers(0, 3),
        room=st.none() | st.integers(1, 3),
        tasks=st.lists(st.integers(0, 4), max_size=6),
    )
    def start(self, alpha: str | None, threshold: int, room: int | None, tasks: list[int]) -> None:
        self.capacity = None if room is None else threshold + room
        self.alpha = None if alpha is None else Fraction(alpha)
        self.policy = ThresholdPolicy(threshold, None if alpha is None else LearningRule(alpha), self.capacity)
        self.model: dict[int, int] = {}
        self.threshold = threshold
        self.joined = self.arrivals = self.tasks_brought = 0
        self.green = self.yellow = self.resync = 0
        for count in tasks:
            self.join(count)

    @rule(tasks=st.integers(0, 5))
    def join(self, tasks: int) -> None:
        tasks = tasks if self.capacity is None else min(tasks, self.capacity)
        pool, self.joined = self.joined, self.joined + 1
        self.policy.join(pool, tasks)
        self.model[pool] = tasks
        self.tasks_brought += tasks
        self.resync += tasks <= self.threshold

    @precondition(lambda self: self.model)
    @rule(index=st.integers(0, 99))
    def leave(self, index: int) -> None:
        pool = sorted(self.model)[index % len(self.model)]
        self.policy.leave(pool)
        del self.model[pool]

    @rule(indices=st.lists(st.integers(0, 99), min_size=1, max_size=8))
    def arrive(self, indices: list[int]) -> None:
        for index in indices:
            self.arrive_one(Watched(index))

    def arrive_one(self, watched: Watched) -> None:
        before, threshold = dict(self.model), self.threshold
        self.arrivals += 1
        pool = self.policy.arrive(watched)
        if not before:
            assert pool is None
            return
        assert [sorted(seen) for seen in watched.seen] == [self.eligible(before)]
        picked = watched.seen[0][watched.index % len(watched.seen[0])]
        if before[picked] == self.capacity:
            assert pool is None
        else:
            assert pool == picked
            self.model[picked] += 1
            self.green += self.model[picked] < threshold
        self.threshold += self.learned(before)
        self.expect_resync(threshold)

    @precondition(lambda self: any(count != self.capacity for count in self.model.values()))
    @rule(index=st.integers(0, 99))
    def place(self, index: int) -> None:
        roomy = sorted(pool for pool, count in self.model.items() if count != self.capacity)
        pool = roomy[index % len(roomy)]
        self.policy.record_arrival(pool)
        self.model[pool] += 1
        self.arrivals += 1
        self.green += self.model[pool] < self.threshold

    @rule(threshold=st.integers(0, 6))
    def raise_threshold(self, threshold: int) -> None:
        self.policy.raise_threshold(threshold)
        highest = threshold if self.capacity is None else min(threshold, self.capacity - 1)
        if highest > self.threshold:
            # A pool with a token is known to be below a higher threshold.
            old, self.threshold = self.threshold, highest
            self.resync += sum(old < count <= highest for count in self.model.values())

    def eligible(self, before: dict[int, int]) -> list[int]:
        below = [pool for pool, count in before.items() if count < self.threshold]
        at = [pool for pool, count in before.items() if count == self.threshold]
        return sorted(below or at or before)

    def learned(self, before: dict[int, int]) -> int:
        """Return the paper's change of the threshold, from the tasks right before the arrival."""
        if self.alpha is None:
            return 0
        pools, level = len(before), self.threshold
        at_least = [Fraction(sum(count >= i for count in before.values()), pools) for i in (level, level + 1)]
        step = (at_least[1] >= 1 - Fraction(1, pools)) - (at_least[0] <= self.alpha)
        capped = step > 0 and self.capacity is not None and level + 1 > self.capacity - 1
        return 0 if capped else step

    def expect_resync(self, old: int) -> None:
        counts = self.model.values()
        if self.threshold > old:
            self.resync += sum(count == self.threshold for count in counts)
        elif self.threshold < old:
            self.resync += sum(count < self.threshold for count in counts)

    @precondition(lambda self: any(self.model.values()))
    @rule(indices=st.lists(st.integers(0, 99), min_size=1, max_size=8))
    def depart(self, indices: list[int]) -> None:
        for index in indices:
            busy = sorted(pool for pool, count in self.model.items() if count)
            if busy:
                self.depart_one(busy[index % len(busy)])

    def depart_one(self, pool: int) -> None:
        self.policy.depart(pool)
        self.green += self.model[pool] == self.threshold
        self.yellow += self.model[pool] == self.threshold + 1
        self.model[pool] -= 1

    @invariant()
    def tokens_match_the_tasks(self) -> None:
        tokens = self.policy.dispatcher
        green, yellow = ordered(tokens.green), ordered(tokens.yellow)
        assert green == sorted(p for p, count in self.model.items() if count < self.threshold)
        assert yellow == sorted(p for p, count in self.model.items() if count <= self.threshold)
        assert set(green) <= set(yellow)
        assert len(green) + len(yellow) <= 2 * len(self.model)

    @invariant()
    def estimates_are_never_below_the_tasks(self) -> None:
        # They can be above: a pool is silent about departures that change no token.
        for pool, count in self.model.items():
            estimate = self.policy.dispatcher.estimate(pool)
            assert estimate is not None
            assert estimate >= count

    @invariant()
    def tasks_match_the_model(self) -> None:
        assert loads(self.policy) == self.model

    @invariant()
    def threshold_follows_the_formula(self) -> None:
        assert self.policy.threshold == self.threshold >= 0
        assert self.capacity is None or self.threshold < self.capacity

    @invariant()
    def messages_are_counted(self) -> None:
        sent = self.policy.messages
        assert (sent.green, sent.yellow, sent.resync) == (self.green, self.yellow, self.resync)
        assert sent.other == 0
        # At most two per task; one for a task that a pool had when it joined, since it did not arrive here.
        assert sent.green + sent.yellow <= 2 * self.arrivals + self.tasks_brought


TestTrueToTheTasks = pytest.mark.long(TrueToTheTasks.TestCase)
TestTrueToTheTasks.settings = settings(max_examples=200, stateful_step_count=40)


def test_a_long_run_sends_at_most_two_messages_per_task() -> None:
    policy = ThresholdPolicy(0, LearningRule("0.8"))
    filled(policy, [0] * 10)
    choose, departures = choice(1), 0
    in_service: list[PoolId | None] = []
    for _ in range(3000):
        if choose(range(80)) >= len(in_service):
            in_service.append(policy.arrive(choose))
        else:
            pool = choose(in_service)
            in_service.remove(pool)
            policy.depart(pool)
            departures += 1
    sent = policy.messages
    assert sent.green + sent.yellow <= len(in_service) + 2 * departures
    assert 2 <= policy.threshold <= 6  # 40 tasks on average in 10 pools


def rising(tasks: list[int], threshold: int) -> ThresholdPolicy:
    policy = ThresholdPolicy(threshold, LearningRule("0.5"))
    filled(policy, tasks)
    return policy


def test_resync_on_a_rise() -> None:
    # All pools but one are above threshold 2. The task goes to pool 0, which then has 3 tasks, too.
    policy = rising([2, 3, 3, 5, 4], 2)
    before = policy.messages.resync
    assert policy.arrive(first) == 0
    assert policy.threshold == 3
    assert policy.messages.resync - before == 3  # pools 0, 1 and 2 have exactly 3
    assert not policy.dispatcher.green
    assert ordered(policy.dispatcher.yellow) == [0, 1, 2]
    assert (policy.messages.green, policy.messages.yellow) == (0, 0)


def test_yellow_turns_green_without_a_message_on_a_rise() -> None:
    # Pool 0 is green before and after its task, also for the new threshold.
    policy = rising([0, 4, 4, 5], 3)
    before = policy.messages.resync
    assert policy.arrive(first) == 0
    assert policy.threshold == 4
    assert list(policy.dispatcher.green) == [0]
    assert ordered(policy.dispatcher.yellow) == [0, 1, 2]
    assert policy.messages.resync - before == 2
    assert policy.messages.green == 1


def test_resync_on_a_fall() -> None:
    # One of five pools has 3 tasks or more, at most half of them.
    policy = rising([0, 1, 2, 2, 3], 3)
    before = policy.messages.resync
    assert policy.arrive(lambda candidates: candidates[1]) == 1
    assert policy.threshold == 2
    assert list(policy.dispatcher.green) == [0]  # pool 1 has 2 tasks now
    assert ordered(policy.dispatcher.yellow) == [0, 1, 2, 3]  # they were green; pool 4 was only yellow
    assert policy.messages.resync - before == 1
    assert policy.messages.green == 1


def test_token_order_after_a_change() -> None:
    # Kernels reproduce it: the order of the members. A pool that sank to the new threshold without a word follows,
    # with its token.
    policy = rising([2, 4, 3, 4, 3, 9], 2)
    policy.arrive(first)
    assert (list(policy.dispatcher.green), list(policy.dispatcher.yellow)) == ([], [0, 2, 4])
    policy = rising([0, 0, 0, 1, 5], 2)
    policy.arrive(first)
    assert (list(policy.dispatcher.green), list(policy.dispatcher.yellow)) == ([1, 2], [0, 1, 2, 3])
    policy = rising([5, 9, 2, 3], 2)
    for _ in range(2):
        policy.depart(0)
    policy.arrive(first)
    assert (policy.threshold, list(policy.dispatcher.yellow)) == (3, [2, 3, 0])


def test_lacking_tokens_come_in_the_order_of_the_members_after_one_has_left() -> None:
    policy = rising([9, 5, 2, 5], 2)
    policy.leave(0)
    for pool in (1, 1, 3, 3):
        policy.depart(pool)
    policy.arrive(first)
    assert list(policy.pools) == [3, 1, 2]
    assert (policy.threshold, list(policy.dispatcher.yellow)) == (3, [2, 3, 1])


def test_joining_is_counted_as_resync() -> None:
    policy = ThresholdPolicy(2)
    filled(policy, [0, 1, 2, 3])
    assert policy.messages.resync == 3
    assert policy.messages.green == policy.messages.yellow == 0


def test_alpha_is_compared_as_written() -> None:
    # 57 of 100 pools have at least the threshold: at most 0.57, though 0.57 * 100 < 57 in floats.
    policy = ThresholdPolicy(5, LearningRule(0.57))
    filled(policy, [5] * 57 + [0] * 43)
    policy.arrive(first)
    assert policy.threshold == 4
    policy = ThresholdPolicy(5, LearningRule(0.57))
    filled(policy, [5] * 58 + [0] * 42)
    policy.arrive(first)
    assert policy.threshold == 5


def test_rise_and_fall_cancel() -> None:
    # Nine of ten pools are above: at least n - 1, and at most 0.9 n with the threshold or more.
    policy = ThresholdPolicy(2, LearningRule("0.9"))
    filled(policy, [0] + [3] * 9)
    policy.arrive(first)
    assert policy.threshold == 2


def test_threshold_zero_holds_yellow_tokens_only_and_never_falls() -> None:
    policy = ThresholdPolicy(0, LearningRule("0.99"))
    filled(policy, [0] * 4)
    for _ in range(2):
        policy.arrive(first)
        assert policy.threshold == 0
        assert not policy.dispatcher.green
    assert len(policy.dispatcher.yellow) == 2


def test_the_rule_sees_the_state_before_the_arrival() -> None:
    # Two pools are idle before the first arrival, one after it: the threshold rises at the second.
    policy = ThresholdPolicy(0, LearningRule("0.5"))
    filled(policy, [1, 1, 0, 0])
    policy.arrive(first)
    assert policy.threshold == 0
    policy.arrive(first)
    assert policy.threshold == 1


def test_the_threshold_stays_below_the_capacity() -> None:
    policy = ThresholdPolicy(1, LearningRule("0.5"), capacity=2)
    filled(policy, [2, 2, 2])
    assert policy.arrive(first) is None
    assert policy.threshold == 1
    assert loads(policy) == {0: 2, 1: 2, 2: 2}


def test_the_threshold_learns_from_a_lost_task() -> None:
    policy = ThresholdPolicy(0, LearningRule("0.5"), capacity=3)
    filled(policy, [3, 1, 1])
    assert policy.arrive(first) is None
    assert policy.threshold == 1
    assert ordered(policy.dispatcher.yellow) == [1, 2]
    assert policy.dispatcher.estimate(0) == 3


def test_lost_tasks_are_not_counted_in() -> None:
    policy = ThresholdPolicy(0, None, capacity=1)
    filled(policy, [1, 1])
    for _ in range(5):
        assert policy.arrive(first) is None
    assert policy.dispatcher.estimate(0) == 1


@pytest.mark.parametrize(("threshold", "capacity"), [(-1, None), (2, 2), (3, 2), (0, 0)])
def test_impossible_settings_are_rejected(threshold: int, capacity: int | None) -> None:
    with pytest.raises(InputError):
        ThresholdPolicy(threshold, None, capacity)


def test_the_threshold_starts_at_zero_by_default() -> None:
    assert ThresholdPolicy().threshold == Dispatcher(0).threshold == 0


def test_a_rejected_join_changes_nothing() -> None:
    policy = ThresholdPolicy(1, None, capacity=2)
    with pytest.raises(InputError, match="'a'"):
        policy.join("a", 3)
    assert not policy.pools
    policy.join("a", 2)
    assert policy.tasks("a") == 2
