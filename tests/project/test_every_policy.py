"""A new policy cannot miss the tests that go through a list of policies."""

from evenly.core import Policy, RoundRobin, make_policy
from evenly.policies import POLICIES
from tests.core.support import CASES
from tests.core.test_uniform import SCENES
from tests.sim.support import OPTIONS


def _types() -> set[type[Policy]]:
    return {
        type(
            make_policy(
                info.name,
                threshold=3 if info.name == "jbt" else None,
                capacity=4 if info.needs_capacity else None,
            )
        )
        for info in POLICIES.values()
    }


def test_the_contract_suite_has_every_policy() -> None:
    assert {type(case.make()) for case in CASES} == _types()


def test_the_choice_of_every_policy_is_tested_for_uniformity() -> None:
    in_turn = {RoundRobin}  # makes no choice
    assert {type(scene.make()) for scene in SCENES} | in_turn == _types()


def test_every_policy_runs_on_the_kernels_and_the_reference() -> None:
    assert {options.get("policy", "threshold") for options in OPTIONS.values()} == set(POLICIES)
