"""With instant delivery and a heartbeat after every event, the peers pick as join-the-shortest-queue does.

The threshold follows the paper's rule on the exact numbers of tasks, of the pools that are not full.
"""

import random
from collections.abc import Sequence
from typing import TypeVar, cast

import pytest

from evenly.core import JoinShortestQueue, LearningRule
from tests.core.protocol.support import Net, peer
from tests.core.support import Watched, loads, ordered

T = TypeVar("T")


class Sorted(Watched):
    """A choice that does not depend on the order of the candidates."""

    def __call__(self, candidates: Sequence[T], /) -> T:
        return super().__call__(cast("list[T]", ordered(candidates)))


class Twins:
    """The policy and the peers, side by side. Every event goes to both, and they must agree on it."""

    def __init__(self, threshold: int, alpha: str | None, capacity: int | None) -> None:
        self.rule = None if alpha is None else LearningRule(alpha)
        self.capacity = capacity
        self.policy = JoinShortestQueue(capacity)
        self.net = Net(peer(threshold, alpha, silence=1e9))
        self.sessions: dict[object, list[object]] = {}
        self.threshold = threshold
        self.names = self.arrivals = self.changes = 0

    def join(self, tasks: int) -> None:
        pool, self.names = self.names, self.names + 1
        self.policy.join(pool, tasks)
        self.net.dispatcher.set_capacity(pool, self.capacity)
        self.net.start(pool, tasks, capacity=self.capacity)
        self.sessions[pool] = [("old", number) for number in range(tasks)]
        self.agree()

    def leave(self, index: int) -> None:
        pool = ordered(self.policy.pools)[index % len(self.policy.pools)]
        self.policy.leave(pool)
        self.net.deliver(self.net.pools.pop(pool).leave())
        del self.sessions[pool]
        self.agree()

    def arrive(self, index: int) -> None:
        offered, here = Sorted(index), Sorted(index)
        step = self.expected_step()
        place = self.policy.arrive(offered)
        pick = self.net.dispatcher.pick(self.net.now, here)
        if place is None:  # every pool is full: the policy picks one all the same, and loses the task
            assert pick is None
            return
        assert pick is not None
        assert (pick.pool, here.seen) == (place, offered.seen)
        self.arrivals += 1
        self.changes += step != 0
        self.threshold += step
        assert pick.threshold == self.threshold
        self.sessions[place].append(self.arrivals)
        assert self.net.pools[place].begin(self.arrivals, pick.ticket, pick.threshold) is None
        self.agree()

    def expected_step(self) -> int:
        tasks = [count for count in loads(self.policy).values() if count != self.capacity]
        if self.rule is None or not tasks:
            return 0
        green, yellow = (sum(count < level for count in tasks) for level in (self.threshold, self.threshold + 1))
        step = self.rule.step(len(tasks), green, yellow)
        return 0 if self.threshold + step < 0 else step

    def depart(self, index: int) -> None:
        busy = ordered(pool for pool, open_sessions in self.sessions.items() if open_sessions)
        if busy:
            pool = busy[index % len(busy)]
            self.policy.depart(pool)
            self.net.deliver(self.net.pools[pool].end(self.sessions[pool].pop()))
            self.agree()

    def agree(self) -> None:
        for made in self.net.pools.values():
            self.net.deliver(made.heartbeat())
        dispatcher = self.net.dispatcher
        assert dispatcher.threshold == self.threshold
        assert {pool: dispatcher.estimate(pool) for pool in dispatcher.members} == loads(self.policy)
        assert {made.threshold for made in self.net.pools.values()} == {self.threshold}


@pytest.mark.parametrize(
    ("alpha", "threshold", "capacity"),
    [(None, 3, 7), (None, 0, None), ("0.8", 0, None), ("0.5", 6, 7), ("0.8", 0, 5), ("0.5", 6, None)],
)
def test_the_peers_pick_as_jsq_does_and_learn_by_the_rule(
    alpha: str | None, threshold: int, capacity: int | None
) -> None:
    rng = random.Random(7)
    twins = Twins(threshold, alpha, capacity)
    for _ in range(8):
        twins.join(rng.randrange(4))
    load = 4
    for turn in range(1500):
        if turn % 300 == 299:
            load = rng.choice([1, 2, 5, 8])
        busy = sum(len(sessions) for sessions in twins.sessions.values())
        if rng.random() < 0.02:
            if rng.random() < 0.5 and len(twins.net.pools) > 2:
                twins.leave(rng.randrange(99))
            else:
                twins.join(0)
        elif rng.randrange(2 * load * 8) >= busy:
            twins.arrive(rng.randrange(10**6))
        else:
            twins.depart(rng.randrange(10**6))
    assert twins.arrivals > 300
    assert (twins.changes > 5) == (alpha is not None)
