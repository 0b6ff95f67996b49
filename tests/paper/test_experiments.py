"""The experiments: their parameters, their measurements, and the demand of Fig. 6."""

from functools import partial
from math import floor, log

import numpy as np
import pytest

from evenly.paper.claims.judge import empirical_reach
from evenly.paper.experiments.events import (
    CORE,
    KERNEL,
    Placement,
    candidates,
    choices,
    distance_from_uniform,
    uniforms,
)
from evenly.paper.experiments.lab import Lab
from evenly.paper.experiments.learned_threshold import LearnedThreshold, ratio_samples
from evenly.paper.experiments.printed_coupling import printed_differences
from evenly.paper.experiments.random_starts import random_cases
from evenly.paper.experiments.settling import SettlingRuns, scatter
from evenly.paper.experiments.snapshot import Snapshot, state, varied
from evenly.paper.experiments.varying_demand import (
    JUMPS,
    LOAD_MAX,
    PAPER,
    SLOW,
    SWIFT,
    VaryingDemand,
    time_at,
)
from evenly.paper.experiments.wrong_threshold import WrongThresholds, nearest_wrong, occupancy_rows
from evenly.sim import Scenario, simulate
from evenly.workload.demand import Phase

TIMES, VALUES = np.array([1.0, 2.0, 4.0]), np.array([1, 2, 1])


def test_a_seed_gives_the_same_numbers_in_every_process_and_other_ones_for_each_purpose() -> None:
    assert Lab(seed=3).seed_for("x") == 15280150086211256797
    assert Lab(seed=3).seed_for("y") != 15280150086211256797


def test_time_at_each_threshold_from_its_changes() -> None:
    shares = time_at(TIMES, VALUES, 0, (0.0, 8.0))
    assert shares == pytest.approx({0: 1 / 8, 1: 5 / 8, 2: 2 / 8})


@pytest.mark.parametrize(
    ("span", "expected"),
    [((0.0, 0.5), {0: 1.0}), ((2.0, 4.0), {2: 1.0}), ((3.0, 5.0), {2: 0.5, 1: 0.5})],
)
def test_a_span_begins_with_the_last_change_before_it(
    span: tuple[float, float], expected: dict[int, float]
) -> None:
    assert time_at(TIMES, VALUES, 0, span) == pytest.approx(expected)


def test_samples_of_a_ratio_have_its_mean_and_no_spread_if_it_is_constant() -> None:
    below = np.array([1.0, 2.0, 4.0])
    assert ratio_samples(3 * below, below) == pytest.approx(3.0)
    assert ratio_samples(np.array([2.0, 3.0, 9.0]), below).mean() == pytest.approx(2.0)


def test_scatter_is_deviation_over_speed() -> None:
    """From an empty system the tasks are Poisson: at log(11) there are 5 per pool, growing at speed 0.5."""
    assert scatter(500, 5.5, 0, log(11)) == pytest.approx(np.sqrt(5 / 500) / 0.5)


def test_the_demand_of_figure_6_fits_the_text() -> None:
    demand = PAPER.scenario.demand
    just = 1e-9
    for time, load in JUMPS.items():
        assert demand(time) == load
        assert time == 0 or abs(demand(time - just) - load) > 1
    for edge in (*SWIFT, *SLOW):
        assert demand(edge) == pytest.approx(demand(edge - just), abs=1e-6)
    swift = [demand(time) for time in np.linspace(*SWIFT, 500)]
    slow = [demand(time) for time in np.linspace(*SLOW, 500)]
    assert len({floor(load) for load in swift}) == 1 < len({floor(load) for load in slow})
    assert max(swift) - min(swift) < 1 < max(slow) - min(slow)
    assert max(*swift, *slow, *JUMPS.values()) <= LOAD_MAX


def test_a_snapshot_shows_all_cases_and_correct_tokens() -> None:
    shown = state(Lab(seed=3), Snapshot())
    assert shown.varied
    assert varied(list(shown.tasks), 5)
    assert list(shown.tasks) == sorted(shown.tasks)
    assert shown.green == tuple(tasks < 5 for tasks in shown.tasks)
    assert shown.yellow == tuple(tasks <= 5 for tasks in shown.tasks)
    assert sum(shown.pools_at_least[1:]) == sum(shown.tasks)


@pytest.mark.parametrize("tasks", [[5] * 12, [3, 4, 5, 5, 6, 6], [4, 4, 5, 5, 6, 6, 7]])
def test_states_without_every_case_are_skipped(tasks: list[int]) -> None:
    assert not varied(tasks, 5)


def test_rows_of_a_result_average_to_its_occupancy() -> None:
    run = simulate(Scenario(pools=50, load=2.5, horizon=5.0), replications=3)
    rows = occupancy_rows(run, 80)
    assert rows.shape[1] >= 80
    shares = run.pools_with_exactly
    expected = np.cumsum(shares[::-1])[::-1]
    np.testing.assert_allclose(rows.mean(axis=0)[: shares.size], expected, atol=1e-12)


def test_candidates_are_those_of_the_three_cases() -> None:
    assert candidates([4, 2, 3, 1], 3) == ("below", [3, 1])
    assert candidates([4, 3, 5, 3], 3) == ("at", [1, 3])
    assert candidates([4, 6, 5], 3) == ("anywhere", [0, 2, 1])


def test_uniform_choices_pass_and_biased_ones_do_not() -> None:
    ranks = np.random.default_rng(1).integers(0, 6, 2000).tolist()
    fair = uniforms([Placement("below", True, 6, rank, 1) for rank in ranks], seed=1)
    assert distance_from_uniform(fair) < empirical_reach(fair.size)
    first = uniforms([Placement("below", True, 6, 0, 2) for _ in ranks], seed=1)
    assert distance_from_uniform(first) > empirical_reach(first.size)
    assert uniforms([Placement("at", True, 1, 0, 1)], seed=1).size == 0
    assert distance_from_uniform(np.array([])) == 1.0


def test_pools_of_the_core_are_also_ranked_by_their_numbers() -> None:
    lab = Lab(seed=2, quick=True)
    for case in ("below", "at", "anywhere"):
        by_tasks, by_number = choices(lab, CORE, case)
        assert by_tasks.size == by_number.size > 200
        assert (by_tasks != by_number).any() or case == "at"  # pools at the threshold have equally many tasks
        assert len(choices(lab, KERNEL, case)) == 1


def test_a_snapshot_without_variety_is_the_first_state_after_the_warm_up() -> None:
    shown = state(Lab(), Snapshot(pools=6, load=0.6))
    assert not shown.varied
    assert 5.0 <= shown.time < 10.0
    assert not any(shown.green)  # no pool is below a threshold of 0


@pytest.mark.parametrize(
    ("load", "thresholds"),
    [(5.0, (6, 7, 8, 1, 2, 3)), (2.5, (3, 4, 5, 0, 1)), (0.5, (2, 3, 4))],
)
def test_the_nearest_wrong_thresholds_leave_out_the_optimal_ones(load: float, thresholds: tuple[int, ...]) -> None:
    assert nearest_wrong(load) == thresholds
    setup = WrongThresholds(load=load, thresholds=thresholds)
    assert setup.large + setup.small == thresholds


def test_work_with_the_same_key_is_done_once() -> None:
    lab = Lab()
    done: list[float] = []
    for setup in (SettlingRuns(), SettlingRuns(), SettlingRuns(load=7.3)):
        lab.once(("x", setup), partial(done.append, setup.load))
    assert done == [5.5, 7.3]


def test_long_runs_of_large_systems_are_shorter() -> None:
    setup = LearnedThreshold(pools=(100, 400, 40_000))
    assert [setup.long_run_of(pools) for pools in (100, 400)] == [60_000.0, 60_000.0]
    assert 2 * 2.9 * 40_000 * setup.long_run_of(40_000) == pytest.approx(1.5e8)
    assert LearnedThreshold(long_run=7.0).long_run_of(40_000) == 7.0


def test_the_horizon_shows_the_bounds() -> None:
    assert SettlingRuns().end == 7.0
    late = SettlingRuns(load=5.001)
    assert late.end > (late.bound(0) or 0.0) > 7.0
    assert SettlingRuns(load=5.001, horizon=2.0).end == 2.0


def test_jumps_and_waves_are_read_from_the_schedule() -> None:
    assert PAPER.jumps == list(JUMPS)
    waves = [(start, end) for phase, start, end in PAPER.spans if phase.amplitude]
    assert waves == [SWIFT, SLOW]
    wave = Phase(0.0, 3.0), Phase(4.0, 3.0, 1.0, 2.0)
    assert VaryingDemand(schedule=(*wave, Phase(7.0, 3.0))).jumps == []  # the wave ends at its mean
    assert VaryingDemand(schedule=(*wave, Phase(6.5, 3.0))).jumps == [6.5]  # at its peak
    assert VaryingDemand(schedule=wave, initial_tasks=2).jumps == [0.0]
    assert VaryingDemand(schedule=wave).peak == 4.0


def test_random_cases_are_occupancies_and_some_fill_their_threshold() -> None:
    cases = random_cases(np.random.default_rng(1), 200)
    for case in cases:
        assert case.occupancy[0] == 1
        assert (np.diff(case.occupancy) <= 0).all()
        tasks = case.tasks(10_000)
        levels = np.arange(len(case.occupancy))
        assert (tasks[:, None] >= levels).mean(axis=0) == pytest.approx(case.occupancy, abs=1e-3)
    assert sum(case.load == round(case.load) for case in cases) > 20
    assert sum(case.threshold + 1 > case.load for case in cases) > 50
    assert sum(case.threshold + 1 <= case.load for case in cases) > 50


def test_the_printed_coupling_fails_only_where_empty_pools_can_be_picked() -> None:
    """Below load 1 all tasks are in full pools, so that the printed coupling is right."""
    rng = np.random.default_rng(1)
    assert printed_differences(pools=10, load=0.7, events=500, rng=rng) == (0, 0)
    differ, empty = printed_differences(pools=10, load=2.5, events=500, rng=rng)
    assert min(differ, empty) > 0
