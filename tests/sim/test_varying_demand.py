"""Demand that varies: the total number of tasks is that of an infinite-server queue, known in closed form.

Started empty, the total at time t is Poisson with the mean m(t) that solves m' = pools * mu * load(t) - mu * m,
whatever the policy; arrivals in disjoint windows are Poisson. False-alarm rate: 1e-9 a comparison.
"""

import math

import numpy as np
import pytest

from evenly.sim import Phase, Result, Scenario, simulate
from tests.sim.support import assert_poisson

REPLICATIONS = 2500


def mean_after(phase: Phase, begin_mean: float, length: float, pools: int, rate: float) -> float:
    """Return m at a time `length` after the phase's start, where it is `begin_mean`."""
    decay = math.exp(-rate * length)
    omega = 2 * math.pi / phase.period
    wave = (rate * math.sin(omega * length) - omega * math.cos(omega * length) + omega * decay) / (
        rate**2 + omega**2
    )
    return begin_mean * decay + pools * (phase.load * (1 - decay) + phase.amplitude * rate * wave)


def mean_total(scenario: Scenario, time: float) -> float:
    mean = 0.0
    ends = [phase.start for phase in scenario.phases[1:]] + [math.inf]
    for phase, end in zip(scenario.phases, ends, strict=True):
        length = min(time, end) - phase.start
        mean = mean_after(phase, mean, length, scenario.pools, scenario.service_rate)
        if time <= end:
            break
    return mean


def integrated(phase: Phase, length: float) -> float:
    """Return the integral of the load over the phase's first `length`."""
    omega = 2 * math.pi / phase.period
    return phase.load * length + phase.amplitude * (1 - math.cos(omega * length)) / omega


def replicated(scenario: Scenario) -> Result:
    return simulate(scenario, seed=12, replications=REPLICATIONS, points=7)


STEPS = Scenario(policy="random", pools=3, schedule="0:4,2:0.5,3.5:6", service_rate=1.4, horizon=6.0)
WAVE = Scenario(policy="jiq", pools=4, schedule="0:2~2/2.5,3:3~1.5/1.7", service_rate=0.8, horizon=6.0)


def test_the_closed_form_solves_the_equation() -> None:
    for scenario in (STEPS, WAVE):
        for time in (0.4, 1.9, 2.7, 4.4, 5.5):
            slope = (mean_total(scenario, time + 1e-6) - mean_total(scenario, time - 1e-6)) / 2e-6
            inflow = scenario.pools * scenario.service_rate * scenario.demand(time)
            assert slope == pytest.approx(inflow - scenario.service_rate * mean_total(scenario, time), rel=1e-6)


@pytest.mark.parametrize("scenario", [STEPS, pytest.param(WAVE, marks=pytest.mark.full)], ids=["steps", "waves"])
def test_the_total_is_poisson_with_the_mean_of_the_fluid_equation(scenario: Scenario) -> None:
    result = replicated(scenario)
    totals = np.array([seen.pools_at_least[:, 1:].sum(axis=1)[:7] for seen in result.trajectories])
    assert totals.shape == (REPLICATIONS, 7)
    assert not totals[:, 0].any()
    for column, time in enumerate(result.trajectories[0].times.tolist()):
        if time > 0:
            assert_poisson(totals[:, column], mean_total(scenario, time))


@pytest.mark.parametrize("begin", [0.6, pytest.param(1.5, marks=pytest.mark.full)])
def test_arrivals_within_a_wave_are_poisson_with_the_integrated_rate(begin: float) -> None:
    end = begin + 0.9
    scenario = Scenario(pools=5, schedule="0:3~3/2.4", alpha=0.7, service_rate=1.6, horizon=end, warmup=begin)
    result = simulate(scenario, seed=13, replications=1500)
    phase = scenario.phases[0]
    mean = 5 * 1.6 * (integrated(phase, end) - integrated(phase, begin))
    assert_poisson([sample.arrivals for sample in result.windows], mean)


def test_arrivals_and_departures_add_up_to_the_tasks_left() -> None:
    for scenario in (STEPS, WAVE):
        result = simulate(scenario, seed=14, replications=20, points=2)
        for sample, seen in zip(result.windows, result.trajectories, strict=True):
            departures = sample.events - sample.arrivals
            assert sample.arrivals - departures == seen.pools_at_least[-1, 1:].sum()
