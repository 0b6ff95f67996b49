"""Simulated systems of growing size, on one probability space, approach the fluid solution like n^(-1/2).

False alarms. The largest distance of a run scatters by about a third of its mean from seed to seed (printed
below when a test fails), so the logarithm of a root mean square over eight seeds has a standard error near 0.12,
and the slope over sizes 10^2 to 10^5 one near 0.12 / 5.1 = 0.023. The bounds -1/2 +- 0.15 are more than six of
these away: below 1e-9. The distance times n^(1/2) is 3 to 6 on average and scatters by 2 at most: for eight seeds
together 12 is more than seven standard errors away, for a single run 20 is.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evenly.sim.coupling.sizes import simulate_sizes
from evenly.theory.fluid.predict import predict_fluid
from evenly.theory.tuning import settle_time_bound
from examples.fluid_limit import LEARNING, SIZES, STATIC, Case, distances, main, slope


@pytest.mark.long
@pytest.mark.parametrize(
    "case", [pytest.param(STATIC, marks=pytest.mark.full), LEARNING], ids=["static", "learning"]
)
def test_the_distance_falls_like_one_over_sqrt_n(case: Case) -> None:
    found = distances(case, SIZES, range(1, 9))
    spread = found.std(axis=0) / found.mean(axis=0)
    assert -0.65 < slope(SIZES, found) < -0.35, spread
    scaled = np.sqrt(np.mean(found**2, axis=0) * np.array(SIZES))
    assert np.all(scaled < 12), spread
    assert np.all(np.diff(found.mean(axis=0)) < 0)


@pytest.mark.full
@pytest.mark.parametrize(
    "wrong",
    [replace(STATIC, threshold=4), replace(STATIC, load=5.7), replace(LEARNING, alpha="0.6")],
    ids=["threshold", "load", "alpha"],
)
def test_the_distance_to_a_wrong_limit_does_not_fall(wrong: Case) -> None:
    """Shows that the test above can fail: for a wrong case, the distance stays far above 12 n^(-1/2) = 0.04."""
    case = LEARNING if wrong.alpha else STATIC
    run = simulate_sizes(case.scenario(), pools=[100_000], seed=1, points=601)[0]
    limit = wrong.limit().occupancy
    levels = min(run.occupancy.shape[1], limit.shape[1])
    assert np.max(np.abs(run.occupancy[:, :levels] - limit[:, :levels])) > 0.07


@pytest.mark.parametrize("case", [LEARNING, replace(LEARNING, initial=0.0, threshold=0)], ids=["full", "empty"])
def test_the_threshold_changes_at_the_times_of_the_limit(case: Case) -> None:
    """In a large system, the changes are those of the fluid limit, at nearly the same times.

    An occupancy deviates by about (load / n)^(1/2), and a crossing by that divided by its speed.
    """
    size = 200_000
    limit = case.limit()
    run = simulate_sizes(replace(case, horizon=3.0).scenario(), pools=[size], seed=2, points=2)[0]
    assert run.change_thresholds.tolist() == limit.change_thresholds.tolist()
    before, short = int(limit.threshold[0]), 1e-4
    for found, time, after in zip(run.change_times, limit.change_times, limit.change_thresholds, strict=True):
        level, goal = max(before, int(after)), 1.0 if after > before else 0.93
        just = replace(case, horizon=float(time) - short).limit().occupancy[-1][level]
        assert abs(found - time) < 7 * np.sqrt(case.load / size) / (abs(just - goal) / short)
        before = int(after)


@pytest.mark.full
def test_a_large_system_has_settled_by_the_bound_and_approaches_balance() -> None:
    """Cor. 3, with its constant: after the bound, all pools have floor(load) tasks, so the mass above differs
    from load - floor(load) as the total mass differs from the load, and higher levels only lose tasks."""
    size, horizon = 200_000, 12.0
    bound = settle_time_bound(load=LEARNING.load, alpha="0.93", initial_tasks=LEARNING.initial)
    assert bound is not None
    run = simulate_sizes(replace(LEARNING, horizon=horizon).scenario(), pools=[size], seed=4, points=481)[0]
    later = run.times >= bound
    assert np.all(run.threshold[later] == 5)
    noise = 7 * np.sqrt(LEARNING.load / size)  # seven deviations of the diffusion limit
    q = run.occupancy[later]
    # Gaps below 5 appear at rate 5 (1 - q(6)) n and are filled at rate 5.5 n: nearly geometric with a ratio below
    # 1/2, so 60 at the same time have a probability below 1e-15.
    assert np.all(1 - q[:, :6] < 60 / size)
    constant = (LEARNING.initial - LEARNING.load + LEARNING.initial) * np.exp(-bound)
    for level, balanced in ((6, 0.5), (7, 0.0), (8, 0.0)):
        gap = np.abs(q[:, level] - balanced)
        assert np.all(gap <= constant * np.exp(bound - run.times[later]) + noise)


def test_simulation_and_limit_agree_after_load_steps() -> None:
    schedule = "0:5.5,2:8.3,4:2.2"
    limit = predict_fluid(schedule=schedule, alpha="0.9", horizon=6.0, points=121)
    scenario = replace(
        LEARNING.scenario(), load=None, schedule=schedule, alpha="0.9", threshold=0, initial_tasks=0
    )
    for size in (1_000, 100_000):
        run = simulate_sizes(scenario, pools=[size], seed=3, points=121)[0]
        levels = min(run.occupancy.shape[1], limit.occupancy.shape[1])
        gap = np.max(np.abs(run.occupancy[:, :levels] - limit.occupancy[:, :levels]))
        assert gap < 20 / np.sqrt(size)


def test_the_example_runs_with_small_systems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--sizes", "20", "80", "--seeds", "2", "--out", str(tmp_path / "x.png")])
    assert (tmp_path / "x.png").stat().st_size > 10_000
    assert capsys.readouterr().out.count("slope") == 2
