"""One seed, several systems: the events that they share, and the time that only rescales."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from evenly.core import LearningRule
from evenly.policies import POLICIES
from evenly.sim import Scenario, compare, simulate, with_policies
from evenly.sim.simulation import Simulation
from tests.sim.support import OPTIONS, scenario_of

ROOMY = 40  # a capacity that these systems never reach


@pytest.mark.parametrize("demand", [{"schedule": "0:3,4:0,8:6"}, {"schedule": "0:4~4/3,7:2~1/5"}], ids=str)
def test_all_policies_see_the_same_arrivals_and_departures(demand: dict[str, Any]) -> None:
    scenario = Scenario(pools=9, horizon=20.0, capacity=ROOMY, initial_tasks=1.5, service_rate=1.3, **demand)
    names = [name for name, info in POLICIES.items() if not info.sized]  # those take no capacity
    results = compare(with_policies(scenario, names), replications=2, seed=5, points=101)
    for result in results:
        assert result.lost_tasks == 0
        for seen, first in zip(result.trajectories, results[0].trajectories, strict=True):
            assert (
                seen.pools_at_least[:, 1:].sum(axis=1).tolist() == first.pools_at_least[:, 1:].sum(axis=1).tolist()
            )
        assert [sample.arrivals for sample in result.windows] == [sample.arrivals for sample in results[0].windows]
        assert result.mean_tasks == pytest.approx(results[0].mean_tasks, rel=1e-12)
    assert len({round(result.spread, 9) for result in results}) == len(names)


def test_a_comparison_is_what_each_simulation_finds_alone() -> None:
    scenarios = with_policies(scenario_of({"capacity": 5}, horizon=15.0), ["jsq", "pull"])
    for scenario, result in zip(scenarios, compare(scenarios, seed=5, replications=2), strict=True):
        assert result.scenario == scenario
        assert result.window.gap == simulate(scenario, seed=5, replications=2).window.gap


@pytest.mark.parametrize(("name", "rate"), [("learning", 0.3), ("random with capacity", 2.5), ("pull", 4.0)])
def test_the_service_rate_only_rescales_time(name: str, rate: float) -> None:
    options = {**OPTIONS[name], "service_rate": 1.0}
    plain = Simulation(scenario_of(options), np.random.SeedSequence(2))
    fast = Simulation(scenario_of({**options, "service_rate": rate}), np.random.SeedSequence(2))
    for _ in range(800):
        plain.advance(1e9, max_events=1)
        fast.advance(1e9, max_events=1)
        assert fast.at_least.tolist() == plain.at_least.tolist()
        assert fast.state["threshold"] == plain.state["threshold"]
        assert fast.time * rate == pytest.approx(plain.time, rel=1e-11)
    for count in ("arrivals", "lost", "green", "yellow", "resync"):
        assert fast.state[count] == plain.state[count]


def test_a_schedule_that_does_not_change_is_a_load() -> None:
    steps = simulate(Scenario(pools=8, schedule="0:2.5,3:2.5,7:2.5~0/2", alpha=0.8, horizon=20.0), seed=3)
    plain = simulate(Scenario(pools=8, load=2.5, alpha=0.8, horizon=20.0), seed=3)
    assert steps.events == plain.events
    np.testing.assert_allclose(steps.pools_with_exactly, plain.pools_with_exactly, rtol=1e-9, atol=1e-13)


# --- the boundary of the learning rule ---------------------------------------------------------------------


def after_first_arrival(pools: int, at_threshold: int, alpha: float | str) -> int:
    """Return the threshold, 1 at first, after a task found `at_threshold` pools with one task, the rest empty."""
    initial = [1] * at_threshold + [0] * (pools - at_threshold)
    scenario = Scenario(pools=pools, load=1000.0, alpha=alpha, threshold=1, initial_tasks=initial)
    simulation = Simulation(scenario, np.random.SeedSequence(1))
    simulation.advance(1.0, max_events=1)
    assert simulation.state["arrivals"] == 1
    return int(simulation.state["threshold"])


@pytest.mark.parametrize(
    ("alpha", "pools"),
    [
        ("0.57", 100),  # where floats would go wrong: int(0.57 * 100) is 56
        ("0.07", 100),
        ("0.5", 7),
    ],
)
def test_the_threshold_falls_exactly_up_to_the_fraction_alpha(alpha: str, pools: int) -> None:
    edge = next(count for count in range(pools, -1, -1) if Fraction(count, pools) <= Fraction(alpha))
    assert LearningRule(alpha).fall_at(pools) == edge
    assert after_first_arrival(pools, edge, alpha) == 0
    assert after_first_arrival(pools, edge, float(alpha)) == 0
    assert after_first_arrival(pools, edge + 1, alpha) == 1


def test_the_threshold_rises_when_all_pools_but_one_are_above_it() -> None:
    for above, expected in ((98, 0), (99, 1), (100, 1)):
        scenario = Scenario(pools=100, load=1000.0, alpha=0.5, initial_tasks=[1] * above + [0] * (100 - above))
        simulation = Simulation(scenario, np.random.SeedSequence(1))
        simulation.advance(1.0, max_events=1)
        assert simulation.state["arrivals"] == 1
        assert simulation.state["threshold"] == expected


def test_the_rule_looks_at_the_counts_right_before_the_task() -> None:
    # Two of five pools are empty, threshold 0: only the second task finds all pools but one above it.
    scenario = Scenario(pools=5, load=1000.0, alpha=0.5, initial_tasks=[1, 1, 1, 0, 0])
    simulation = Simulation(scenario, np.random.SeedSequence(1), keep_path=True)
    seen = []
    for _ in range(3):
        simulation.advance(1.0, max_events=1)
        seen.append((simulation.at_least.tolist(), int(simulation.state["threshold"])))
    assert seen == [([5, 4], 0), ([5, 5], 1), ([5, 5, 1], 1)]
    times, values = simulation.path
    assert values.tolist() == [1]
    assert 0 < times[0] < simulation.time
