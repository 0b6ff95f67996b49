"""What sets each baseline apart: the pools it picks, and its messages."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenly.core import (
    JoinBelowThreshold,
    JoinIdleQueue,
    JoinShortestQueue,
    MessageCount,
    Policy,
    PowerOfD,
    Pull,
    RandomRouting,
    RoundRobin,
)
from tests.core.support import Watched, choice, filled, first, loads, ordered

HISTORY = st.lists(st.tuples(st.sampled_from(["arrive", "arrive", "depart", "join", "leave"]), st.integers(0, 99)))


@settings(max_examples=150)
@given(HISTORY)
def test_jsq_chooses_among_exactly_the_least_loaded(history: list[tuple[str, int]]) -> None:
    policy, joined, departures = JoinShortestQueue(), 0, 0
    for event, index in history:
        counts = loads(policy)
        busy = [pool for pool, count in counts.items() if count]
        if event == "join":
            policy.join(joined, index % 4)
            joined += 1
        elif event == "leave" and counts:
            policy.leave(policy.pools[index % len(counts)])
        elif event == "depart" and busy:
            policy.depart(busy[index % len(busy)])
            departures += 1
        elif event == "arrive" and counts:
            watched = Watched(index)
            policy.arrive(watched)
            least = min(counts.values())
            assert ordered(watched.seen[0]) == ordered(p for p, count in counts.items() if count == least)
        assert policy.messages == MessageCount(other=departures)


def test_jsq_follows_pools_that_leave_and_join() -> None:
    policy = JoinShortestQueue()
    filled(policy, [1, 4, 4])
    policy.leave(0)
    assert policy.arrive(first) == 1
    policy.join(0, 3)
    assert policy.arrive(first) == 0
    for pool in (0, 1, 2):
        policy.leave(pool)
    policy.join("a", 2)
    assert policy.arrive(first) == "a"


def test_jsq_forgets_the_levels_that_a_pool_has_left() -> None:
    policy, watched = JoinShortestQueue(), Watched()
    filled(policy, [2, 2])
    policy.depart(0)
    policy.arrive(first)
    policy.depart(0)
    policy.leave(0)
    policy.arrive(watched)
    assert watched.seen == [[1]]


def test_jsq_loses_a_task_only_when_all_are_full() -> None:
    policy, choose = JoinShortestQueue(capacity=2), choice(1)
    filled(policy, [2, 0, 1])
    assert None not in [policy.arrive(choose) for _ in range(3)]
    assert policy.arrive(choose) is None
    assert loads(policy) == {0: 2, 1: 2, 2: 2}


@settings(max_examples=150)
@given(
    choices=st.integers(1, 6),
    tasks=st.lists(st.integers(0, 3), min_size=1, max_size=8),
    indices=st.lists(st.integers(0, 99), max_size=20),
)
def test_power_of_d_takes_the_first_least_of_distinct_pools(
    choices: int, tasks: list[int], indices: list[int]
) -> None:
    policy = PowerOfD(choices)
    filled(policy, tasks)
    sampled_so_far = 0
    for index in indices:
        before, watched = loads(policy), Watched(index)
        picked = policy.arrive(watched)
        sampled = [candidates[index % len(candidates)] for candidates in watched.seen]
        assert len(sampled) == min(choices, len(tasks)) == len(set(sampled))
        for turn, candidates in enumerate(watched.seen):  # each time all pools not sampled yet
            assert ordered(candidates) == ordered(set(before) - set(sampled[:turn]))
        assert picked == min(sampled, key=before.__getitem__)
        sampled_so_far += len(sampled)
        assert policy.messages == MessageCount(other=2 * sampled_so_far)
    assert ordered(policy.pools) == list(range(len(tasks)))


def test_power_of_d_loses_the_task_if_the_winner_is_full() -> None:
    policy = PowerOfD(2, capacity=1)
    filled(policy, [1, 0, 1])
    assert policy.arrive(first) is None  # samples pool 0; pool 2 takes its place, and is sampled next
    assert policy.messages.other == 4


def test_random_routing_sends_no_messages() -> None:
    policy, watched = RandomRouting(), Watched(7)
    filled(policy, [0, 5, 9])
    assert policy.arrive(watched) == 1
    assert watched.seen == [[0, 1, 2]]
    policy.depart(2)
    assert policy.messages == MessageCount()


def turns(policy: Policy, count: int) -> list[object]:
    return [policy.arrive(Watched()) for _ in range(count)]


def test_round_robin_follows_the_order_of_joining_and_never_chooses() -> None:
    policy, watched = RoundRobin(), Watched()
    filled(policy, [3, 0, 7])
    assert [policy.arrive(watched) for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]
    assert watched.seen == []
    policy.depart(0)
    assert policy.messages == MessageCount()


@pytest.mark.parametrize(
    ("leaver", "rest"),
    [(0, [2, 3, 4, 1, 2]), (1, [2, 3, 4, 0, 2]), (2, [3, 4, 0, 1, 3]), (4, [2, 3, 0, 1, 2])],
)
def test_round_robin_keeps_its_order_when_a_pool_leaves(leaver: int, rest: list[int]) -> None:
    policy = RoundRobin()
    filled(policy, [0] * 5)
    assert turns(policy, 2) == [0, 1]
    policy.leave(leaver)
    assert turns(policy, 5) == rest


def test_a_new_pool_waits_a_full_round_under_round_robin() -> None:
    policy = RoundRobin()
    filled(policy, [0] * 3)
    assert turns(policy, 2) == [0, 1]
    policy.join(3)
    assert turns(policy, 5) == [2, 0, 1, 3, 2]


def test_a_lost_task_uses_up_the_turn_under_round_robin() -> None:
    policy = RoundRobin(capacity=2)
    filled(policy, [2, 0])
    assert turns(policy, 5) == [None, 1, None, 1, None]


@pytest.mark.parametrize(("make", "threshold"), [(JoinIdleQueue, 1), (lambda: JoinBelowThreshold(3), 3)])
@settings(max_examples=100)
@given(history=HISTORY)
def test_pools_below_the_threshold_have_tokens(
    make: Callable[[], Policy], threshold: int, history: list[tuple[str, int]]
) -> None:
    policy, joined, expected = make(), 0, MessageCount()
    for event, index in history:
        counts = loads(policy)
        below = [pool for pool, count in counts.items() if count < threshold]
        busy = [pool for pool, count in counts.items() if count]
        if event == "join":
            policy.join(joined, index % 5)
            joined += 1
            expected.resync += index % 5 < threshold
        elif event == "leave" and counts:
            policy.leave(policy.pools[index % len(counts)])
        elif event == "depart" and busy:
            policy.depart(busy[index % len(busy)])
            expected.green += counts[busy[index % len(busy)]] == threshold
        elif event == "arrive" and counts:
            watched = Watched(index)
            picked = policy.arrive(watched)
            assert ordered(watched.seen[0]) == ordered(below or counts)
            assert picked is not None
            expected.green += counts[picked] + 1 < threshold
        assert policy.messages == expected


def test_jbt_discards_the_token_of_a_task_that_was_not_picked() -> None:
    policy, watched = JoinBelowThreshold(2), Watched()
    filled(policy, [1, 0, 0])
    policy.record_arrival(0)  # now at the threshold
    policy.record_arrival(1)  # still below it: the new token comes last
    assert policy.messages == MessageCount(resync=3, green=1)
    policy.arrive(watched)
    assert watched.seen == [[2, 1]]


def test_jbt_uses_the_token_and_appends_the_new_one() -> None:
    policy, watched = JoinBelowThreshold(2), Watched()
    filled(policy, [0, 1, 0])
    assert [policy.arrive(watched) for _ in range(3)] == [0, 2, 0]
    assert watched.seen == [[0, 1, 2], [2, 1, 0], [0, 1, 2]]


def test_pull_has_one_token_per_free_slot() -> None:
    policy, watched = Pull(3), Watched(1)
    policy.join("a", 1)
    policy.join("b", 2)
    assert policy.messages == MessageCount(resync=3)
    assert policy.arrive(watched) == "a"
    assert watched.seen[-1] == [("a", 1), ("a", 2), ("b", 2)]
    assert policy.arrive(watched) == "b"
    assert watched.seen[-1] == [("a", 1), ("b", 2)]
    policy.depart("a")  # the slot used last is freed first
    policy.depart("b")
    policy.depart("b")
    assert policy.messages == MessageCount(green=3, resync=3)
    policy.arrive(watched)
    assert watched.seen[-1] == [("a", 1), ("a", 2), ("b", 2), ("b", 1)]


def test_pull_gives_the_first_free_slot_to_a_task_that_was_not_picked() -> None:
    policy, watched = Pull(4), Watched(2)
    policy.join("a", 1)
    policy.arrive(watched)
    policy.record_arrival("a")
    policy.arrive(watched)
    assert watched.seen == [[("a", 1), ("a", 2), ("a", 3)], [("a", 2)]]
    policy.depart("a")
    policy.depart("a")
    policy.arrive(watched)
    assert watched.seen[-1] == [("a", 2), ("a", 1)]


def test_pull_loses_a_task_without_choosing_when_no_slot_is_free() -> None:
    policy, watched = Pull(1), Watched()
    filled(policy, [1, 1])
    assert policy.arrive(watched) is None
    assert watched.seen == []


def test_pull_forgets_the_slots_of_a_pool_that_left() -> None:
    policy, watched = Pull(2), Watched()
    filled(policy, [1, 0, 2])
    policy.leave(1)
    assert policy.arrive(watched) == 0
    assert watched.seen == [[(0, 1)]]
    policy.join(1, 1)
    assert policy.arrive(watched) == 1
    assert watched.seen[-1] == [(1, 1)]


@settings(max_examples=100)
@given(HISTORY)
def test_pull_offers_exactly_the_free_slots(history: list[tuple[str, int]]) -> None:
    policy, joined = Pull(4), 0
    for event, index in history:
        counts = loads(policy)
        busy = [pool for pool, count in counts.items() if count]
        if event == "join":
            policy.join(joined, index % 5)
            joined += 1
        elif event == "leave" and counts:
            policy.leave(policy.pools[index % len(counts)])
        elif event == "depart" and busy:
            policy.depart(busy[index % len(busy)])
        elif event == "arrive":
            watched = Watched(index)
            policy.arrive(watched)
            free = [pool for pool, count in counts.items() for _ in range(4 - count)]
            offered = watched.seen[0] if watched.seen else []
            assert ordered(pool for pool, _ in offered) == ordered(free)
            assert len(set(offered)) == len(offered)
