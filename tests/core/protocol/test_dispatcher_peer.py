"""The dispatcher's side: members, tickets and their leases, request keys, terms."""

import gc
import random
import weakref
from statistics import pstdev
from typing import Any, cast

import pytest

from evenly.core import Color
from evenly.core.checks import MAX_NUMBER
from evenly.core.protocol import DispatcherPeer, Kind, Pick, PoolPeer, ToDispatcher, ToPool
from evenly.core.protocol.dispatcher_peer import MAX_TERM, TERM
from evenly.errors import InputError
from tests.core.protocol.support import LEASE, MEMORY, SILENCE, Net, net, peer
from tests.core.support import Watched, first, report


def test_a_pool_joins_with_its_first_heartbeat_and_gets_the_threshold() -> None:
    made = peer(3)
    pool = PoolPeer("a", incarnation=1)
    assert made.receive(0.0, pool.heartbeat()) == ToPool(3, TERM, TERM)
    assert made.members == ("a",)
    assert made.estimate("a") == 0


def test_a_pick_has_a_ticket_a_token_and_an_end() -> None:
    made = net(0, 2, threshold=2)
    made.now = 5.0
    assert made.pick() == Pick("a", TERM, 5.0 + LEASE, Color.GREEN, 2)
    assert made.pick() == Pick("a", TERM + 1, 5.0 + LEASE, Color.GREEN, 2)
    watched = Watched(0)
    assert made.pick(watched) == Pick("b", TERM, 5.0 + LEASE, Color.YELLOW, 2)
    assert watched.seen == [["b", "a"]]
    assert made.pick() == Pick("a", TERM + 2, 5.0 + LEASE, Color.YELLOW, 2)
    assert made.pick().color is None
    assert [len(made.dispatcher.open_tickets(pool)) for pool in "abz"] == [3, 2, 0]


def test_without_pools_there_is_no_pick_and_no_answer_to_repeat() -> None:
    made = peer()
    assert made.pick(0.0, first, "key") is None
    pool = PoolPeer("a", incarnation=1)
    made.receive(0.0, pool.heartbeat())
    assert made.pick(0.0, first, "key") is not None


def test_a_pick_takes_a_pool_with_the_smallest_estimate_whatever_the_tokens() -> None:
    for threshold in (0, 2, 3, 9):
        made = net(3, 2, 5, 2, 9, threshold=threshold)
        watched = Watched(0)
        for _ in range(5):
            made.pick(watched)
        assert [set(seen) for seen in watched.seen] == [{"b", "d"}, {"d"}, {"a", "b", "d"}, {"b", "d"}, {"b"}]


def test_the_threshold_moves_at_every_pick_and_the_pick_names_the_new_one() -> None:
    made = net(9, 9, 9, threshold=2, alpha="0.5")
    assert [made.pick().threshold for _ in range(7)] == [3, 4, 5, 6, 7, 8, 9]
    made = net(*[0] * 6, threshold=9, alpha="0.5")
    assert [made.pick().threshold for _ in range(3)] == [8, 7, 6]


def test_a_burst_is_level_and_the_threshold_follows_it() -> None:
    made = net(*[0] * 8, threshold=50, alpha="0.5")
    for _ in range(100):
        made.pick()
    assert sorted(made.estimate(pool) for pool in "abcdefgh") == [12] * 4 + [13] * 4
    assert made.dispatcher.threshold <= 14


def test_pools_that_cannot_take_a_task_do_not_count_in_the_rule() -> None:
    """Two full pools would keep their tokens under a higher threshold, and hold it at their capacity."""
    made = net(5, 5, 7, 7, 7, threshold=5, alpha="0.5")
    for pool in "ab":
        made.dispatcher.set_capacity(pool, 5)
    assert made.dispatcher.tokens == (0, 0)
    assert [made.pick().threshold for _ in range(2)] == [6, 7]
    made = net(0, 0, 7, 7, 7, threshold=5, alpha="0.5")
    made.dispatcher.drain("a")
    made.deliver(made.pools["b"].leave())
    assert made.dispatcher.tokens == (0, 0)
    assert [made.pick().threshold for _ in range(2)] == [6, 7]


def test_messages_that_come_twice_or_late_change_nothing() -> None:
    made = net(1, threshold=5)
    pool = made.pools["a"]
    early = pool.begin("x")
    late = pool.end("x")
    assert early is not None
    assert late is not None
    for message in (late, early, late):
        assert made.dispatcher.receive(0.0, message) is None
        assert made.estimate("a") == 1


def test_late_messages_do_not_keep_a_pool_alive() -> None:
    made = net(1)
    old = made.pools["a"].heartbeat()
    made.deliver(made.pools["a"].heartbeat())
    made.now = SILENCE - 1
    made.dispatcher.receive(made.now, old)
    made.dispatcher.tick(SILENCE)
    assert not made.dispatcher.members


def test_a_restarted_pool_starts_over_and_its_former_life_is_over() -> None:
    made = net(3)
    before = made.pools["a"]
    for _ in range(5):
        made.deliver(before.heartbeat())
    made.start("a", 1, incarnation=2)
    assert made.estimate("a") == 1
    made.dispatcher.receive(0.0, before.heartbeat())
    assert made.estimate("a") == 1


def test_a_restarted_pool_still_gets_the_clients_on_the_way() -> None:
    made = net(0, threshold=5)
    lost, coming = made.pick(), made.pick()
    made.arrive(lost)  # it dies before this is known
    made.start("a", incarnation=2)
    assert made.estimate("a") == 2
    made.land(coming)
    assert made.estimate("a") == 2
    made.now = LEASE
    made.dispatcher.tick(LEASE)
    assert made.estimate("a") == 1
    assert made.dispatcher.expired == 1


def test_a_ticket_closes_when_it_arrives() -> None:
    made = net(0, threshold=5)
    one, two = made.pick(), made.pick()
    made.land(two)
    assert made.dispatcher.open_tickets("a") == (one.ticket,)
    assert made.estimate("a") == 2
    made.land(one)
    assert made.dispatcher.open_tickets("a") == ()
    assert made.estimate("a") == 2
    made.now = LEASE
    made.dispatcher.tick(LEASE)
    assert made.estimate("a") == 2
    assert made.dispatcher.expired == 0


def test_a_pool_hears_from_which_ticket_on_it_must_remember() -> None:
    made = net(0, threshold=9)
    picks = [made.pick() for _ in range(4)]
    for pick in (picks[0], picks[1], picks[3]):
        made.land(pick)
    message = made.dispatcher.receive(0.0, made.pools["a"].heartbeat())
    assert message is not None
    assert message.oldest_ticket == picks[2].ticket
    made.pools["a"].receive(message)
    assert made.pools["a"].heartbeat().arrived == ((picks[3].ticket, picks[3].ticket),)
    made.land(picks[2])
    made.deliver(made.pools["a"].heartbeat())
    assert made.pools["a"].heartbeat().arrived == ()


def test_a_lease_expires_once_and_a_late_arrival_counts_once() -> None:
    made = net(0, threshold=5)
    pick = made.pick()
    made.now = LEASE - 0.5
    made.dispatcher.tick(made.now)
    assert made.estimate("a") == 1
    for made.now in (LEASE, LEASE, LEASE + 1):
        made.dispatcher.tick(made.now)
        assert made.estimate("a") == 0
        assert made.dispatcher.open_tickets("a") == ()
    assert made.dispatcher.expired == 1
    made.land(pick)
    assert made.estimate("a") == 1
    made.deliver(made.pools["a"].heartbeat())
    made.dispatcher.release(made.now, "a", pick.ticket)
    assert made.estimate("a") == 1


def test_leases_and_answers_end_one_by_one() -> None:
    made = net(0, threshold=9)
    early = made.pick(key="early")
    made.now = 5.0
    late = made.pick(key="late")
    made.dispatcher.tick(LEASE)
    assert made.dispatcher.open_tickets("a") == (late.ticket,)
    made.now = MEMORY
    assert made.pick(key="late") == late
    assert made.pick(key="early") != early
    assert made.dispatcher.expired == 2


def test_an_expired_place_is_free_for_the_next_pick() -> None:
    made = net(1, threshold=1)
    assert made.pick().color is Color.YELLOW
    made.now = LEASE
    assert made.pick().color is Color.YELLOW  # a pick looks at the clock first
    assert made.pick().color is None


def test_a_heartbeat_that_crosses_a_pick_does_not_hand_out_the_place_again() -> None:
    made = net(1, threshold=1)
    crossing = made.pools["a"].heartbeat()  # one task: there is room for one more
    pick = made.pick()
    assert pick.color is Color.YELLOW
    made.deliver(crossing)
    assert made.estimate("a") == 2
    assert made.pick().color is None
    made.land(pick)
    made.deliver(made.pools["a"].heartbeat())
    assert made.estimate("a") == 3  # the other pick is on the way


def test_a_client_that_will_not_come_gives_its_place_back() -> None:
    made = net(0, threshold=5)
    one, two = made.pick(), made.pick()
    for _ in range(2):
        made.dispatcher.release(0.0, "a", one.ticket)
        assert made.estimate("a") == 1
        assert made.dispatcher.open_tickets("a") == (two.ticket,)
    made.dispatcher.release(0.0, "b", two.ticket)
    made.dispatcher.release(0.0, "a", 12345)
    assert (made.dispatcher.released, made.dispatcher.expired) == (1, 0)  # once, and only at its own pool
    assert made.estimate("a") == 1
    made.dispatcher.tick(LEASE)
    assert made.estimate("a") == 0
    assert made.dispatcher.expired == 1


def test_a_refusal_gives_the_place_back_at_once() -> None:
    made = Net(peer(5))
    made.start("a", 2, capacity=2)
    pick = made.pick()
    assert made.estimate("a") == 3
    made.deliver(made.pools["a"].refuse(pick.ticket))
    assert made.estimate("a") == 2
    assert made.dispatcher.open_tickets("a") == ()


def test_a_pool_that_leaves_gets_no_picks_until_it_returns() -> None:
    made = net(0, 0, threshold=5)
    pick = made.pick()
    assert pick.pool == "a"
    made.deliver(made.pools["a"].leave())
    assert made.dispatcher.members == ("b",)
    assert {made.pick().pool for _ in range(5)} == {"b"}
    made.deliver(made.arrive(pick))  # its clients on the way arrive, and its sessions end
    made.deliver(made.pools["a"].end(made.sessions))
    assert made.dispatcher.members == ("b",)
    made.deliver(made.pools["a"].heartbeat())
    assert made.pick().pool == "a"


def test_a_leave_that_is_lost_or_overtaken_is_repeated_by_what_follows() -> None:
    made = net(1, 0, threshold=5)
    lost = made.pools["a"].leave()
    made.deliver(made.pools["a"].end(("old", 0)))
    assert made.dispatcher.members == ("b",)
    made.deliver(lost)
    assert made.dispatcher.members == ("b",)


def test_clients_on_the_way_to_a_pool_that_left_count_when_it_returns() -> None:
    made = net(0, threshold=5)
    made.pick()
    made.deliver(made.pools["a"].leave())
    made.deliver(made.pools["a"].heartbeat())
    assert made.estimate("a") == 1
    made.deliver(made.pools["a"].leave())
    made.dispatcher.tick(LEASE)
    assert made.dispatcher.expired == 1
    made.deliver(made.pools["a"].heartbeat())
    assert made.estimate("a") == 0


def test_a_silent_pool_is_taken_out_and_returns_with_its_next_message() -> None:
    made = net(1, 1, threshold=5)
    made.now = 1.0
    made.deliver(made.pools["b"].heartbeat())
    made.dispatcher.tick(SILENCE - 0.5)
    assert made.dispatcher.members == ("a", "b")
    made.dispatcher.tick(SILENCE)
    assert set(made.dispatcher.members) == {"b"}
    made.now = SILENCE + 0.5
    made.deliver(made.pools["a"].begin("x"))
    assert set(made.dispatcher.members) == {"a", "b"}
    assert made.estimate("a") == 2
    made.dispatcher.tick(SILENCE + 1.0)
    assert set(made.dispatcher.members) == {"a"}


def test_any_message_keeps_a_pool_alive() -> None:
    made = net(1, threshold=5)
    for turn in range(1, 4):
        made.now = turn * (SILENCE - 1)
        made.deliver(made.pools["a"].begin(turn))
        assert made.dispatcher.members == ("a",)


def test_a_silent_pool_with_clients_on_the_way_is_remembered_until_they_expire() -> None:
    made = net(0, threshold=5, lease=2 * SILENCE)
    pool = made.pools["a"]
    made.now = SILENCE - 1
    pick = made.pick()
    old = pool.heartbeat()
    made.deliver(pool.heartbeat())
    made.now += SILENCE
    made.dispatcher.tick(made.now)
    assert not made.dispatcher.members
    assert made.dispatcher.open_tickets("a") == (pick.ticket,)
    made.dispatcher.receive(made.now, old)
    assert not made.dispatcher.members
    made.now += 2 * SILENCE
    made.dispatcher.tick(made.now)
    assert made.dispatcher.expired == 1
    assert made.dispatcher.open_tickets("a") == ()
    made.dispatcher.receive(made.now, old)  # forgotten: its sequence numbers, too
    assert made.dispatcher.members == ("a",)


def test_tickets_are_never_used_again_after_a_pool_was_forgotten() -> None:
    made = net(0, 0, threshold=9)
    used = {made.pick().ticket for _ in range(5)}
    made.now = SILENCE + LEASE
    made.dispatcher.tick(made.now)
    made.dispatcher.tick(made.now + LEASE)
    made.start("a", incarnation=2)
    made.start("c")
    for _ in range(3):
        assert made.pick(lambda pools: pools[-1]).ticket not in used
        assert made.pick().ticket not in used


def test_what_is_over_is_forgotten() -> None:
    class Name:
        pass

    made, pool, key = Net(peer(5)), Name(), Name()
    made.start(pool)
    made.pick(key=key)
    references = [weakref.ref(pool), weakref.ref(key)]
    del pool, key
    made.pools.clear()
    for now in (SILENCE, SILENCE + LEASE, SILENCE + MEMORY + LEASE):
        made.dispatcher.tick(now)
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def test_the_same_key_gets_the_same_answer_while_it_is_kept() -> None:
    made = net(0, 0, threshold=5)
    pick = made.pick(key="k")
    for made.now in (0.0, LEASE, MEMORY - 0.5):
        assert made.pick(lambda pools: pools[-1], key="k") == pick
    assert made.estimate("a") == 0  # one place, which expired
    made.now = MEMORY
    made.deliver(made.pools["a"].heartbeat())
    again = made.pick(key="k")
    assert again != pick
    assert made.pick(key="k") == again
    assert made.pick(key="other") != again
    assert made.pick() != made.pick()


def test_a_new_term_uses_no_ticket_again_and_its_thresholds_are_newer() -> None:
    made = net(0, 9, threshold=5)
    tickets = {made.pick().ticket for _ in range(3)}
    for pool in made.pools.values():  # they know tickets and thresholds that the dispatcher has forgotten
        pool.receive(ToPool(77, TERM + 1000, 0))
    made.dispatcher.begin_term(2)
    assert (made.dispatcher.term, made.dispatcher.threshold) == (2, 5)
    assert made.estimate("a") == 3
    for pool in made.pools.values():
        made.deliver(pool.heartbeat())
    assert {pool.threshold for pool in made.pools.values()} == {5}
    later = {made.pick().ticket for _ in range(3)}
    assert min(later) == 2 * TERM
    assert tickets.isdisjoint(later)
    made.start("c")
    assert made.dispatcher.pick(0.0, lambda pools: pools[-1]) is not None
    assert min(made.dispatcher.open_tickets("c")) >= 2 * TERM
    made.now = LEASE
    made.dispatcher.tick(LEASE)
    assert made.estimate("a") == 0


def test_old_tickets_keep_their_places_in_a_new_term() -> None:
    made = net(0, threshold=5)
    pick = made.pick()
    made.dispatcher.begin_term(9)
    assert made.dispatcher.open_tickets("a") == (pick.ticket,)
    made.land(pick)
    assert made.dispatcher.open_tickets("a") == ()
    assert made.estimate("a") == 1


def test_a_pool_that_joins_in_a_new_term_gets_its_tickets() -> None:
    made = net(0, threshold=5)
    made.dispatcher.begin_term(2)
    made.start("b")
    assert made.pick(lambda pools: pools[-1]) == Pick("b", 2 * TERM, LEASE, Color.GREEN, 5)
    with pytest.raises(InputError, match="term must be a whole number from 3 to"):
        made.dispatcher.begin_term(2)


def test_the_numbers_of_all_terms_are_apart_and_fit_into_64_bits() -> None:
    # A term can be a time in seconds, and a pool can get a thousand tickets a second for weeks.
    assert (MAX_TERM, TERM) == (2**31 - 1, 2**32)
    assert (MAX_TERM + 1) * TERM - 1 == MAX_NUMBER


def test_the_threshold_starts_at_zero_by_default() -> None:
    assert DispatcherPeer(term=1, lease=1.0, silence=1.0, memory=1.0).threshold == 0


def test_terms_only_grow() -> None:
    made = peer(term=5)
    for term in (5, 4, 0, MAX_TERM + 1, "6"):
        with pytest.raises(InputError, match="term must be a whole number from 6 to"):
            made.begin_term(term)  # type: ignore[arg-type]
    assert made.term == 5
    made.begin_term(MAX_TERM)
    assert made.term == MAX_TERM


def test_times_must_be_positive() -> None:
    times: dict[str, Any]
    for times in ({"lease": 0}, {"silence": -1}, {"memory": float("inf")}):
        with pytest.raises(InputError, match=f"{next(iter(times))} must be a positive number"):
            peer(**times)


def test_a_term_is_a_number() -> None:
    for term in (0, MAX_TERM + 1, 1.5):
        with pytest.raises(InputError, match="term must be a whole number from 1 to"):
            peer(term=term)


def test_time_that_goes_back_stands_still() -> None:
    made = net(0, threshold=5)
    made.now = 100.0
    made.deliver(made.pools["a"].heartbeat())
    made.now = 3.0
    pick = made.pick(key="k")
    assert pick.expires == 100.0 + LEASE
    made.dispatcher.tick(50.0)
    assert made.estimate("a") == 1
    assert made.pick(key="k") == pick
    made.dispatcher.tick(100.0 + LEASE)
    assert made.estimate("a") == 0


def test_the_highest_threshold_is_the_dispatchers() -> None:
    made = net(9, 9, threshold=2, alpha="0.5", highest=2)
    made.pick()
    assert made.dispatcher.threshold == 2


def test_a_leave_from_a_stranger_is_remembered_but_not_more() -> None:
    made = peer()
    pool = PoolPeer("a", incarnation=1)
    token, leave = pool.heartbeat(), pool.leave()
    assert made.receive(0.0, leave) is None
    made.receive(0.0, token)
    assert not made.members
    made.tick(SILENCE)
    made.receive(SILENCE, ToDispatcher(Kind.HEARTBEAT, 0, 1, report("a", 0), 0, ()))
    assert made.members == ("a",)


def test_small_pools_do_not_hold_the_threshold_of_the_others() -> None:
    """20 pools at load 10.5, two of them with room for 5. While these counted, the others had a spread of 2.9.

    Equal pools have 0.52. The others have a load of (210 - 10) / 18, and 50 mean task times give the bound room.
    """
    made, rng = Net(peer(0, "0.65")), random.Random(3)
    for pool in range(20):
        made.dispatcher.set_capacity(pool, 5 if pool < 2 else None)
        made.start(pool, capacity=5 if pool < 2 else None)
    busy: list[tuple[int, int]] = []
    area = measured = 0.0
    while made.now < 70.0:
        step = rng.expovariate(210 + len(busy))
        if made.now > 20.0:
            area += step * pstdev([made.pools[pool].tasks for pool in range(2, 20)])
            measured += step
        made.now += step
        if rng.random() * (210 + len(busy)) < 210:
            pick = made.pick(rng.choice)
            made.arrive(pick)
            busy.append((cast(int, pick.pool), made.sessions))
        else:
            place = rng.randrange(len(busy))
            (pool, session), busy[place] = busy[place], busy[-1]
            busy.pop()
            made.deliver(made.pools[pool].end(session))
    assert made.dispatcher.threshold >= 10
    assert area / measured < 0.65
