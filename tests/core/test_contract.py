"""One contract for every policy: what a caller may rely on."""

import random
import weakref
from dataclasses import astuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenly.core import Choose, MessageCount, Policy, Pull
from evenly.core.base import CountingPolicy
from evenly.errors import InputError
from evenly.testing import check_policy
from tests.core.support import CASES, Case, Watched, choice, filled, first, loads, ordered

every_policy = pytest.mark.parametrize("case", CASES, ids=str)
limited = pytest.mark.parametrize("case", [case for case in CASES if case.capacity is not None], ids=str)
unlimited = pytest.mark.parametrize("case", [case for case in CASES if case.capacity is None], ids=str)

EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["arrive"] * 4 + ["depart"] * 3 + ["join", "leave", "place"]),
        st.integers(0, 99),
        st.integers(0, 4),
    ),
    max_size=60,
)


@every_policy
def test_the_public_contract(case: Case) -> None:
    uniform = "round-robin" not in case.name
    memory = "learning" in case.name or case.name == "stale-reports"
    check_policy(case.make, uniform=uniform, memory=memory, capacity=case.capacity)


@pytest.mark.slow
@every_policy
@settings(max_examples=60)
@given(events=EVENTS)
def test_any_history(case: Case, events: list[tuple[str, int, int]]) -> None:
    policy, joined = case.make(), 3
    model = dict.fromkeys(range(joined), 0)
    filled(policy, [0] * joined)
    for event, index, tasks in events:
        if event == "join":
            model[joined] = tasks if case.capacity is None else min(tasks, case.capacity)
            policy.join(joined, model[joined])
            joined += 1
        elif event == "leave" and model:
            pool = sorted(model)[index % len(model)]
            policy.leave(pool)
            del model[pool]
        elif event == "depart" and any(model.values()):
            busy = sorted(pool for pool, count in model.items() if count)
            policy.depart(busy[index % len(busy)])
            model[busy[index % len(busy)]] -= 1
        elif event == "place" and any(count != case.capacity for count in model.values()):
            roomy = sorted(pool for pool, count in model.items() if count != case.capacity)
            policy.record_arrival(roomy[index % len(roomy)])
            model[roomy[index % len(roomy)]] += 1
        elif event == "arrive":
            arrive(case, policy, model, Watched(index))
        assert loads(policy) == model
        assert len(policy.pools) == len(model)


def arrive(case: Case, policy: Policy, model: dict[int, int], watched: Watched) -> None:
    picked = policy.arrive(watched)
    for candidates in watched.seen:
        pools = [token[0] for token in candidates] if isinstance(policy, Pull) else candidates
        assert set(pools) <= set(model)
        assert len(set(candidates)) == len(candidates)
    if picked is None:
        assert not model or case.capacity in model.values()
    else:
        assert isinstance(picked, int)
        model[picked] += 1
        assert case.capacity is None or model[picked] <= case.capacity


@unlimited
def test_without_capacity_no_task_is_lost(case: Case) -> None:
    policy, choose = case.make(), choice(1)
    filled(policy, [0, 5, 2])
    assert None not in [policy.arrive(choose) for _ in range(200)]
    assert sum(loads(policy).values()) == 207


@limited
def test_full_pools_lose_tasks_and_keep_their_own(case: Case) -> None:
    assert case.capacity is not None
    policy, choose = case.make(), choice(2)
    filled(policy, [case.capacity] * 3)
    for _ in range(20):
        assert policy.arrive(choose) is None
        assert loads(policy) == dict.fromkeys(range(3), case.capacity)
    policy.depart(1)
    placed = [policy.arrive(choose) for _ in range(60)]
    assert placed.count(1) == 1
    assert placed.count(None) == 59


@limited
def test_a_full_pool_takes_no_unpicked_task_either(case: Case) -> None:
    assert case.capacity is not None
    policy = case.make()
    filled(policy, [case.capacity, 0])
    with pytest.raises(ValueError, match="Pool 0"):
        policy.record_arrival(0)
    assert loads(policy) == {0: case.capacity, 1: 0}


@limited
def test_a_pool_cannot_join_with_more_tasks_than_its_capacity(case: Case) -> None:
    assert case.capacity is not None
    policy = case.make()
    with pytest.raises(InputError, match="'a'"):
        policy.join("a", case.capacity + 1)
    assert not policy.pools
    policy.join("a", case.capacity)


@every_policy
def test_a_pool_cannot_join_with_a_negative_number_of_tasks(case: Case) -> None:
    policy = case.make()
    with pytest.raises(InputError, match="'a'"):
        policy.join("a", -1)
    assert not policy.pools


@every_policy
def test_tasks_brought_by_a_new_pool_can_depart(case: Case) -> None:
    policy = case.make()
    policy.join("a", 1)
    policy.join("b")
    policy.depart("a")
    assert loads(policy) == {"a": 0, "b": 0}
    assert policy.arrive(choice(3)) in ("a", "b")


@every_policy
def test_a_pool_that_left_gets_no_task_and_may_join_again(case: Case) -> None:
    policy, choose = case.make(), choice(4)
    filled(policy, [1, 0, 1])
    policy.arrive(choose)
    policy.leave(0)
    assert ordered(policy.pools) == [1, 2]
    for event in (policy.tasks, policy.depart, policy.record_arrival, policy.leave):
        with pytest.raises(InputError, match="Pool 0 is not a member"):
            event(0)
    assert 0 not in [policy.arrive(choose) for _ in range(20)]
    policy.join(0)
    assert policy.tasks(0) == 0
    while sum(loads(policy).values()):
        for pool in (0, 1, 2):
            if policy.tasks(pool):
                policy.depart(pool)
    assert 0 in [policy.arrive(choose) for _ in range(100)]


class NamedPool:
    """A pool whose name is an object, as in the live balancer."""


@every_policy
def test_a_pool_that_left_is_not_kept_in_memory(case: Case) -> None:
    policy, pool = case.make(), NamedPool()
    policy.join(pool)
    policy.arrive(first)
    policy.leave(pool)
    reference = weakref.ref(pool)
    del pool
    assert reference() is None


@every_policy
def test_errors_name_the_pool_and_change_nothing(case: Case) -> None:
    policy = case.make()
    filled(policy, [0, 1])
    before, sent = loads(policy), repr(policy.messages)
    with pytest.raises(ValueError, match="pool 0"):
        policy.depart(0)
    with pytest.raises(ValueError, match="Pool 1"):
        policy.join(1)
    for event in (policy.leave, policy.depart, policy.record_arrival, policy.tasks):
        with pytest.raises(ValueError, match="'stranger'"):
            event("stranger")
    assert loads(policy) == before
    assert repr(policy.messages) == sent


@every_policy
def test_messages_start_at_zero_and_never_shrink(case: Case) -> None:
    policy, choose = case.make(), choice(7)
    assert policy.messages == MessageCount()
    assert set(astuple(policy.messages)) == {0}
    filled(policy, [1] * 4)
    for turn in range(60):
        before = astuple(policy.messages)
        if turn % 3 == 2:
            policy.depart(max(loads(policy).items(), key=lambda item: item[1])[0])
        else:
            policy.arrive(choose)
        after = astuple(policy.messages)
        assert all(new >= old for old, new in zip(before, after, strict=True))


def test_a_subclass_must_pick_the_pool() -> None:
    policy = CountingPolicy()
    policy.join("a")
    with pytest.raises(NotImplementedError):
        policy.arrive(first)


def test_the_standard_library_has_a_choice() -> None:
    choose: Choose = random.Random(1).choice
    watched: Choose = Watched()
    plain: Choose = first
    assert {choose([1]), watched([1]), plain([1])} == {1}
