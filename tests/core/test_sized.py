"""Policies for pools of different sizes: with one size, they decide as the policies for equal pools do."""

import random
from dataclasses import astuple
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenly.core import (
    GreedyUtility,
    JoinShortestQueue,
    LearningRule,
    Policy,
    RoundRobin,
    ThresholdPolicy,
    UtilityThreshold,
    WeightedLeast,
    WeightedRoundRobin,
    make_policy,
)
from evenly.core.cut import Bounds, Cut
from evenly.core.utility_threshold import SizedDispatcher
from evenly.errors import InputError
from evenly.workload.pools import UTILITIES, find_utility
from tests.core.support import Watched, choice, first, loads

EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["arrive"] * 5 + ["depart"] * 4 + ["join", "leave", "place"]),
        st.integers(0, 999),
        st.integers(0, 4),
    ),
    max_size=120,
)
utilities = st.sampled_from(sorted(UTILITIES))
size_lists = st.lists(st.sampled_from([0.5, 1.0, 2.0, 3.0, 4.0, 7.5]), min_size=1, max_size=6)


def play(policy: Policy, event: tuple[str, int, int], joined: int, more: dict[str, Any]) -> object:
    """Apply one event, and return what can be seen of it."""
    kind, index, tasks = event
    counts = {pool: policy.tasks(pool) for pool in policy.pools}
    names = sorted(counts, key=str)
    busy = [pool for pool in names if counts[pool]]
    if kind == "join":
        policy.join(joined, tasks, **more)
    elif kind == "leave" and names:
        policy.leave(names[index % len(names)])
    elif kind == "place" and names:
        policy.record_arrival(names[index % len(names)])
    elif kind == "depart" and busy:
        policy.depart(busy[index % len(busy)])
    elif kind == "arrive":
        watched = Watched(index)
        return policy.arrive(watched), watched.seen
    return None


def assert_same(sized: Policy, equal: Policy, events: list[tuple[str, int, int]], size: float) -> None:
    for pool in range(3):
        sized.join(pool, pool, size=size)  # type: ignore[call-arg]
        equal.join(pool, pool)
    for joined, event in enumerate(events, start=3):
        assert play(sized, event, joined, {"size": size}) == play(equal, event, joined, {})
        assert loads(sized) == loads(equal)
        assert astuple(sized.messages) == astuple(equal.messages)


@settings(max_examples=200)
@given(
    events=EVENTS,
    utility=utilities,
    size=st.floats(0.01, 100.0),
    threshold=st.integers(0, 5),
    alpha=st.sampled_from([None, "0.3", "0.6", "0.9", "0.99"]),
)
def test_one_size_makes_the_decisions_of_the_paper(
    events: list[tuple[str, int, int]], utility: str, size: float, threshold: int, alpha: str | None
) -> None:
    rule = None if alpha is None else LearningRule(alpha)
    sized, equal = UtilityThreshold(threshold, rule, utility), ThresholdPolicy(threshold, rule)
    for pool in range(3):
        sized.join(pool, pool, size)
        equal.join(pool, pool)
    for joined, event in enumerate(events, start=3):
        assert play(sized, event, joined, {"size": size}) == play(equal, event, joined, {})
        assert loads(sized) == loads(equal)
        assert sized.threshold == equal.threshold
        assert list(sized.dispatcher.green) == list(equal.dispatcher.green)
        assert list(sized.dispatcher.yellow) == list(equal.dispatcher.yellow)
        assert astuple(sized.messages) == astuple(equal.messages)


@pytest.mark.parametrize("alpha", [None, "0.9"])
def test_one_size_makes_the_decisions_of_the_paper_for_ten_thousand_events(alpha: str | None) -> None:
    rule = None if alpha is None else LearningRule(alpha)
    sized, equal = UtilityThreshold(3, rule), ThresholdPolicy(3, rule)
    for pool in range(40):
        sized.join(pool, 0, 2.5)
        equal.join(pool)
    one, other, rng = choice(1), choice(1), random.Random(2)
    owners: list[Any] = []
    for _ in range(10_000):
        if rng.random() * (40 * 4 + len(owners)) < 40 * 4:
            owners.append(sized.arrive(one))
            assert equal.arrive(other) == owners[-1]
        else:
            place = rng.randrange(len(owners))
            sized.depart(owners[place])
            equal.depart(owners.pop(place))
        assert sized.threshold == equal.threshold
    assert astuple(sized.messages) == astuple(equal.messages)


@given(events=EVENTS, utility=utilities, size=st.floats(0.01, 100.0))
def test_greedy_is_join_the_shortest_queue_with_one_size(
    events: list[tuple[str, int, int]], utility: str, size: float
) -> None:
    assert_same(GreedyUtility(utility), JoinShortestQueue(), events, size)


@given(events=EVENTS, size=st.floats(0.01, 100.0))
def test_weighted_least_is_join_the_shortest_queue_with_one_size(
    events: list[tuple[str, int, int]], size: float
) -> None:
    assert_same(WeightedLeast(), JoinShortestQueue(), events, size)


@given(events=EVENTS, size=st.floats(0.01, 100.0))
def test_weighted_round_robin_is_round_robin_with_one_size(
    events: list[tuple[str, int, int]], size: float
) -> None:
    events = [event for event in events if event[0] != "leave"]  # a gap in the turn is closed in another order
    assert_same(WeightedRoundRobin(), RoundRobin(), events, size)


# --- more than one size --------------------------------------------------------------------------------------


def sized_pools(
    policy: Any,  # noqa: ANN401
    sizes: list[float],
    tasks: list[int],
) -> None:
    for pool, (size, count) in enumerate(zip(sizes, tasks, strict=True)):
        policy.join(pool, count, size=size)


@given(sizes=size_lists, data=st.data(), utility=utilities)
def test_greedy_offers_exactly_the_pools_with_the_largest_marginal_utility(
    sizes: list[float], data: st.DataObject, utility: str
) -> None:
    tasks = data.draw(st.lists(st.integers(0, 12), min_size=len(sizes), max_size=len(sizes)))
    policy, watched = GreedyUtility(utility), Watched()
    sized_pools(policy, sizes, tasks)
    gains = [find_utility(utility).marginal(size, count) for size, count in zip(sizes, tasks, strict=True)]
    policy.arrive(watched)
    assert sorted(watched.seen[0]) == [pool for pool, gain in enumerate(gains) if gain == max(gains)]


def test_greedy_finds_the_best_split_of_every_number_of_tasks() -> None:
    for name in UTILITIES:
        utility, policy = find_utility(name), GreedyUtility(name)
        sized_pools(policy, [1.0, 3.0, 4.0], [0, 0, 0])
        for total in range(1, 25):
            policy.arrive(first)
            best = max(
                utility.total(1.0, a) + utility.total(3.0, b) + utility.total(4.0, total - a - b)
                for a in range(total + 1)
                for b in range(total + 1 - a)
            )
            reached = sum(utility.total(size, policy.tasks(pool)) for pool, size in enumerate([1.0, 3.0, 4.0]))
            assert reached == pytest.approx(best, rel=1e-9, abs=1e-9)


@settings(max_examples=150)
@given(
    events=EVENTS,
    sizes=st.lists(st.sampled_from([0.5, 1.0, 3.0, 4.0]), min_size=3, max_size=3),
    utility=utilities,
    alpha=st.sampled_from([None, "0.5", "0.9"]),
)
def test_tokens_follow_from_the_marginal_utilities_at_any_time(
    events: list[tuple[str, int, int]], sizes: list[float], utility: str, alpha: str | None
) -> None:
    policy = UtilityThreshold(2, None if alpha is None else LearningRule(alpha), utility)
    size_of: dict[Any, float] = dict(enumerate(sizes))
    sized_pools(policy, sizes, [0, 1, 2])
    marginal = find_utility(utility).marginal
    for joined, event in enumerate(events, start=3):
        size_of[joined] = sizes[event[1] % 3]
        play(policy, event, joined, {"size": size_of[joined]})
        present = {size_of[pool] for pool in policy.pools}
        order = sorted({marginal(size, tasks) for size in present for tasks in range(80)}, reverse=True)
        place = {(size, tasks): order.index(marginal(size, tasks)) for size in present for tasks in range(30)}
        green = {pool for pool in policy.pools if place[size_of[pool], policy.tasks(pool)] < policy.threshold}
        assert set(policy.dispatcher.green) == green
        at_most = {pool for pool in policy.pools if place[size_of[pool], policy.tasks(pool)] <= policy.threshold}
        # If the size that the index was learned with has left, the cut can lie between two places.
        assert set(policy.dispatcher.yellow) in (at_most, green)
        for pool in policy.pools:
            assert policy.threshold_of(pool) == sum(
                place[size_of[pool], tasks] < policy.threshold for tasks in range(30)
            )


@pytest.mark.parametrize("utility", UTILITIES)
def test_tokens_are_exact_while_the_index_learns(utility: str) -> None:
    policy = UtilityThreshold(0, LearningRule("0.8"), utility)
    sized_pools(policy, [1.0, 1.0, 2.0, 4.0], [0] * 4)
    rng, owners = random.Random(5), list[Any]()
    for _ in range(3000):
        if rng.random() * (30 + len(owners)) < 30:
            owners.append(policy.arrive(rng.choice))
        else:
            policy.depart(owners.pop(rng.randrange(len(owners))))
        for pool in policy.pools:
            bounds = policy.dispatcher.bounds(pool)  # type: ignore[attr-defined]
            assert (pool in policy.dispatcher.green) == (policy.tasks(pool) < bounds.lower)
            assert (pool in policy.dispatcher.yellow) == (policy.tasks(pool) < bounds.upper)
    assert policy.threshold > 5


def test_only_pools_whose_thresholds_change_are_told() -> None:
    dispatcher = SizedDispatcher(find_utility("log").marginal)
    for pool, size in enumerate([1.0, 1.0, 8.0, 1.0]):
        dispatcher.join(pool, size)  # log 8 is the largest, then 8 again at one task
    assert dispatcher.take_changed() == [0, 1]  # when pool 2 came, the place of log 1 moved
    dispatcher.restart(1)
    assert dispatcher.take_changed() == [2]
    assert dispatcher.take_changed() == []


def test_a_cut_goes_through_all_marginal_utilities_in_order() -> None:
    marginal = find_utility("log").marginal
    cut = Cut(marginal)
    for size in (1.0, 4.0):
        cut.add(size, keep_index=True)
    assert [cut.bounds(1.0), cut.bounds(4.0)] == [Bounds(0, 0), Bounds(0, 1)]
    cut.up()
    # The first task in a pool of size 1 and the second in one of size 4 add the same: log 1 = log 4 - 2 log 2.
    assert [cut.bounds(1.0), cut.bounds(4.0)] == [Bounds(0, 1), Bounds(1, 2)]
    cut.up()
    assert cut.index == 2
    assert cut.down() and cut.down() and not cut.down()
    assert cut.index == 0


@given(sizes=st.sets(st.sampled_from([0.5, 1.0, 2.0, 3.0, 4.0, 7.5]), min_size=1), index=st.integers(0, 40))
def test_the_index_is_the_number_of_larger_marginal_utilities(sizes: set[float], index: int) -> None:
    marginal = find_utility("sqrt").marginal
    cut = Cut(marginal, index)
    for size in sorted(sizes):
        cut.add(size, keep_index=True)
    order = sorted({marginal(size, tasks) for size in sizes for tasks in range(60)}, reverse=True)
    assert cut.index == index
    for size in sizes:
        lower = sum(marginal(size, tasks) > order[index] for tasks in range(60))
        assert cut.bounds(size).lower == lower
        assert cut.bounds(size).upper == lower + (marginal(size, lower) == order[index])
    up = Cut(marginal, 0)
    for size in sorted(sizes):
        up.add(size, keep_index=False)  # each at the place of the others
    up.move_to(index)
    assert up.all_bounds() == cut.all_bounds()


def test_the_best_index_for_a_number_of_tasks_is_the_whole_part_of_the_mean_with_one_size() -> None:
    policy = UtilityThreshold()
    sized_pools(policy, [2.0] * 10, [0] * 10)
    for tasks in range(60):
        assert policy.dispatcher.index_for(tasks) == tasks // 10  # type: ignore[attr-defined]


@given(
    pools=st.dictionaries(st.sampled_from([0.001, 0.5, 1.0, 3.0, 4.0, 1000.0]), st.integers(1, 5), min_size=1),
    tasks=st.integers(0, 300),
    utility=utilities,
)
def test_a_cut_is_fitted_to_tasks_as_if_step_by_step(pools: dict[float, int], tasks: int, utility: str) -> None:
    marginal = find_utility(utility).marginal
    slow, fitted = Cut(marginal), Cut(marginal)
    for size, count in pools.items():
        slow.add(size, keep_index=True, pools=count)
        fitted.add(size, keep_index=True, pools=count)
    while sum(bounds.upper * pools[size] for size, bounds in slow.all_bounds().items()) <= tasks:
        slow.up()
    fitted.fit(tasks, pools)
    assert fitted.all_bounds() == slow.all_bounds()
    assert fitted.index == slow.index == fitted.index_for(tasks)


def test_a_fitted_policy_gives_pools_that_come_later_their_thresholds() -> None:
    policy = UtilityThreshold()
    policy.fit(50, {1.0: 2, 4.0: 2})
    assert [policy.threshold_for(size) for size in (1.0, 4.0)] == [5, 20]
    sized_pools(policy, [1.0, 1.0, 4.0, 4.0], [5, 5, 20, 19])
    assert [policy.threshold_of(pool) for pool in range(4)] == [5, 5, 20, 20]
    assert list(policy.dispatcher.green) == [3]


@given(
    threshold=st.integers(0, 12),
    tasks=st.lists(st.integers(0, 9), min_size=1, max_size=5),
    slack=st.integers(0, 2),
    size=st.floats(0.01, 100.0),
)
def test_with_one_size_the_index_catches_up_as_the_threshold_does(
    threshold: int, tasks: list[int], slack: int, size: float
) -> None:
    sized, equal = UtilityThreshold(threshold), ThresholdPolicy(threshold)
    for pool, count in enumerate(tasks):
        sized.join(pool, count, size)
        equal.join(pool, count)
    sized.catch_up(sum(tasks), {size: len(tasks)}, slack)
    equal.catch_up(sum(tasks), {size: len(tasks)}, slack)
    mean = sum(tasks) // len(tasks)
    assert sized.threshold == equal.threshold == (threshold if threshold >= mean - slack else mean)
    assert astuple(sized.messages) == astuple(equal.messages)


@settings(max_examples=100)
@given(
    utility=utilities,
    pools=st.dictionaries(st.sampled_from([0.001, 0.5, 1.0, 2.0, 4.0, 9.0, 7.3]), st.integers(1, 40), min_size=1),
    tasks=st.floats(0, 300),
)
def test_the_best_index_is_the_last_whose_thresholds_fit(
    utility: str, pools: dict[float, int], tasks: float
) -> None:
    cut = Cut(find_utility(utility).marginal)
    for size, count in pools.items():
        cut.add(size, keep_index=True, pools=count)
    best = cut.index_for(tasks)
    cut.move_to(best)
    assert sum(count * cut.bounds(size).lower for size, count in pools.items()) <= tasks
    cut.up()
    assert sum(count * cut.bounds(size).lower for size, count in pools.items()) > tasks


def test_the_best_index_does_not_climb_from_place_to_place() -> None:
    marginal, calls = find_utility("log").marginal, 0

    def counted(size: float, tasks: int) -> float:
        nonlocal calls
        calls += 1
        return marginal(size, tasks)

    cut = Cut(counted)
    for number in range(16):
        cut.add(1 + number / 16, keep_index=True)
    calls = 0
    assert cut.index_for(16 * 500) > 7000
    assert calls < 100_000  # one per place, and a bisection; step by step, there are two per size and place


def test_a_new_size_leaves_the_thresholds_of_others_alone_once_tasks_have_come() -> None:
    policy = UtilityThreshold(5)
    sized_pools(policy, [1.0, 1.0], [0, 0])
    assert policy.threshold_of(0) == 5
    policy.arrive(first)
    policy.join("large", 0, 4.0)
    assert policy.threshold_of(0) == 5
    assert policy.threshold_of("large") == 22  # x + 1/2 is about proportional to the size: 5.5 * 4
    policy.leave("large")
    assert (policy.threshold_of(0), policy.threshold) == (5, 5)


def test_weighted_round_robin_serves_in_proportion_and_evenly_spread() -> None:
    policy = WeightedRoundRobin()
    sized_pools(policy, [1.0, 1.0, 4.0], [0] * 3)
    turns = [policy.arrive(first) for _ in range(600)]
    assert [turns.count(pool) for pool in range(3)] == [100, 100, 400]
    for start in range(594):
        assert 3 <= turns[start : start + 6].count(2) <= 5


def test_weighted_least_has_tasks_in_proportion_to_sizes() -> None:
    policy = WeightedLeast()
    sized_pools(policy, [1.0, 2.0, 5.0], [0] * 3)
    for _ in range(80):
        policy.arrive(choice(1))
    assert loads(policy) == {0: 10, 1: 20, 2: 50}


@pytest.mark.parametrize("name", ["weighted-least", "threshold-utility"])  # the others inherit join
def test_impossible_sizes_are_rejected_and_nothing_changes(name: str) -> None:
    policy: Any = make_policy(name)
    policy.join("a", 1, 2.0)
    for size in (0, -1, float("nan"), float("inf"), 1e9, 1e-9, "4", None, True):
        with pytest.raises(InputError, match=r"size of a pool must be a number from 0\.001 to 1000"):
            policy.join("b", 1, size)
    with pytest.raises(InputError, match="already a member"):
        policy.join("a", 1, 3.0)
    with pytest.raises(InputError, match="tasks of pool"):
        policy.join("c", -1, 3.0)
    assert loads(policy) == {"a": 1}
    assert policy.arrive(first) == "a"
    policy.join("b", 1, 3.0)


def test_parameters_that_do_not_fit_are_rejected() -> None:
    with pytest.raises(InputError, match="takes no capacity"):
        make_policy("greedy-utility", capacity=5)
    with pytest.raises(InputError, match="utility is for policy greedy-utility or threshold-utility, not jsq"):
        make_policy("jsq", utility="log")
    with pytest.raises(InputError, match="utility must be one of log, sqrt, rate, not 'best'"):
        make_policy("greedy-utility", utility="best")
