"""Policies made by name have the parameters that were given, and the documented defaults."""

import pytest

from evenly.core import Policy, PowerOfD, ThresholdPolicy, make_policy
from evenly.errors import InputError
from evenly.policies import POLICIES
from tests.core.support import Watched, filled


@pytest.mark.parametrize("name", [name for name, info in POLICIES.items() if not info.sized])
def test_every_policy_for_equal_pools_takes_the_capacity(name: str) -> None:
    policy = make_policy(name, capacity=2, threshold=1 if name == "jbt" else None)
    filled(policy, [2, 2])
    assert policy.arrive(Watched()) is None
    with pytest.raises(InputError, match="the capacity"):
        policy.join("a", 3)


def candidates(policy: Policy) -> list[object]:
    """Return the candidates for a task among pools with 0, 1, ... 5 tasks."""
    filled(policy, list(range(6)))
    watched = Watched()
    policy.arrive(watched)
    return watched.seen[0]


def test_thresholds_are_passed_on() -> None:
    assert candidates(make_policy("jbt", threshold=2)) == [0, 1]
    assert candidates(make_policy("jiq")) == [0]
    assert candidates(make_policy("threshold", threshold=3)) == [0, 1, 2]
    assert candidates(make_policy("threshold")) == [0]


def test_alpha_makes_the_threshold_learn() -> None:
    learning, fixed = make_policy("threshold", alpha="0.57"), make_policy("threshold")
    assert isinstance(learning, ThresholdPolicy)
    assert isinstance(fixed, ThresholdPolicy)
    assert learning.threshold == fixed.threshold == 0
    assert repr(learning.dispatcher.rule) == "LearningRule(0.57)"
    assert fixed.dispatcher.rule is None


@pytest.mark.parametrize(("given", "sampled"), [(None, 2), (1, 1), (3, 3)])
def test_power_of_d_samples_two_pools_by_default(given: int | None, sampled: int) -> None:
    policy = make_policy("power-of-d", sample_size=given)
    assert isinstance(policy, PowerOfD)
    filled(policy, [0] * 5)
    policy.arrive(Watched())
    assert policy.messages.other == 2 * sampled
