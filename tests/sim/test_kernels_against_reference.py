"""The kernels against the objects of `evenly.core`, on the same random numbers, event by event."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenly.core import UtilityThreshold
from evenly.policies import AGGREGATE as AGGREGATE_POLICIES
from evenly.policies import POLICIES, SIZED
from evenly.sim import Phase, Scenario
from evenly.sim.reference import CoreSystem, ReferenceSimulation
from evenly.sim.simulation import Simulation
from evenly.sim.tally import Tally
from tests.sim.support import CORE, LOOPS, OPTIONS, STEADY_OPTIONS, by_tier, scenario_of

FAR = 1e9  # beyond any event of these tests

INSTANT = [policy for policy in POLICIES if policy != "stale-reports"]  # that one has a clock


def assert_equal_now(kernel: Simulation, reference: CoreSystem, tolerance: float = 1e-12) -> None:
    tasks = reference.tasks()
    tally = kernel.tally()
    assert kernel.at_least.tolist() == reference.at_least()
    assert kernel.state["total"] == sum(tasks)
    assert kernel.state["squares"] == sum(count**2 for count in tasks)
    assert math.isclose(kernel.time, reference.time, rel_tol=tolerance, abs_tol=tolerance)
    assert (tally.arrivals, tally.lost_tasks) == (reference.arrivals, reference.lost)
    assert {kind: getattr(tally, kind) for kind in reference.messages} == reference.messages
    if reference.threshold is not None:
        assert kernel.state["threshold"] == reference.threshold
    if kernel.tasks is not None:
        assert kernel.tasks.tolist() == tasks
    if kernel.unequal is not None:
        assert_equal_classes(kernel, reference, tally)


def assert_equal_classes(kernel: Simulation, reference: CoreSystem, tally: Tally) -> None:
    """The pools of each class have the same tasks in both; the utility's integral is checked elsewhere."""
    assert kernel.unequal is not None
    tasks, first = reference.tasks(), 0
    for c, each in enumerate(kernel.scenario.classes):
        of_class = tasks[first : first + each.count]
        counts = kernel.unequal.at_least[c]
        assert counts.tolist() == [sum(n >= level for n in of_class) for level in range(counts.size)]
        if isinstance(reference.policy, UtilityThreshold):
            assert kernel.unequal.thresholds[c] == reference.policy.threshold_of(first)
        first += each.count
    assert tally.class_tasks.size == len(kernel.scenario.classes)


def assert_step_together(scenario: Scenario, steps: int, seed: int, *, mean_holding: bool = False) -> None:
    kernel = Simulation(scenario, np.random.SeedSequence(seed), mean_holding=mean_holding)
    reference = ReferenceSimulation(scenario, np.random.SeedSequence(seed), mean_holding=mean_holding)
    for done in range(1, steps + 1):
        kernel.advance(FAR, max_events=1)
        reference.step()
        assert kernel.state["events"] == done
        assert_equal_now(kernel, reference)


@pytest.mark.parametrize("name", by_tier(OPTIONS))
def test_kernel_and_reference_go_the_same_way(name: str) -> None:
    assert_step_together(scenario_of(OPTIONS[name]), steps=1300, seed=3)


@pytest.mark.parametrize("name", by_tier((name for name in STEADY_OPTIONS if name in CORE), LOOPS))
def test_kernel_and_reference_go_the_same_way_with_mean_holding_times(name: str) -> None:
    assert_step_together(scenario_of(STEADY_OPTIONS[name]), steps=600, seed=4, mean_holding=True)


@pytest.mark.parametrize("policy", ["round-robin", "jiq"])
def test_the_per_pool_kernel_makes_room_for_many_tasks(policy: str) -> None:
    assert_step_together(Scenario(policy=policy, pools=12, load=150.0), steps=2500, seed=5)


@pytest.mark.parametrize("policy", ["threshold", "jsq", pytest.param("power-of-d", marks=pytest.mark.full)])
def test_kernel_and_reference_go_the_same_way_on_hundreds_of_levels(policy: str) -> None:
    initial = [0, 5, 40, 41, 300, 520, 700, 705]  # and the book grows
    learning: dict[str, Any] = {"alpha": "0.8", "threshold": 300} if policy == "threshold" else {}
    scenario = Scenario(policy=policy, pools=8, load=900.0, initial_tasks=initial, **learning)
    assert_step_together(scenario, steps=1200, seed=3)


def test_per_pool_policies_track_each_pool() -> None:
    for policy in POLICIES:
        known = Simulation(
            scenario_of({"policy": policy, "capacity": None if POLICIES[policy].sized else 9}),
            np.random.SeedSequence(1),
        ).tasks
        assert (known is None) == (policy in AGGREGATE_POLICIES)


loads = st.floats(0.05, 6.0).map(lambda load: round(load, 3))


@st.composite
def demands(draw: st.DrawFn) -> tuple[Phase, ...]:
    starts = [0.0, *sorted(draw(st.sets(st.floats(0.01, 6.0), max_size=3)))]
    phases = []
    for number, start in enumerate(starts):
        last = number == len(starts) - 1
        load = draw(loads if last else st.one_of(st.just(0.0), loads))
        amplitude = draw(st.sampled_from([0.0, 0.0, 0.5, 1.0])) * load
        phases.append(Phase(start, load, amplitude, draw(st.floats(0.2, 9.0))))
    return tuple(phases)


@st.composite
def scenarios(draw: st.DrawFn, laws: st.SearchStrategy[dict[str, Any]]) -> Scenario:
    policy = draw(st.sampled_from(INSTANT))
    pools = draw(st.integers(1, 9))
    capacity = draw(st.integers(1, 7) if policy == "pull" else st.one_of(st.none(), st.integers(1, 7)))
    sized = policy in SIZED and (POLICIES[policy].sized or draw(st.booleans()))
    if sized:
        capacity = None
    most = 7 if capacity is None else capacity
    options: dict[str, Any] = {}
    if policy == "power-of-d":
        options["sample_size"] = draw(st.integers(1, pools))
    if sized:
        large = draw(st.integers(0, pools - 1))
        options["sizes"] = f"{pools - large}*1" + (
            f",{large}*{draw(st.sampled_from([0.3, 2, 4]))}" if large else ""
        )
        options["utility"] = draw(st.sampled_from(["log", "sqrt", "rate"]))
    if policy in ("threshold", "threshold-utility"):
        options["threshold"] = draw(st.integers(0, most - 1))
        options["alpha"] = draw(st.one_of(st.none(), st.floats(0.01, 0.99)))
    if policy == "jbt":
        options["threshold"] = draw(st.integers(1, most))
    return Scenario(
        policy=policy,
        pools=pools,
        schedule=draw(demands()),
        capacity=capacity,
        initial_tasks=draw(st.lists(st.integers(0, most), min_size=pools, max_size=pools)),
        service_rate=draw(st.sampled_from([1.0, 0.25, 3.7])),
        **options,
        **draw(laws),
    )


@pytest.mark.long
@settings(max_examples=150)
@given(scenario=scenarios(st.just({})), seed=st.integers(0, 2**32))
def test_kernel_and_reference_go_the_same_way_in_any_scenario(scenario: Scenario, seed: int) -> None:
    assert_step_together(scenario, steps=120, seed=seed)


def test_a_system_without_demand_empties_and_stays_empty() -> None:
    for policy in ("threshold", "round-robin"):
        scenario = Scenario(policy=policy, pools=4, schedule="0:0,500:0", initial_tasks=[3, 0, 1, 2])
        kernel = Simulation(scenario, np.random.SeedSequence(1))
        kernel.advance(1000.0)
        assert kernel.at_least.tolist() == [4]
        assert kernel.time == 1000
        assert (kernel.state["events"], kernel.state["arrivals"]) == (6, 0)


def test_the_clock_of_an_empty_system_starts_with_the_demand() -> None:
    kernel = Simulation(Scenario(pools=5, schedule="0:0,100:2"), np.random.SeedSequence(1))
    kernel.advance(100.0)
    assert kernel.state["events"] == 0
    kernel.advance(FAR, max_events=1)
    assert 100 < kernel.time < 110
