"""The balancer's counts after any history, and its picks while pools are added, warm up, drain and leave."""

from __future__ import annotations

import random
from collections import Counter
from math import fsum

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from evenly.core import LearningRule, Policy, RandomRouting, UtilityThreshold, make_policy
from evenly.errors import InputError
from evenly.live.addresses import Address
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.events import (
    AlphaChanged,
    BalancerEvent,
    PoolAdded,
    PoolEvent,
    PoolFailed,
    PoolGone,
    PoolStateChanged,
    ThresholdChanged,
)
from evenly.live.balancer.lifecycle import LifecycleError, State
from evenly.live.balancer.pool import LivePool
from evenly.live.balancer.session import Session

SLOW_START = 10.0
WEIGHTED = ["threshold-utility", "greedy-utility", "weighted-least"]
NAMES = ["threshold", "jsq", "power-of-d", "random", *WEIGHTED]
WEIGHTS = st.sampled_from([1.0, 4.0, 0.5])


def policy(name: str, alpha: str = "0.6") -> Policy:
    if name.startswith("threshold"):
        return UtilityThreshold(0, LearningRule(alpha))  # as the picker, see `new_policy`
    return make_policy(name)


def address(number: int) -> Address:
    return Address("127.0.0.1", 9000 + number)


def endpoint(number: int) -> Address:
    return Address("192.0.2.1", 9000 + number)


class Scene:
    """A balancer with a clock that is set by hand, and the events it reported."""

    def __init__(self, name: str, *, pools: int = 0, slow_start: float = SLOW_START, alpha: str = "0.6") -> None:
        self.now = 100.0
        self.events: list[BalancerEvent] = []
        self.opened: list[Session] = []
        self.balancer = Balancer(
            policy(name, alpha),
            name=name,
            choose=random.Random(1).choice,
            clock=lambda: self.now,
            slow_start=slow_start,
            report=self.events.append,
        )
        self.pools = [
            self.balancer.add(address(number), endpoint(number), slowly=False) for number in range(pools)
        ]
        for pool in self.pools:
            self.balancer.set_well(pool)
        self.events.clear()

    def states(self, pool: LivePool) -> list[tuple[State, State]]:
        """Return the reported state changes of the pool: before and after."""
        return [
            (event.before, event.state)
            for event in self.events
            if isinstance(event, PoolStateChanged) and event.pool == pool.address
        ]

    def sessions(self) -> list[int]:
        return [pool.sessions for pool in self.balancer.pools]

    def picks(self, count: int) -> Counter[LivePool | None]:
        return Counter(self.pick() for _ in range(count))

    def pick(self) -> LivePool | None:
        session = self.balancer.open()
        if session is None:
            return None
        self.opened.append(session)
        return session.pool

    def end(self, pool: LivePool) -> None:
        """End one session of the pool."""
        session = next(session for session in self.opened if session.pool is pool)
        self.opened.remove(session)
        session.close()


class Seen:
    """A ledger that records what it is told."""

    checks = True

    def __init__(self) -> None:
        self.counts: Counter[LivePool] = Counter()
        self.unconfirmed: set[Session] = set()

    def started(self, session: Session) -> None:
        assert session.pool is not None
        self.counts[session.pool] += 1
        self.unconfirmed.add(session)

    def confirmed(self, session: Session) -> None:
        self.unconfirmed.discard(session)

    def ended(self, session: Session, pool: LivePool) -> None:
        self.counts[pool] -= 1
        self.unconfirmed.discard(session)


class TrueAfterAnyHistory(RuleBasedStateMachine):
    """Any history of events, compared with a model that only tracks the open sessions of each pool."""

    @initialize(
        name=st.sampled_from(NAMES), slow_start=st.sampled_from([0.0, SLOW_START]), pools=st.integers(0, 5)
    )
    def start(self, name: str, slow_start: float, pools: int) -> None:
        self.scene = Scene(name, pools=pools, slow_start=slow_start)
        self.balancer = self.scene.balancer
        self.open: list[tuple[Session, LivePool | None]] = []  # sessions, and where each should be counted
        self.unpicked: Counter[LivePool] = Counter()
        self.elsewhere: Counter[LivePool] = Counter()
        self.known = {pool.address: pool for pool in self.balancer.pools}
        self.weighted = name in WEIGHTED
        self.weights = dict.fromkeys(self.balancer.pools, 1.0)
        self.moved = self.came_unpicked = self.counted = 0
        self.ledger = Seen()

    def of(self, index: int) -> LivePool:
        return list(self.known.values())[index % len(self.known)]

    def staying(self, index: int) -> LivePool | None:
        staying = [pool for pool in self.known.values() if not pool.leaving]
        return staying[index % len(staying)] if staying else None

    @rule(count=st.integers(1, 6))
    def pick(self, count: int) -> None:
        for _ in range(count):
            available = [pool for pool in self.known.values() if pool.available]
            could_serve = any(pool.member for pool in available)
            session = self.balancer.open(via=self.ledger)
            assert (session is None) == (not available)
            if session is not None:
                assert session.pool is not None
                assert session.pool in available
                assert could_serve or session.pool.ramp is None  # no pool is capped if that leaves none
                self.open.append((session, session.pool))
                self.counted += 1

    @rule(count=st.integers(1, 6))
    def pick_right_after_a_tick(self, count: int) -> None:
        """Pick right after a tick: the mean can only grow, and no cap may be exceeded."""
        self.balancer.tick()
        for _ in range(count):
            before = Counter({pool: pool.sessions for pool in self.known.values()})
            ramps = {pool: pool.ramp for pool in self.known.values()}
            available = [pool for pool in self.known.values() if pool.available]
            held = not any(pool.member for pool in available)
            due = {pool: self.due(pool) for pool in available}
            self.pick(1)
            for pool, ramp in ramps.items():
                if pool.sessions > before[pool] and ramp is not None and not held:
                    assert pool.sessions <= ramp.cap(self.scene.now, due[pool])

    @precondition(lambda self: self.known)
    @rule(index=st.integers(0, 99))
    def adopt(self, index: int) -> None:
        session = self.balancer.adopt(self.of(index).endpoint, via=self.ledger)
        assert session is not None
        assert session.pool is self.of(index)
        self.open.append((session, session.pool))
        self.came_unpicked += 1

    @precondition(lambda self: self.open and self.known)
    @rule(session=st.integers(0, 99), index=st.integers(0, 99))
    def served_by_some_pool(self, session: int, index: int) -> None:
        number, served = session % len(self.open), self.of(index)
        opened, before = self.open[number]
        opened.served_by(served.endpoint)
        self.open[number] = opened, served
        self.moved += before is not None and before is not served
        self.came_unpicked += before is None
        self.forget_the_gone()

    @precondition(lambda self: self.open)
    @rule(session=st.integers(0, 99))
    def served_by_the_gateway_itself(self, session: int) -> None:
        self.open[session % len(self.open)][0].served_by(None)

    @precondition(lambda self: self.open)
    @rule(session=st.integers(0, 99), stranger=st.booleans())
    def lose_sight(self, session: int, stranger: bool) -> None:
        """Let an unknown endpoint serve the session, or release it: it is counted nowhere."""
        number = session % len(self.open)
        opened, _ = self.open[number]
        if stranger:
            opened.served_by(Address("198.51.100.1", 1))
        else:
            opened.release()
        self.open[number] = opened, None
        self.forget_the_gone()

    @precondition(lambda self: self.open)
    @rule(sessions=st.lists(st.integers(0, 99), min_size=1, max_size=8))
    def close(self, sessions: list[int]) -> None:
        for session in sessions[: len(self.open)]:
            opened, _ = self.open.pop(session % len(self.open))
            opened.close()
            opened.close()  # which changes nothing
        self.forget_the_gone()

    @precondition(lambda self: self.known)
    @rule(index=st.integers(0, 99), count=st.integers(-1, 5))
    def set_unpicked(self, index: int, count: int) -> None:
        pool = self.of(index)
        self.came_unpicked += max(0, count - self.unpicked[pool])
        self.unpicked[pool] = max(0, count)
        self.balancer.set_unpicked(pool, count)
        self.forget_the_gone()

    @precondition(lambda self: self.known)
    @rule(index=st.integers(0, 99), count=st.integers(0, 40))
    def set_elsewhere(self, index: int, count: int) -> None:
        pool = self.of(index)
        self.elsewhere[pool] = count
        self.balancer.set_elsewhere(pool, count)

    @rule(number=st.integers(0, 6), slowly=st.booleans(), weight=WEIGHTS)
    def add(self, number: int, slowly: bool, weight: float) -> None:
        weight = weight if self.weighted else 1.0
        old = self.known.get(address(number))
        if old is not None and not old.leaving:
            with pytest.raises(InputError, match=f"{address(number)} already exists"):
                self.balancer.add(address(number), endpoint(number), slowly=slowly)
            return
        pool = self.balancer.add(address(number), endpoint(number), weight=weight, slowly=slowly)
        assert old is None or pool is old
        self.known[address(number)] = pool
        self.weights[pool] = weight

    @rule(numbers=st.sets(st.integers(0, 6), max_size=3), weight=WEIGHTS)
    def set_weights(self, numbers: set[int], weight: float) -> None:
        pools = {pool for number in numbers if (pool := self.staying(number)) is not None}
        if weight != 1 and not self.weighted and pools:
            if self.balancer.name == "threshold":
                return  # keep the weights equal here; threshold-utility has them different
            with pytest.raises(InputError, match="ignores weights"):
                self.balancer.set_weights({pool.address: weight for pool in pools})
            return
        self.balancer.set_weights({pool.address: weight for pool in pools})
        self.weights |= dict.fromkeys(pools, weight)

    @rule(number=st.integers(0, 6), other=st.integers(0, 6))
    def add_at_a_taken_endpoint(self, number: int, other: int) -> None:
        old, there = self.known.get(address(number)), self.known.get(address(other))
        if other != number and (old is not None or (there is not None and not there.leaving)):
            with pytest.raises(InputError, match=str(address(number))):
                self.balancer.add(address(number), endpoint(other))

    @rule(index=st.integers(0, 99), which=st.sampled_from(["drain", "undrain", "remove"]))
    def change(self, index: int, which: str) -> None:
        pool = self.staying(index)
        if pool is None:
            return
        getattr(self.balancer, which)(pool.address)
        assert which == "undrain" or not pool.available
        self.forget_the_gone()

    @precondition(lambda self: self.known)
    @rule(index=st.integers(0, 99), failing=st.booleans())
    def set_failing(self, index: int, failing: bool) -> None:
        pool = self.of(index)
        if failing:
            self.balancer.set_failing(pool, "down")
        else:
            self.balancer.set_well(pool)
        assert pool.failing == failing

    @rule(seconds=st.sampled_from([0.0, 0.1, 1.0, 5.0, 11.0]))
    def tick(self, seconds: float) -> None:
        self.scene.now += seconds
        self.balancer.tick()
        for pool in self.known.values():
            if pool.ramp is not None:
                assert pool.member == (pool.sessions + 1 <= pool.ramp.cap(self.scene.now, self.due(pool)))
                assert self.scene.now < pool.ramp.begun + SLOW_START

    @rule()
    def catch_up(self) -> None:
        available = [pool for pool in self.known.values() if pool.available]
        before = {pool: self.balancer.threshold_for(pool.weight) for pool in available}
        self.balancer.catch_up()
        after = {pool: self.balancer.threshold_for(pool.weight) for pool in available}
        if not available or self.balancer.threshold is None:
            return
        total = sum(pool.sessions for pool in available)
        below, now = sum(filter(None, before.values())), sum(filter(None, after.values()))
        assert now <= max(total, below)
        assert total < now + len(available)  # else there would be a higher one
        if self.balancer.name == "threshold":
            assert self.balancer.threshold == max(below // len(available), total // len(available))

    def due(self, pool: LivePool) -> float:
        """Return the part of all sessions that the pool should have. With one weight, it is the mean."""
        available = [pool for pool in self.known.values() if pool.available]
        counts = Counter(pool.weight for pool in available)
        parts = fsum(count * (weight / pool.weight) for weight, count in counts.items())
        if len(counts) == 1:
            assert parts == len(available)
        return sum(pool.sessions for pool in available) / parts

    def forget_the_gone(self) -> None:
        """Forget leaving pools with their last session, neither before nor later."""
        for pool in list(self.known.values()):
            if pool.leaving and pool not in self.counted_at() and not self.unpicked[pool]:
                del self.known[pool.address]

    def counted_at(self) -> list[LivePool]:
        """Return the pool of every session that is counted."""
        return [pool for _, pool in self.open if pool is not None]

    @invariant()
    def the_counts_are_true(self) -> None:
        picked = Counter(self.counted_at())
        assert list(self.balancer.pools) == list(self.known.values())
        for pool in self.known.values():
            assert pool.picked == picked[pool]
            assert pool.unpicked == self.unpicked[pool]
            assert pool.elsewhere == self.elsewhere[pool]
            assert pool.weight == self.weights[pool]
            assert pool.own == pool.picked + pool.unpicked
            assert pool.sessions == pool.own + pool.elsewhere
        assert self.balancer.sessions == len(self.counted_at()) + sum(
            self.unpicked[pool] + self.elsewhere[pool] for pool in self.known.values()
        )
        for pool in self.known.values():
            if pool.available:
                assert self.balancer.rotation.due(pool) == self.due(pool)
        assert self.balancer.sessions == sum(self.scene.sessions())
        assert self.balancer.picks.total() == self.counted
        assert self.balancer.moved_total == self.moved
        assert self.balancer.unpicked_total == self.came_unpicked
        assert all(session.pool is pool for session, pool in self.open)
        assert +self.ledger.counts == picked
        assert self.ledger.unconfirmed <= {session for session, pool in self.open if pool is not None}

    @invariant()
    def the_policy_knows_the_members_and_their_sessions(self) -> None:
        members = [pool for pool in self.known.values() if pool.member]
        assert set(self.balancer.policy.pools) == set(members)
        for pool in members:
            assert pool.available
            assert self.balancer.policy.tasks(pool) == pool.sessions
        for pool in self.known.values():
            assert (
                pool.member or not pool.available or pool.ramp is not None
            )  # an available pool is picked unless it is capped
            assert self.balancer.pool_at(pool.endpoint) is pool
            assert (pool.state is State.CHECKING) == (pool.available and pool.well_at is None)
            assert pool.state is State.CHECKING or (pool.state is State.WARMING) == (pool.ramp is not None)
            assert (pool.state in {State.SERVING, State.WARMING, State.CHECKING}) == pool.available

    @invariant()
    def the_tokens_are_true(self) -> None:
        threshold = self.balancer.threshold
        if threshold is None:
            assert self.balancer.tokens is None
            return
        members = [pool for pool in self.known.values() if pool.member]
        dispatcher = self.balancer.policy.dispatcher  # type: ignore[attr-defined]
        bounds = {pool: dispatcher.bounds(pool) for pool in members}
        if self.balancer.name == "threshold":
            assert set(bounds.values()) <= {(threshold, threshold + 1)}
        green = sum(pool.sessions < bounds[pool].lower for pool in members)
        yellow = sum(pool.sessions < bounds[pool].upper for pool in members)
        assert self.balancer.tokens == (green, yellow)
        for pool in members:
            assert self.balancer.threshold_for(pool.weight) == bounds[pool].lower

    def teardown(self) -> None:
        """Check that nothing is left after all sessions end and all pools are removed."""
        if not hasattr(self, "scene"):
            return
        for pool in list(self.known.values()):
            self.set_unpicked_to_zero(pool)
        while self.open:
            self.open.pop()[0].close()
        self.forget_the_gone()
        for pool in list(self.known.values()):
            self.balancer.remove(pool.address)
        assert self.balancer.pools == ()
        assert self.balancer.sessions == 0
        assert not self.balancer.policy.pools
        assert all(self.balancer.pool_at(endpoint(number)) is None for number in range(7))

    def set_unpicked_to_zero(self, pool: LivePool) -> None:
        self.unpicked[pool] = 0
        self.balancer.set_unpicked(pool, 0)


TestTrueAfterAnyHistory = pytest.mark.long(TrueAfterAnyHistory.TestCase)
TestTrueAfterAnyHistory.settings = settings(max_examples=120, stateful_step_count=60)


# --- bursts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "alpha"), [("jsq", "0.5"), ("threshold", "0.05"), ("threshold", "0.99")])
def test_a_burst_on_empty_pools_is_level_at_every_moment(name: str, alpha: str) -> None:
    """The threshold starts at 0 and all pools hold yellow tokens. A pick spends one, and the threshold rises with
    the last: a level is full before the next begins, as with jsq. Without departures all pools are at the
    threshold or one above, none is green, so it never falls."""
    scene = Scene(name, pools=7, alpha=alpha)

    for count in range(1, 7 * 30 + 1):
        scene.pick()
        assert set(scene.sessions()) <= {count // 7, -(-count // 7)}

    assert scene.sessions() == [30] * 7
    assert scene.balancer.threshold == (30 if name == "threshold" else None)


def test_picks_are_counted_by_the_token_used() -> None:
    scene = Scene("threshold", pools=3)
    scene.picks(6)
    for pool in scene.pools:
        scene.end(pool)  # threshold 2, and all pools below it: green

    assert scene.balancer.threshold == 2
    assert scene.balancer.tokens == (3, 3)
    scene.pick()
    assert scene.balancer.picks == {"yellow": 6, "green": 1}
    assert scene.balancer.messages.green == 3
    jsq = Scene("jsq", pools=1)
    jsq.pick()
    assert jsq.balancer.picks == {"jsq": 1}
    alone = Scene("threshold")
    alone.balancer.add(address(0), endpoint(0))
    alone.picks(2)  # at the second pick, the only pool is capped
    assert alone.balancer.picks == {"yellow": 2}
    assert [Scene(name, pools=1).pick() is not None for name in NAMES] == [True] * len(NAMES)


# --- slow start ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["jsq", "threshold"])
def test_a_new_pool_fills_along_its_ramp(name: str) -> None:
    """Four pools with 20 sessions and a newcomer, which may have 1 + mean * t / 10 at time t: one session at once.
    After 2.5 s and k more picks it may have 1 + 0.25 * (100 + k) / 5 = 6 + k / 20: five more, and the next one
    with the 21st pick (k = 20 before it)."""
    scene = Scene(name, pools=4)
    scene.picks(80)
    newcomer = scene.balancer.add(address(4), endpoint(4))

    assert str(newcomer.state) == "checking"
    scene.balancer.set_well(newcomer)
    assert str(newcomer.state) == "warming"
    assert scene.picks(20)[newcomer] == 1
    scene.now += 2.5
    scene.balancer.tick()
    assert scene.picks(5)[newcomer] == 5
    assert scene.picks(15)[newcomer] == 0
    scene.balancer.tick()
    assert scene.picks(1)[newcomer] == 1
    assert newcomer.sessions == 7

    scene.now += 7.5
    scene.balancer.tick()
    assert str(newcomer.state) == "serving"
    changed = PoolStateChanged(pool=address(4), before=State.WARMING, state=State.SERVING, sessions=7)
    assert scene.events[-1] == changed
    assert scene.states(newcomer) == [(State.CHECKING, State.WARMING), (State.WARMING, State.SERVING)]


@pytest.mark.parametrize("name", ["threshold", "random", "weighted-least"])
def test_a_pool_that_fails_gets_nothing_and_comes_back_without_a_stampede(name: str) -> None:
    scene = Scene(name, pools=4)
    scene.picks(40)
    pool = scene.pools[1]
    had = pool.sessions

    scene.balancer.set_failing(pool, "down")
    assert (pool.state, pool.sessions) == (State.FAILING, had)
    assert scene.picks(40)[pool] == 0

    scene.balancer.set_well(pool)
    assert pool.state is State.WARMING
    assert scene.picks(200)[pool] <= 1
    scene.now += 1.0
    scene.balancer.tick()
    assert scene.picks(20)[pool] > 0  # those that it kept do not count against the ramp
    assert scene.states(pool)[:2] == [(State.SERVING, State.FAILING), (State.FAILING, State.WARMING)]


def test_no_pool_is_capped_when_that_leaves_none() -> None:
    scene = Scene("jsq")
    for number in range(3):
        scene.balancer.add(address(number), endpoint(number))

    assert scene.picks(300).keys().isdisjoint({None})
    assert scene.sessions() == [100, 100, 100]
    for pool in scene.balancer.pools:
        assert (pool.state, pool.ramp) == (State.CHECKING, None)  # it gets sessions, and may never be checked
        scene.balancer.set_well(pool)
        assert pool.state is State.SERVING


def test_a_pool_that_fails_tells_why_since_when_and_what_was_lost() -> None:
    scene = Scene("jsq", pools=1)
    [pool] = scene.pools
    scene.picks(5)
    scene.now += 1.0
    scene.balancer.set_well(pool)
    for _ in range(3):
        scene.end(pool)
    scene.now += 1.0
    scene.balancer.set_well(pool)  # the checks do not know yet
    scene.now += 2.5
    scene.balancer.set_failing(pool, "health check failed")
    failed = scene.events[-1]
    assert isinstance(failed, PoolFailed)
    assert (failed.before, failed.state, failed.sessions) == (State.SERVING, State.FAILING, 2)
    assert (failed.reason, failed.seconds, failed.lost) == ("health check failed", 2.5, 3)
    other = scene.balancer.add(address(1), endpoint(1))
    scene.balancer.set_failing(other, "health check timed out")
    failed = scene.events[-1]
    assert isinstance(failed, PoolFailed)
    assert (failed.before, failed.reason) == (State.CHECKING, "health check timed out")
    assert (failed.seconds, failed.lost) == (None, 0)


def test_a_session_shows_that_a_pool_can_be_reached_if_nothing_else_does() -> None:
    scene = Scene("jsq")
    silent, telling = Seen(), Seen()
    silent.checks = False
    for number, ledger in enumerate([None, silent, telling]):
        pool = scene.balancer.add(address(number), endpoint(number))
        scene.balancer.adopt(endpoint(number), via=ledger)
        assert pool.state is (State.CHECKING if ledger is telling else State.WARMING)


def test_sessions_placed_by_others_count_against_the_ramp() -> None:
    scene = Scene("jsq", pools=2)
    scene.picks(20)
    newcomer = scene.balancer.add(address(2), endpoint(2))
    scene.balancer.adopt(newcomer.endpoint)

    assert scene.picks(10)[newcomer] == 0


def test_sessions_found_later_count_against_the_ramp() -> None:
    scene = Scene("jsq", pools=2)
    scene.picks(20)
    newcomer = scene.balancer.add(address(2), endpoint(2))
    scene.balancer.set_unpicked(newcomer, 5)

    assert scene.picks(10)[newcomer] == 0


def test_slow_start_ends_when_a_pool_leaves_the_rotation() -> None:
    scene = Scene("jsq", pools=1)
    newcomer = scene.balancer.add(address(1), endpoint(1))
    scene.balancer.drain(address(1))
    scene.now += SLOW_START
    scene.balancer.adopt(endpoint(1))

    assert (newcomer.state, newcomer.ramp) == (State.DRAINING, None)


# --- pools come and go -----------------------------------------------------------------------------------------


def test_a_pool_that_is_not_there_is_named_with_those_that_are() -> None:
    for which in ["drain", "undrain", "remove", "pool"]:
        scene = Scene("jsq", pools=2)
        scene.picks(2)
        scene.balancer.remove(address(1))  # a leaving pool counts as removed

        for number in (1, 5):
            with pytest.raises(InputError) as refused:
                getattr(scene.balancer, which)(address(number))
            assert str(refused.value) == f"There is no pool {address(number)}. Pools: {address(0)}."
        empty = Scene("jsq")
        with pytest.raises(InputError, match="Pools: none"):
            empty.balancer.pool(address(0))


def test_an_error_names_five_pools_at_most() -> None:
    with pytest.raises(InputError, match=f"Pools: {', '.join(str(address(number)) for number in range(5))}.$"):
        Scene("jsq", pools=7).balancer.pool(address(9))


def test_one_server_is_one_pool() -> None:
    scene = Scene("jsq", pools=1)

    with pytest.raises(InputError, match=f"^Pool {address(0)} already exists.$"):
        scene.balancer.add(address(0), endpoint(7))
    with pytest.raises(InputError, match=f"Pool localhost:9000 already exists, as {address(0)}"):
        scene.balancer.add(Address("localhost", 9000), endpoint(0))


def test_a_leaving_pool_can_come_back_under_another_name() -> None:
    scene = Scene("jsq", pools=1)
    scene.picks(3)
    scene.balancer.remove(address(0))

    again = scene.balancer.add(address(5), endpoint(0))

    assert again is scene.pools[0]
    assert (again.address, again.sessions, scene.balancer.pools) == (address(5), 3, (again,))
    with pytest.raises(InputError):
        scene.balancer.pool(address(0))


def test_a_leaving_pool_cannot_come_back_elsewhere() -> None:
    scene = Scene("jsq", pools=1)
    scene.picks(3)
    scene.balancer.remove(address(0))

    with pytest.raises(InputError, match=f"still has 3 sessions at {endpoint(0)};"):
        scene.balancer.add(address(0), endpoint(7))
    assert scene.balancer.pool_at(endpoint(7)) is None


def test_the_number_of_pools_is_limited() -> None:
    scene = Scene("random", pools=0, slow_start=0.0)
    for number in range(10_000):
        scene.balancer.add(address(number), endpoint(number))

    with pytest.raises(InputError, match="at most 10000 pools"):
        scene.balancer.add(address(10_000), endpoint(10_000))
    scene.balancer.adopt(endpoint(0))
    scene.balancer.remove(address(0))
    scene.balancer.add(address(0), endpoint(0))  # it was still leaving


def test_the_sessions_of_a_pool_that_is_gone_cannot_be_set() -> None:
    scene = Scene("jsq", pools=1)
    scene.balancer.remove(address(0))

    with pytest.raises(LifecycleError, match=f"{address(0)} is GONE"):
        scene.balancer.set_unpicked(scene.pools[0], 1)
    assert scene.pools[0].sessions == 0


# --- reports --------------------------------------------------------------------------------------------------


def test_changes_are_reported_once_each() -> None:
    scene = Scene("threshold", pools=2)
    scene.balancer.add(address(2), endpoint(2))
    assert scene.events == [PoolAdded(pool=address(2), endpoint=endpoint(2))]
    scene.events.clear()
    scene.balancer.set_failing(scene.pools[0], "down")
    scene.balancer.set_failing(scene.pools[0], "down")
    scene.balancer.drain(address(0))
    scene.balancer.set_well(scene.pools[0])  # draining all the same
    scene.balancer.remove(address(0))

    assert scene.states(scene.pools[0]) == [
        (State.SERVING, State.FAILING),
        (State.FAILING, State.DRAINING),
        (State.DRAINING, State.LEAVING),
    ]
    assert scene.events[3:] == [PoolGone(pool=address(0))]
    assert all(isinstance(event, PoolEvent) for event in scene.events)


def test_without_slow_start_a_pool_serves_at_once() -> None:
    scene = Scene("jsq", pools=1, slow_start=0.0)
    scene.balancer.drain(address(0))
    scene.balancer.undrain(address(0))

    assert scene.states(scene.pools[0]) == [(State.SERVING, State.DRAINING), (State.DRAINING, State.SERVING)]


def test_a_slow_start_shorter_than_the_clock_can_tell_ends_at_the_next_tick() -> None:
    scene = Scene("jsq", pools=1, slow_start=1e-12)
    newcomer = scene.balancer.add(address(1), endpoint(1))
    scene.balancer.set_well(newcomer)
    scene.now += 1.0
    scene.balancer.tick()

    assert scene.states(newcomer) == [(State.CHECKING, State.WARMING), (State.WARMING, State.SERVING)]


def test_the_threshold_is_reported_when_it_is_another_one_than_before() -> None:
    scene = Scene("threshold", pools=2)
    for pool in scene.pools:
        scene.balancer.set_unpicked(pool, 5)
    scene.balancer.catch_up()  # one change, from 0 to 5
    scene.balancer.tick()
    scene.balancer.tick()
    scene.picks(4)
    scene.balancer.tick()

    changes = [event for event in scene.events if isinstance(event, ThresholdChanged)]
    assert changes == [
        ThresholdChanged(before=0, threshold=5),
        ThresholdChanged(before=5, threshold=7),
    ]


def test_catching_up_counts_only_pools_in_rotation() -> None:
    scene = Scene("threshold", pools=2)
    scene.balancer.set_unpicked(scene.pools[0], 10)
    scene.balancer.set_failing(scene.pools[0], "down")
    scene.balancer.catch_up()
    assert scene.balancer.threshold == 0
    scene.balancer.set_well(scene.pools[0])
    scene.balancer.catch_up()
    assert scene.balancer.threshold == 5


def test_alpha_can_change_while_it_runs() -> None:
    scene = Scene("threshold", pools=2, alpha="0.6")
    scene.balancer.set_alpha("0.85", "asked")
    scene.balancer.set_alpha("0.85", "asked")

    assert scene.balancer.alpha == 0.85
    assert scene.events[-1] == AlphaChanged(before=0.6, alpha=0.85, reason="asked")
    assert sum(isinstance(event, AlphaChanged) for event in scene.events) == 1
    assert (Scene("jsq").balancer.alpha, Scene("jsq").balancer.threshold) == (None, None)


def test_a_report_that_fails_counts_no_session_out_twice() -> None:
    """The ledger is told, and a second close changes nothing."""

    def report(event: BalancerEvent) -> None:
        if isinstance(event, PoolGone):
            raise OSError("no space left")

    balancer = Balancer(
        RandomRouting(),
        name="random",
        choose=lambda items: items[0],
        clock=lambda: 0.0,
        slow_start=0,
        report=report,
    )
    pool, ledger = balancer.add(address(0), endpoint(0)), Seen()
    session = balancer.open(via=ledger)
    assert session is not None
    balancer.remove(address(0))
    with pytest.raises(OSError, match="no space left"):
        session.close()
    session.close()
    assert (pool.sessions, ledger.counts[pool]) == (0, 0)


def test_no_pool_is_forgotten_in_the_grace_after_a_restart() -> None:
    """Another gateway may still report sessions there."""
    now, events = 0.0, list[BalancerEvent]()
    balancer = Balancer(
        RandomRouting(),
        name="random",
        choose=lambda items: items[0],
        clock=lambda: now,
        slow_start=0,
        report=events.append,
        restart_grace=5.0,
    )
    pool = balancer.add(address(0), endpoint(0))
    balancer.remove(address(0))
    session = balancer.adopt(endpoint(0))
    assert session is not None
    session.close()
    balancer.set_unpicked(pool, 3)
    balancer.set_unpicked(pool, 0)
    balancer.tick()
    assert list(balancer.pools) == [pool]
    now = 5.0
    balancer.tick()
    assert list(balancer.pools) == []
    assert isinstance(events[-1], PoolGone)


def test_a_closed_session_stays_closed() -> None:
    scene = Scene("jsq", pools=2)
    ledger = Seen()
    session = scene.balancer.open(via=ledger)
    assert session is not None
    session.close()
    session.served_by(endpoint(1))
    assert scene.sessions() == [0, 0]
    assert scene.balancer.unpicked_total == 0
    session.close()
    assert scene.sessions() == [0, 0]
    assert ledger.counts.total() == 0
