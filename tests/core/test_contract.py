"""One contract for every policy: what a caller may rely on."""

import random
import re
import weakref
from dataclasses import astuple
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenly.core import Choose, Policy, Pull
from evenly.core.base import CountingPolicy
from evenly.errors import InputError
from evenly.testing import check_policy
from tests.core.support import CASES, KINDS, MEMBERS, Case, Watched, choice, filled, first, loads, ordered
from tests.tiers import rest_in_full

ONE_OF_EACH = rest_in_full([*KINDS, *(case for case in CASES if case not in KINDS)], len(KINDS))
every_kind = pytest.mark.parametrize("case", KINDS, ids=str)
every_membership = pytest.mark.parametrize("case", MEMBERS, ids=str)
LIMITED = [case for case in CASES if case.capacity is not None]

EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["arrive"] * 4 + ["depart"] * 3 + ["join", "leave", "place"]),
        st.integers(0, 99),
        st.integers(0, 4),
    ),
    max_size=60,
)


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=str)
def test_the_public_contract(case: Case) -> None:
    uniform = "round-robin" not in case.name
    memory = "learning" in case.name or case.name == "stale-reports"
    check_policy(case.make, uniform=uniform, memory=memory, capacity=case.capacity)


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=str)
@settings(max_examples=60)
@given(events=EVENTS)
def test_any_history(case: Case, events: list[tuple[str, int, int]]) -> None:
    policy, joined = case.make(), 3
    model = dict.fromkeys(range(joined), 0)
    assert set(astuple(policy.messages)) == {0}
    filled(policy, [0] * joined)
    for event, index, tasks in events:
        sent = astuple(policy.messages)
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
        assert all(new >= old for old, new in zip(sent, astuple(policy.messages), strict=True))


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


@pytest.mark.parametrize("case", LIMITED, ids=str)
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


limited_memberships = pytest.mark.parametrize(
    "case", [case for case in LIMITED if str(case) in ("threshold-capacity-3", "jsq-capacity-3")], ids=str
)


@limited_memberships
def test_a_full_pool_takes_no_unpicked_task_either(case: Case) -> None:
    policy = case.make()
    filled(policy, [3, 0])
    with pytest.raises(ValueError, match="Pool 0"):
        policy.record_arrival(0)
    assert loads(policy) == {0: 3, 1: 0}


@limited_memberships
def test_a_pool_cannot_join_with_more_tasks_than_its_capacity(case: Case) -> None:
    policy = case.make()
    with pytest.raises(InputError, match="'a'"):
        policy.join("a", 4)
    assert not policy.pools
    policy.join("a", 3)


@every_kind
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


@every_kind
def test_a_pool_that_left_is_not_kept_in_memory(case: Case) -> None:
    policy, pool = case.make(), NamedPool()
    policy.join(pool)
    policy.arrive(first)
    policy.leave(pool)
    reference = weakref.ref(pool)
    del pool
    assert reference() is None


STRANGERS: list[Any] = ["stranger", None, [], {}, 5]


@every_membership
def test_errors_name_the_pool_and_change_nothing(case: Case) -> None:
    policy = case.make()
    filled(policy, [0, 1])
    before, sent = loads(policy), repr(policy.messages)
    with pytest.raises(ValueError, match="pool 0"):
        policy.depart(0)
    with pytest.raises(ValueError, match="Pool 1"):
        policy.join(1)
    with pytest.raises(ValueError, match="tasks of pool 'a'"):
        policy.join("a", -1)
    for stranger, event in product(STRANGERS, (policy.leave, policy.depart, policy.record_arrival, policy.tasks)):
        with pytest.raises(InputError, match=rf"Pool {re.escape(repr(stranger))} is not a member"):
            event(stranger)
    unnamed: Any
    for unnamed in (None, [], {}, ([],)):
        with pytest.raises(InputError, match="A pool must be named by a hashable value"):
            policy.join(unnamed)
    assert loads(policy) == before
    assert repr(policy.messages) == sent


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
