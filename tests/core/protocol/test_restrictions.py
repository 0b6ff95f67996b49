"""Pools that must not be picked: excluded, full or draining ones. And picks for several tasks at once."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenly.core import Color
from evenly.core.protocol import KeyReusedError, Pick, PoolPeer, TooManyPicksError, dispatcher_peer
from evenly.core.protocol.answers import MAX_ANSWERS, Answers
from evenly.core.protocol.dispatcher_peer import MAX_PICKS, MAX_TERM, TERM
from evenly.core.protocol.records import MAX_POOLS
from evenly.errors import InputError
from tests.core.protocol.support import LEASE, SILENCE, Net, net, peer
from tests.core.support import first

POOLS = ("a", "b", "c", "d")


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=4),
    st.sets(st.sampled_from(POOLS)),
    st.dictionaries(st.sampled_from(POOLS), st.integers(1, 5)),
    st.sets(st.sampled_from(POOLS)),
    st.integers(0, 5),
    st.randoms(use_true_random=False),
)
def test_a_pick_takes_a_pool_with_the_fewest_tasks_of_those_that_are_left(
    tasks: list[int],
    exclude: set[str],
    capacities: dict[str, int],
    draining: set[str],
    threshold: int,
    chance: random.Random,
) -> None:
    fleet = net(*tasks, threshold=threshold)
    counts = dict(zip(POOLS, tasks, strict=False))
    for pool, capacity in capacities.items():
        fleet.dispatcher.set_capacity(pool, capacity)
    for pool in draining:
        fleet.dispatcher.drain(pool)
    full = {pool for pool in counts if counts[pool] >= capacities.get(pool, 10**9)}
    left = {pool: counts[pool] for pool in counts if pool not in exclude | draining | full}
    pick = fleet.dispatcher.pick(1.0, chance.choice, exclude=exclude)
    if not left:
        assert pick is None
        return
    assert pick is not None
    fewest = min(left.values())
    assert left[str(pick.pool)] == fewest
    assert pick.color is (Color.GREEN if fewest < threshold else Color.YELLOW if fewest == threshold else None)


def test_every_pool_that_is_left_is_equally_likely() -> None:
    """Ten pools, two excluded, one full. A chi-square with six degrees of freedom exceeds 41 once in 10^6."""
    fleet = Net(peer(100))
    for number in range(10):
        fleet.start(number)
    fleet.dispatcher.set_capacity(9, 1)
    fleet.dispatcher.pick(0.0, lambda pools: pools[-1])  # pool 9 is full
    chance, counts = random.Random(20), dict.fromkeys(range(2, 9), 0)
    trials = 7000
    for _ in range(trials):
        pick = fleet.dispatcher.pick(0.0, chance.choice, exclude=[0, 1])
        assert isinstance(pick, Pick)
        counts[pick.pool] += 1  # type: ignore[index]
        fleet.dispatcher.release(0.0, pick.pool, pick.ticket)
    expected = trials / len(counts)
    assert sum((count - expected) ** 2 / expected for count in counts.values()) < 41


def test_a_pool_is_full_with_the_picks_on_the_way() -> None:
    fleet = net(1)
    fleet.dispatcher.set_capacity("a", 2)
    pick = fleet.dispatcher.pick(0.0, first)
    assert pick is not None
    assert fleet.dispatcher.pick(0.0, first) is None
    assert [known.full for known in fleet.dispatcher.known_pools()] == [True]
    fleet.dispatcher.release(0.0, "a", pick.ticket)
    assert fleet.dispatcher.pick(0.0, first) is not None
    assert fleet.dispatcher.pick(LEASE + 1, first) is not None  # the lease has ended
    fleet.dispatcher.set_capacity("a", 3)
    assert fleet.dispatcher.pick(LEASE + 1, first) is not None
    fleet.dispatcher.set_capacity("a", None)
    assert fleet.dispatcher.pick_many(LEASE + 1, first, 50)


def test_a_drained_pool_stays_drained_until_the_operator_takes_it_back() -> None:
    fleet = net(0, 0)
    fleet.dispatcher.drain("a")
    fleet.deliver(fleet.pools["a"].heartbeat())
    assert {fleet.dispatcher.pick(1.0, first).pool for _ in range(5)} == {"b"}  # type: ignore[union-attr]
    known = {each.pool: each for each in fleet.dispatcher.known_pools()}
    assert (known["a"].draining, known["a"].member, known["b"].draining) == (True, False, False)
    fleet.start("a", incarnation=2)  # it restarts
    assert fleet.dispatcher.pick(1.0, first, exclude=["b"]) is None
    fleet.dispatcher.undrain("a")
    assert fleet.dispatcher.pick(1.0, first, exclude=["b"]) is not None


def test_a_drain_outlasts_the_memory_of_the_pool_and_undrain_does_not_revive_the_dead() -> None:
    fleet = net(0)
    pick = fleet.dispatcher.pick(SILENCE - 1, first)
    assert pick is not None
    fleet.dispatcher.drain("a")
    fleet.dispatcher.tick(SILENCE + 1)  # silent, but a client is on its way
    fleet.dispatcher.undrain("a")
    assert fleet.dispatcher.pick(SILENCE + 1, first) is None
    fleet.dispatcher.drain("a")
    fleet.dispatcher.tick(5 * SILENCE)
    assert not list(fleet.dispatcher.known_pools())
    fleet.now = 5 * SILENCE
    fleet.start("a", incarnation=2)
    assert fleet.dispatcher.pick(5 * SILENCE, first) is None


def test_a_draining_pool_hears_of_the_threshold_with_its_heartbeats() -> None:
    fleet = net(3, 3, 3, threshold=2, alpha="0.5")
    fleet.dispatcher.drain("a")
    fleet.dispatcher.pick(1.0, first)
    assert fleet.pools["a"].threshold == 2
    fleet.deliver(fleet.pools["a"].heartbeat())
    assert fleet.pools["a"].threshold == 3


@given(st.integers(1, 12), st.integers(1, 4))
def test_several_picks_are_all_or_none(count: int, capacity: int) -> None:
    fleet = net(0, 0)
    for pool in ("a", "b"):
        fleet.dispatcher.set_capacity(pool, capacity)
    picks = fleet.dispatcher.pick_many(0.0, random.Random(1).choice, count)
    assert len(picks) == (count if count <= 2 * capacity else 0)
    assert len({(pick.pool, pick.ticket) for pick in picks}) == len(picks)
    assert fleet.estimate("a") + fleet.estimate("b") == len(picks)
    assert (fleet.dispatcher.expired, fleet.dispatcher.released) == (0, 0)


def test_a_request_that_gets_nothing_leaves_the_threshold() -> None:
    fleet = net(0, 0, threshold=0, alpha="0.5")
    for pool in ("a", "b"):
        fleet.dispatcher.set_capacity(pool, 3)
    assert fleet.dispatcher.pick_many(0.0, first, 7) == ()
    assert fleet.dispatcher.threshold == 0
    assert fleet.dispatcher.pick_many(0.0, first, 6)[-1].threshold == fleet.dispatcher.threshold > 0


def test_a_key_belongs_to_one_request() -> None:
    fleet = net(0, 0)
    picks = fleet.dispatcher.pick_many(0.0, first, 2, "key", ["b"])
    assert fleet.dispatcher.pick_many(1.0, first, 2, "key", ["b"]) == picks
    for count, exclude in ((1, ["b"]), (2, ["a"]), (2, [])):
        with pytest.raises(KeyReusedError, match="different request"):
            fleet.dispatcher.pick_many(1.0, first, count, "key", exclude)
    assert fleet.estimate("a") == 2


def test_the_number_of_picks_is_checked() -> None:
    for count in (0, MAX_PICKS + 1):
        with pytest.raises(InputError, match="count must be"):
            net(0).dispatcher.pick_many(0.0, first, count)


def test_answers_are_bounded_and_the_oldest_goes_first() -> None:
    answers, request = Answers(10.0), (1, frozenset[object]())
    for number in range(MAX_ANSWERS + 1):
        answers.remember(0.0, number, request, ())
    assert len(answers) == MAX_ANSWERS
    assert answers.find(0, request) is None
    assert answers.find(1, request) == ()
    answers.forget(10.0)
    assert len(answers) == 0


def test_the_number_of_pools_is_limited() -> None:
    fleet = Net(peer())
    for number in range(MAX_POOLS):
        fleet.start(number)
        fleet.dispatcher.drain(number)
        fleet.dispatcher.set_capacity(number, 5)
    with pytest.raises(InputError, match="at most 10000 pools"):
        fleet.start("one more")
    with pytest.raises(InputError, match="at most 10000 pools"):
        fleet.dispatcher.drain("one more")
    with pytest.raises(InputError, match="at most 10000 pools"):
        fleet.dispatcher.set_capacity("one more", 5)
    fleet.dispatcher.drain(0)  # known ones are fine
    fleet.dispatcher.set_capacity(0, 6)


def test_a_capacity_is_set_before_the_first_message_even_of_a_pool_that_is_being_forgotten() -> None:
    fleet = net(0)
    fleet.dispatcher.set_capacity("a", 1)  # it connects again after a long silence
    fleet.now = 2 * SILENCE
    fleet.deliver(fleet.pools["a"].heartbeat())
    assert fleet.dispatcher.pick(2 * SILENCE, first) is not None
    assert fleet.dispatcher.pick(2 * SILENCE, first) is None


def test_capacities_of_pools_that_are_gone_make_room() -> None:
    fleet = net(0)
    for number in range(MAX_POOLS):
        fleet.dispatcher.set_capacity(number, 5)
    fleet.dispatcher.set_capacity("a", 1)
    fleet.dispatcher.set_capacity("b", 1)
    fleet.deliver(fleet.pools["a"].heartbeat())
    assert fleet.dispatcher.pick(0.0, first) is not None
    assert fleet.dispatcher.pick(0.0, first) is None


def test_a_broken_connection_shortens_the_wait() -> None:
    fleet = net(0, 0)
    fleet.dispatcher.disconnect(1.0, "a", 2.0)
    fleet.dispatcher.tick(2.9)
    assert "a" in fleet.dispatcher.members
    fleet.dispatcher.tick(3.0)
    assert fleet.dispatcher.members == ("b",)
    fleet.now = 4.0
    fleet.start("a", incarnation=2)
    fleet.dispatcher.disconnect(4.0, "a", 2.0)
    fleet.now = 5.0
    fleet.deliver(fleet.pools["a"].heartbeat())  # over another connection
    fleet.dispatcher.tick(6.5)
    assert "a" in fleet.dispatcher.members
    fleet.dispatcher.disconnect(6.5, "unknown", 2.0)


def test_a_broken_connection_never_lengthens_the_wait() -> None:
    fleet = net(0)
    fleet.dispatcher.disconnect(SILENCE - 1, "a", 20.0)
    fleet.dispatcher.tick(SILENCE)
    assert not fleet.dispatcher.members


def test_a_start_against_busy_pools_catches_up() -> None:
    """With the median: a pool that reports nonsense cannot raise the threshold beyond reason."""
    fleet = net(7, 8, 9, 10**6, threshold=0, alpha="0.5")
    fleet.dispatcher.catch_up()
    assert fleet.dispatcher.threshold == 8
    assert fleet.dispatcher.tokens == (1, 2)
    for made in (net(threshold=2, alpha="0.5"), net(9, threshold=2), net(1, threshold=2, alpha="0.5")):
        made.dispatcher.catch_up()
        assert made.dispatcher.threshold == 2


@pytest.mark.parametrize("behind", [0, 1, 5])
def test_a_pool_that_knows_tickets_of_a_later_term_begins_one(behind: int) -> None:
    """The dispatcher's clock went back, or its store forgot: its numbers would be used twice."""
    before = Net(peer(3, term=7))
    pool = before.start("a", 4)
    before.land(before.pick())
    after = Net(peer(2, term=7 - behind))
    after.pools["a"] = pool
    after.deliver(pool.heartbeat())
    assert after.dispatcher.term == 8
    assert after.pick().ticket == 8 * TERM
    after.deliver(pool.heartbeat())
    assert pool.threshold == 2
    assert len(after.dispatcher.open_tickets("a")) == 1


def test_the_last_term_cannot_be_left() -> None:
    before = Net(peer(term=MAX_TERM))
    pool = before.start("a")
    before.land(before.pick())
    after = Net(peer(term=MAX_TERM))
    after.pools["a"] = pool
    after.deliver(pool.heartbeat())
    assert after.dispatcher.term == MAX_TERM


def test_a_pool_that_claims_the_last_ticket_does_not_end_the_numbers() -> None:
    fleet = net(0)
    liar = fleet.pools["liar"] = PoolPeer("liar", incarnation=1)
    liar.refuse(2**63 - 2, 5)
    fleet.dispatcher.receive(0.0, liar.heartbeat())
    assert fleet.dispatcher.term == 1
    assert all(fleet.pick().ticket < 2 * TERM for _ in range(3))


def test_picks_within_one_lease_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher_peer, "MAX_PLACES", 3)
    fleet = net(0)
    first_pick = fleet.dispatcher.pick(0.0, first, key="k")
    assert fleet.dispatcher.pick(1.0, first, key="k") == first_pick
    assert len(fleet.dispatcher.pick_many(1.0, first, 2)) == 2
    with pytest.raises(TooManyPicksError, match="within one lease"):
        fleet.dispatcher.pick(2.0, first)
    assert fleet.dispatcher.pick(LEASE, first) is not None


def test_requests_that_get_nothing_do_not_use_up_the_picks_of_a_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take places one by one, and give them back when there are too few."""
    monkeypatch.setattr(dispatcher_peer, "MAX_PLACES", 3)
    fleet = net(0)
    fleet.dispatcher.set_capacity("a", 2)
    for _ in range(5):
        assert fleet.dispatcher.pick_many(0.0, first, 3) == ()
    assert len(fleet.dispatcher.pick_many(0.0, first, 2)) == 2
    fleet.dispatcher.tick(LEASE)
    assert (fleet.dispatcher.open_tickets("a"), fleet.dispatcher.expired) == ((), 2)
