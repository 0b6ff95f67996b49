"""Memory of the aggregate kernel does not grow with the number of pools."""

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest

from evenly.sim import Scenario
from evenly.sim.simulation import Simulation
from tests.sim.support import assert_poisson

AGGREGATE: list[dict[str, Any]] = [
    {"alpha": 0.9},
    {"policy": "jsq"},
    {"policy": "power-of-d", "choices": 3},
    {"policy": "random", "capacity": 9},
]


def small_run(pools: int, options: dict[str, Any]) -> Simulation:
    simulation = Simulation(
        Scenario(pools=pools, load=5.5, initial_tasks=5.5, **options), np.random.SeedSequence(1)
    )
    simulation.advance(1e9, max_events=20_000)
    return simulation


@pytest.mark.parametrize("options", AGGREGATE, ids=str)
def test_a_million_pools_take_no_more_memory_than_a_hundred(options: dict[str, Any]) -> None:
    small_run(100, options)  # compiles
    peaks = []
    for pools in (100, 10**6, 10**9):
        tracemalloc.start()
        try:
            simulation = small_run(pools, options)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert simulation.state["events"] == 20_000
        assert int(simulation.at_least[0]) == pools
    assert max(peaks) < 200_000
    assert max(peaks) < 1.5 * peaks[0]


def test_a_million_pools_get_tasks_at_the_right_rate() -> None:
    simulation = Simulation(Scenario(policy="jsq", pools=10**6, load=5.5), np.random.SeedSequence(1))
    arrivals = [0]
    for tenth in range(1, 21):
        simulation.advance(tenth / 100)
        arrivals.append(int(simulation.state["arrivals"]))
    assert_poisson(np.diff(arrivals), 55_000.0)
    # Started empty the total is Poisson, near enough to normal to lie within seven deviations (2.6e-12).
    mean = 5.5e6 * (1 - math.exp(-0.2))
    assert abs(int(simulation.state["total"]) - mean) < 7 * math.sqrt(mean)
    assert simulation.at_least.size <= 3  # jsq keeps all on two levels
