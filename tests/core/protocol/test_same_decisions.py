"""With instant delivery, the peers make the decisions of the paper's policy, event by event."""

import random
from collections.abc import Sequence
from typing import TypeVar, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from evenly.core import LearningRule, ThresholdPolicy
from tests.core.protocol.support import LEASE, Net, peer
from tests.core.support import Watched, loads, ordered
from tests.core.test_threshold import ALPHAS

T = TypeVar("T")


class Sorted(Watched):
    """A choice that does not depend on the order of the candidates.

    The peers report more departures, so that their estimates, and the order of the tokens, can differ.
    """

    def __call__(self, candidates: Sequence[T], /) -> T:
        return super().__call__(cast("list[T]", ordered(candidates)))


class Twins:
    """The policy and the peers, side by side. Every event goes to both, and they must agree on it."""

    def __init__(self, threshold: int, alpha: str | None, capacity: int | None) -> None:
        self.capacity = capacity
        self.policy = ThresholdPolicy(threshold, None if alpha is None else LearningRule(alpha), capacity)
        self.net = Net(peer(threshold, alpha, highest=None if capacity is None else capacity - 1, silence=1e9))
        self.sessions: dict[object, list[object]] = {}
        self.names = self.arrivals = self.brought = self.departed = 0
        self.sent = 0  # token messages by pools that have left

    def join(self, tasks: int) -> None:
        pool, self.names = self.names, self.names + 1
        self.policy.join(pool, tasks)
        self.net.start(pool, tasks, capacity=self.capacity)
        self.sessions[pool] = [("old", number) for number in range(tasks)]
        self.brought += tasks
        self.agree()

    def leave(self, index: int) -> None:
        pool = sorted(self.policy.pools, key=str)[index % len(self.policy.pools)]
        self.policy.leave(pool)
        self.net.deliver(self.net.pools[pool].leave())  # its sessions are forgotten in the policy, too
        sent = self.net.pools.pop(pool).sent
        self.sent += sent.green + sent.yellow
        del self.sessions[pool]
        self.agree()

    def arrive(self, index: int) -> None:
        offered, here = Sorted(index), Sorted(index)
        self.arrivals += 1
        place = self.policy.arrive(offered)
        pick = self.net.dispatcher.pick(self.net.now, here)
        assert here.seen == offered.seen
        if pick is None:
            assert place is None
            return
        pool = self.net.pools[pick.pool]
        assert place == (None if pool.full else pick.pool)
        if pool.full:
            self.net.deliver(pool.refuse(pick.ticket))
        else:
            self.sessions[pick.pool].append(("new", self.arrivals))
            self.net.deliver(pool.begin(("new", self.arrivals), pick.ticket))
        self.agree()

    def depart(self, index: int) -> None:
        busy = sorted((pool for pool, open_sessions in self.sessions.items() if open_sessions), key=str)
        if busy:
            pool = busy[index % len(busy)]
            self.policy.depart(pool)
            self.net.deliver(self.net.pools[pool].end(self.sessions[pool].pop()))
            self.departed += 1
            self.agree()

    def beat(self) -> None:
        """Let all pools send a heartbeat, and time pass. In the policy, nothing happens."""
        for pool in self.net.pools.values():
            self.net.deliver(pool.heartbeat())
        self.net.now += LEASE
        self.net.dispatcher.tick(self.net.now)
        self.agree()

    def agree(self) -> None:
        one, other = self.policy.dispatcher, self.net.dispatcher.dispatcher
        assert one.threshold == other.threshold
        assert list(one.pools) == list(other.pools)
        assert one.settled
        assert other.settled
        assert ordered(one.green) == ordered(other.green)
        assert ordered(one.yellow) == ordered(other.yellow)
        assert loads(self.policy) == {pool: made.tasks for pool, made in self.net.pools.items()}
        for pool, made in self.net.pools.items():
            assert made.notice == other.notice
            estimate = other.estimate(pool)
            assert estimate is not None
            assert estimate >= made.tasks
        assert self.net.dispatcher.expired == 0
        tokens = self.sent + sum(made.sent.green + made.sent.yellow for made in self.net.pools.values())
        assert tokens <= self.arrivals + self.departed + self.brought


class SameDecisions(RuleBasedStateMachine):
    """Any history of events, in the policy and over the peers."""

    @initialize(
        alpha=st.sampled_from(ALPHAS),
        threshold=st.integers(0, 3),
        room=st.none() | st.integers(1, 3),
        tasks=st.lists(st.integers(0, 4), max_size=6),
    )
    def start(self, alpha: str | None, threshold: int, room: int | None, tasks: list[int]) -> None:
        self.twins = Twins(threshold, alpha, None if room is None else threshold + room)
        for count in tasks:
            self.join(count)

    @rule(tasks=st.integers(0, 5))
    def join(self, tasks: int) -> None:
        capacity = self.twins.capacity
        self.twins.join(tasks if capacity is None else min(tasks, capacity))

    @precondition(lambda self: self.twins.policy.pools)
    @rule(index=st.integers(0, 99))
    def leave(self, index: int) -> None:
        self.twins.leave(index)

    @rule(indices=st.lists(st.integers(0, 99), min_size=1, max_size=8))
    def arrive(self, indices: list[int]) -> None:
        for index in indices:
            self.twins.arrive(index)

    @rule(indices=st.lists(st.integers(0, 99), min_size=1, max_size=8))
    def depart(self, indices: list[int]) -> None:
        for index in indices:
            self.twins.depart(index)

    @rule()
    def beat(self) -> None:
        self.twins.beat()

    @invariant()
    def nothing_is_left_to_deliver(self) -> None:
        assert self.twins.net.dispatcher.messages() == []


TestSameDecisions = pytest.mark.long(SameDecisions.TestCase)
TestSameDecisions.settings = settings(max_examples=200, stateful_step_count=40)


@pytest.mark.parametrize(
    ("alpha", "threshold", "capacity"),
    [
        *[(None, 3, 7), (None, 0, None), ("0.8", 0, None), ("0.5", 6, 7)],
        *[pytest.param(*case, marks=pytest.mark.full) for case in [("0.8", 0, 7), ("0.5", 6, None)]],
    ],
)
def test_a_long_run(alpha: str | None, threshold: int, capacity: int | None) -> None:
    rng = random.Random(7)
    twins = Twins(threshold, alpha, capacity)
    for _ in range(8):
        twins.join(rng.randrange(4))
    load = 4
    for turn in range(1500):
        if turn % 300 == 299:
            load = rng.choice([1, 2, 5, 6])
        busy = sum(len(sessions) for sessions in twins.sessions.values())
        if rng.random() < 0.02:
            if rng.random() < 0.5 and len(twins.net.pools) > 2:
                twins.leave(rng.randrange(99))
            else:
                twins.join(0)
        elif rng.random() < 0.01:
            twins.beat()
        elif rng.randrange(2 * load * 8) >= busy:
            twins.arrive(rng.randrange(10**6))
        else:
            twins.depart(rng.randrange(10**6))
    assert twins.arrivals > 300
    if alpha is not None:
        assert twins.policy.dispatcher.epoch > 5
