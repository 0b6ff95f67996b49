"""`check_policy` accepts good policies, and names the rule that a bad one breaks, with a short example."""

from typing import Any

import pytest

from evenly.core import JoinShortestQueue, PowerOfD, Pull, RandomRouting, RoundRobin
from evenly.errors import InputError
from evenly.testing import PolicyError, check_policy
from tests.testing.policies import (
    AddressOrder,
    BiasedAfterLeave,
    BiasedWhenBusy,
    ChoosesFromADict,
    CountsTwice,
    FirstOfEquals,
    FirstThree,
    ForgetsDepartures,
    ForgetsEmptying,
    ForgetsHiddenDepartures,
    HashOrder,
    IgnoresHiddenTasks,
    IgnoresTasksAtJoin,
    KeepsMemory,
    LastToJoin,
    Limited,
    LosesWhenBusy,
    LowestName,
    Memory,
    NeverForgets,
    NoPools,
    OverflowsPools,
    OwnGenerator,
    OwnRandomness,
    RemembersWhoLeft,
    SharedTasks,
    SharedTurn,
    Shortest,
    SpoilsRandomness,
    Unhashable,
)

SAME_CHANCE = "pools that joined with the same tasks have the same chance"
SAME_STATE = "the chances of the next task depend on the tasks of the pools alone"


@pytest.mark.parametrize("policy", [Shortest, Limited, JoinShortestQueue, RandomRouting])
def test_good_policies_pass(policy: type[Any]) -> None:
    check_policy(policy)


def test_a_memory_must_be_named() -> None:
    check_policy(Memory, memory=True)
    with pytest.raises(PolicyError, match=rf"{SAME_STATE}(.*\n)*.*memory=True"):
        check_policy(Memory)


@pytest.mark.parametrize("policy", [BiasedAfterLeave, BiasedWhenBusy, FirstThree, LastToJoin])
def test_with_a_memory_pools_still_have_the_same_chance(policy: type[Any]) -> None:
    with pytest.raises(PolicyError, match=rf"{SAME_CHANCE}(.*\n)*.*uniform=False"):
        check_policy(policy, memory=True)


def test_a_function_may_make_the_policy() -> None:
    check_policy(lambda: PowerOfD(2))
    check_policy(Pull, capacity=1)


def test_pools_may_be_taken_in_turn() -> None:
    with pytest.raises(PolicyError, match=r"the same chance.*\n(.*\n)*.*uniform=False"):
        check_policy(RoundRobin)
    check_policy(RoundRobin, uniform=False)


@pytest.mark.parametrize(
    ("policy", "rule", "lines"),
    [
        (KeepsMemory, "no event raises an error", 6),
        (NeverForgets, "without pools, a task is lost", 4),
        (NoPools, "no event raises an error", 2),
        (ForgetsDepartures, "tasks counts the tasks of each pool", 4),
        (IgnoresTasksAtJoin, "tasks counts the tasks of each pool", 3),
        (FirstOfEquals, SAME_CHANCE, 5),
        (LowestName, SAME_CHANCE, 5),
        (LastToJoin, SAME_STATE, 11),
        (OwnRandomness, "all randomness comes from choose", 0),
        (SpoilsRandomness, "all randomness comes from choose", 0),
        (SharedTurn, "the same choices lead to the same pools", 10),
        (SharedTasks, "two policies share nothing", 6),
        (ChoosesFromADict, "no event raises an error", 3),
        (Unhashable, "without pools, a task is lost", 2),
        (OverflowsPools, "no task goes to a full pool", 3),
        (ForgetsHiddenDepartures, SAME_STATE, 11),
        (ForgetsEmptying, SAME_STATE, 12),
        (IgnoresHiddenTasks, SAME_STATE, 11),
        (BiasedAfterLeave, SAME_STATE, 12),
        (RemembersWhoLeft, SAME_STATE, 12),
        (FirstThree, SAME_CHANCE, 7),
        (BiasedWhenBusy, SAME_CHANCE, 5),
        (LosesWhenBusy, "without a capacity, no task is lost while there are pools", 3),
        # Chance decides which history shows it.
        (HashOrder, "the same choices lead to the same pools, in every process", 48),
        (CountsTwice, "tasks counts the tasks of each pool", 4),
    ],
)
def test_a_broken_rule_is_named_with_a_short_example(policy: type[Any], rule: str, lines: int) -> None:
    with pytest.raises(PolicyError) as caught:
        check_policy(policy)
    told = str(caught.value)
    assert told.startswith(f'{policy.__name__} breaks the rule "{rule}')
    assert told.count("\n") <= lines
    if lines:
        assert f"policy = {policy.__name__}(" in told
    assert isinstance(caught.value, AssertionError)


@pytest.mark.parametrize("policy", [OwnGenerator, AddressOrder])
def test_a_hidden_source_of_chance_is_found_out(policy: type[Any]) -> None:
    with pytest.raises(PolicyError, match=r"the same choices lead to the same pools|two policies share nothing"):
        check_policy(policy)


def test_an_example_is_minimal() -> None:
    with pytest.raises(PolicyError) as caught:
        check_policy(NeverForgets)
    assert str(caught.value).splitlines()[1:] == [
        "    policy = NeverForgets()",
        "    policy.join(0, 0)",
        "    policy.leave(0)",
        "    policy.arrive(choose)  # 0",
    ]


def test_bad_input_is_no_broken_rule() -> None:
    with pytest.raises(InputError, match="policy must be a class, or a function that returns a policy, not 3"):
        check_policy(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="must have the methods"):
        check_policy(dict)
    with pytest.raises(InputError, match="its constructor needs sample_size"):
        check_policy(PowerOfD)
    with pytest.raises(InputError, match="uniform must be true or false"):
        check_policy(Memory, uniform="yes")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="memory must be true or false"):
        check_policy(Memory, memory=1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="capacity must be"):
        check_policy(Memory, capacity=0)
    with pytest.raises(PolicyError, match="it has the methods"):
        check_policy(lambda: 3)
