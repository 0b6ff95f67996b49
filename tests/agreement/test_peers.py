"""Simulations of many pools settle in the predicted equilibria.

Every comparison has a false-alarm rate of 1e-9, from Student's law over 16 independent replications. The effect
of the start is of order exp(-15), and the mean over finitely many pools differs from the limit by
terms of order 1 / pools; the slack covers both. The interval's width is of order 1 / sqrt(pools).
"""

from typing import Any

import numpy as np
import pytest

from evenly.sim import Scenario, simulate
from evenly.sim.tally import averages
from evenly.theory.balance import FloatArray
from evenly.theory.equilibrium import predict_equilibrium
from evenly.theory.other_policies import power_of_d_fixed_point
from tests.sim.support import assert_mean

NOT_RARE = 0.002


def simulated_occupancy(options: dict[str, Any], pools: int, load: float, window: float) -> FloatArray:
    """Return time averages of the occupancy, one row per replication."""
    scenario = Scenario(pools=pools, load=load, initial_tasks=load, warmup=15.0, horizon=15.0 + window, **options)
    result = simulate(scenario, seed=41, replications=16, mean_holding_times=True)
    rows = [averages(sample, pools).pools_with_exactly for sample in result.windows]
    levels = max(map(len, rows))
    shares = np.array([np.pad(row, (0, levels - len(row))) for row in rows])
    return np.cumsum(shares[:, ::-1], axis=1)[:, ::-1]


def assert_settled(rows: FloatArray, limit: FloatArray, slack: float) -> None:
    for level in np.flatnonzero((limit > NOT_RARE) & (limit < 1 - NOT_RARE)):
        assert_mean(rows[:, level], float(limit[level]), f"level {level}", slack=slack)


@pytest.mark.full
def test_power_of_two_settles_in_its_fixed_point() -> None:
    rows = simulated_occupancy({"policy": "power-of-d", "sample_size": 2}, 20_000, 10.5, 2.0)
    assert_settled(rows, power_of_d_fixed_point(load=10.5, sample_size=2), slack=5 / 20_000)
    with pytest.raises(AssertionError, match="level"):
        assert_settled(rows, power_of_d_fixed_point(load=10.5, sample_size=3), slack=5 / 20_000)
    with pytest.raises(AssertionError, match="level"):
        assert_settled(rows, power_of_d_fixed_point(load=10.7, sample_size=2), slack=5 / 20_000)


@pytest.mark.parametrize(
    "options",
    [{"policy": "power-of-d", "sample_size": 4}, {"policy": "random"}],
    ids=lambda options: str(options["policy"]),
)
def test_other_policies_settle_in_their_equilibrium(options: dict[str, Any]) -> None:
    rows = simulated_occupancy(options, 4000, 5.5, 8.0)
    assert_settled(rows, predict_equilibrium(load=5.5, **options).occupancy, slack=5 / 4000)


@pytest.mark.parametrize("threshold", [2, 3, 4, 6, 7, 8])
def test_fixed_thresholds_settle_in_their_equilibrium(threshold: int) -> None:
    rows = simulated_occupancy({"threshold": threshold}, 4000, 5.5, 8.0)
    assert_settled(rows, predict_equilibrium(load=5.5, threshold=threshold).occupancy, slack=5 / 4000)
    neighbour = threshold + 1 if threshold in (2, 3, 6, 7) else threshold - 1
    with pytest.raises(AssertionError, match="level"):
        assert_settled(rows, predict_equilibrium(load=5.5, threshold=neighbour).occupancy, slack=5 / 4000)
