"""The list of policies: the package takes names from here, and rejects parameters that a policy does not take."""

import random
from typing import Any

import pytest

from evenly import InputError, Scenario
from evenly.core import make_policy
from evenly.live.settings import read_settings
from evenly.policies import AGGREGATE, EXACT, LIMIT, LIVE, PARAMETERS, POLICIES
from evenly.sim import with_policies
from evenly.theory import predict_equilibrium, solve_exact

VALUES: dict[str, Any] = {"threshold": 2, "alpha": "0.7", "sample_size": 2, "report_interval": 0.5}
SIMULATED = {"report_interval"}  # core has no clock


def capacity_of(policy: str) -> int | None:
    return None if policy in POLICIES and POLICIES[policy].sized else 4


def taken(policy: str) -> dict[str, Any]:
    return {name: VALUES[name] for name in POLICIES[policy].parameters - SIMULATED}


@pytest.mark.parametrize("policy", POLICIES)
def test_core_makes_every_policy_from_its_name(policy: str) -> None:
    made = make_policy(policy, capacity=capacity_of(policy), **taken(policy))
    made.join("a")
    assert made.arrive(random.Random(1).choice) == "a"


@pytest.mark.parametrize("policy", POLICIES)
def test_a_parameter_that_the_policy_does_not_take_is_rejected(policy: str) -> None:
    for parameter in PARAMETERS:
        given = {parameter: VALUES[parameter]}
        if parameter in POLICIES[policy].parameters:
            Scenario(policy=policy, pools=3, load=1.5, capacity=capacity_of(policy), **given)
            continue
        refusal = rf"{parameter} is for policy .*, not {policy}\."
        with pytest.raises(InputError, match=refusal):
            Scenario(policy=policy, pools=3, load=1.5, capacity=capacity_of(policy), **given)
        if parameter in SIMULATED:
            continue
        with pytest.raises(InputError, match=refusal):
            make_policy(policy, capacity=capacity_of(policy), **given)
        if policy in EXACT:
            with pytest.raises(InputError, match=refusal):
                solve_exact(policy=policy, pools=3, load=1.5, **given)


@pytest.mark.parametrize("policy", [*POLICIES, "best"])
def test_each_part_takes_just_the_policies_that_it_lists(policy: str) -> None:
    def works(call: Any) -> bool:  # noqa: ANN401
        try:
            call()
        except InputError as error:
            assert "policy" in str(error)
            return False
        return True

    assert works(lambda: Scenario(policy=policy, pools=3, load=1.5, capacity=capacity_of(policy))) == (
        policy in POLICIES
    )
    assert works(lambda: solve_exact(policy=policy, pools=2, load=0.5)) == (policy in EXACT)
    assert works(lambda: predict_equilibrium(policy=policy, load=1.5)) == (policy in LIMIT)
    if policy in POLICIES:
        assert Scenario(policy=policy, pools=3, load=1.5, capacity=capacity_of(policy)).aggregate == (
            policy in AGGREGATE
        )


def test_the_live_balancer_takes_the_policies_marked_live() -> None:
    for policy in (*POLICIES, "best"):
        given = {"listen": "127.0.0.1:0", "pool": ["127.0.0.1:9001"], "policy": policy}
        if policy in LIVE:
            assert read_settings(given, None).policy == policy
        else:
            with pytest.raises(InputError, match=f"policy must be one of {', '.join(LIVE)}, not '{policy}'"):
                read_settings(given, None)


def test_the_same_scenario_under_each_policy_keeps_the_parameters_that_it_takes() -> None:
    learned, shortest, below = with_policies(
        Scenario(pools=3, load=1.5, alpha="0.9", threshold=2), ["threshold", "jsq", "jbt"]
    )
    assert (learned.alpha, learned.threshold) == ("0.9", 2)
    assert (shortest.alpha, shortest.threshold) == (None, None)
    assert (below.alpha, below.threshold) == (None, 2)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        *(
            (name, "jsq")
            for name in ("leastconn", "least_conn", "least-connections", "JSQ", "Join-Shortest-Queue")
        ),
        *(
            (name, "power-of-d")
            for name in ("least_request", "LEAST_REQUEST", "power_of_d", "p2c", "power-of-two")
        ),
        ("Round Robin", "round-robin"),
        ("treshold", "threshold"),
    ],
)
def test_other_names_of_policies_are_answered_with_ours(written: str, meant: str) -> None:
    with pytest.raises(InputError, match=rf"not '{written}'; did you mean '{meant}'\?$"):
        Scenario(policy=written, pools=3, load=1.5)


def test_only_what_is_available_is_suggested() -> None:
    for name in ("round_robin", "best"):  # the first is no policy with a limit
        with pytest.raises(InputError, match=rf"not '{name}'\.$"):
            predict_equilibrium(policy=name, load=1.5)
