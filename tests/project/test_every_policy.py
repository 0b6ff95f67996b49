"""A new policy cannot miss the tests that go through a list of policies."""

from evenly.core import Policy, RoundRobin, WeightedRoundRobin, make_policy
from evenly.policies import DELAYED, POLICIES
from tests.core.support import CASES
from tests.core.test_uniform import SCENES
from tests.sim.support import OPTIONS
from tests.sim.test_network_kernel import SYSTEMS


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
    in_turn = {RoundRobin, WeightedRoundRobin}  # they make no choice
    made = [scene.make() for scene in SCENES]
    assert {kind for kind in _types() if not any(isinstance(policy, kind) for policy in made)} == in_turn


def test_every_policy_runs_on_the_kernels_and_the_reference() -> None:
    compared = [*OPTIONS.values(), *SYSTEMS.values()]
    assert {options.get("policy", "threshold") for options in compared} == set(POLICIES)
    assert {options.get("policy", "threshold") for options in SYSTEMS.values()} == set(DELAYED)
