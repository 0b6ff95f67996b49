"""The pure parts of figures 1 and 2 and of the claims of Sections 2 to 3.2."""

from math import log

import numpy as np
import pytest
from scipy.stats import poisson

from evenly.paper.claims.balance import balance_bound, tasks_missing
from evenly.paper.claims.equilibria import erlang_b, fullest_expected, theta_of_large, theta_of_small
from evenly.paper.claims.fluid import tail_excess
from evenly.paper.claims.model import utility_lost
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
from evenly.paper.figures import fig1, fig2
from evenly.paper.judge import empirical_reach
from evenly.sim import Scenario, simulate


def test_a_diagram_shows_all_cases_and_true_tokens() -> None:
    state = fig1.diagram(Lab(seed=3, quick=True))
    assert fig1.varied(list(state.tasks), fig1.THRESHOLD)
    assert list(state.tasks) == sorted(state.tasks)
    assert state.green == tuple(tasks < fig1.THRESHOLD for tasks in state.tasks)
    assert state.yellow == tuple(tasks <= fig1.THRESHOLD for tasks in state.tasks)
    assert sum(state.pools_at_least[1:]) == sum(state.tasks)


@pytest.mark.parametrize("tasks", [[5] * 12, [3, 4, 5, 5, 6, 6], [4, 4, 5, 5, 6, 6, 7]])
def test_dull_states_are_passed_over(tasks: list[int]) -> None:
    assert not fig1.varied(tasks, 5)


def test_rows_of_a_result_average_to_its_occupancy() -> None:
    run = simulate(Scenario(pools=50, load=2.5, horizon=5.0), replications=3)
    rows = fig2.occupancy_rows(run, 80)
    assert rows.shape[1] >= 80
    shares = run.averages.pools_with_exactly
    expected = np.cumsum(shares[::-1])[::-1]
    np.testing.assert_allclose(rows.mean(axis=0)[: shares.size], expected, atol=1e-12)


def test_captions_state_the_parameters() -> None:
    for figure, words in ((fig1, ("12 pools", "5.5", "seed 4")), (fig2, ("800 pools", "time 7 to 10", "seed 4"))):
        caption = figure.FIGURE.caption(Lab(seed=4, quick=True))
        assert all(word in caption for word in words)


def test_candidates_are_those_of_the_three_cases() -> None:
    assert candidates([4, 2, 3, 1], 3) == ("below", [3, 1])
    assert candidates([4, 3, 5, 3], 3) == ("at", [1, 3])
    assert candidates([4, 6, 5], 3) == ("anywhere", [0, 2, 1])


def test_uniform_choices_pass_and_others_do_not() -> None:
    ranks = np.random.default_rng(1).integers(0, 6, 2000).tolist()
    fair = uniforms([Placement("below", True, 6, rank, 1) for rank in ranks], seed=1)
    assert distance_from_uniform(fair) < empirical_reach(fair.size)
    first = uniforms([Placement("below", True, 6, 0, 2) for _ in ranks], seed=1)
    assert distance_from_uniform(first) > empirical_reach(first.size)
    assert uniforms([Placement("at", True, 1, 0, 1)], seed=1).size == 0
    assert distance_from_uniform(np.array([])) == 1.0


def test_pools_of_the_core_are_ordered_by_their_numbers_too() -> None:
    lab = Lab(seed=2, quick=True)
    for case in ("below", "at", "anywhere"):
        by_tasks, by_number = choices(lab, CORE, case)
        assert by_tasks.size == by_number.size > 200
        assert (by_tasks != by_number).any() or case == "at"  # pools at the threshold have as many tasks
        assert len(choices(lab, KERNEL, case)) == 1


def test_utility_is_lost_by_spread_alone() -> None:
    assert utility_lost(np.array([0, 0, 0.4, 0.6]), log) == pytest.approx(0)
    assert utility_lost(np.array([0, 0.5, 0, 0.5]), log) > 0.2


def test_the_laws_of_the_examples_have_the_load_as_their_mean() -> None:
    theta = theta_of_large(5.5, 6)
    law = erlang_b(6, 5.5 / (1 - theta))
    assert (law[6], law @ np.arange(7)) == pytest.approx((theta, 5.5))
    rate = 5.5 - 4 * (1 - theta_of_small(5.5, 3))
    levels = np.arange(4, 60)
    weights = poisson.pmf(levels, rate)
    assert levels @ weights / weights.sum() == pytest.approx(5.5)


def test_the_fullest_of_independent_pools() -> None:
    assert fullest_expected(1, np.array([0.25, 0.25, 0.5])) == pytest.approx(1.25)
    assert fullest_expected(10**6, np.array([0.25, 0.25, 0.5])) == pytest.approx(2.0)


def test_gaps_are_geometric() -> None:
    assert tasks_missing(5.5) == pytest.approx(5 / 6)


def test_a_tail_mass_that_falls_too_slowly_exceeds_its_bound() -> None:
    times = np.linspace(0, 2, 5)
    for rate, fits in ((1.0, True), (0.9, False)):
        occupancy = np.stack([np.ones(5), np.ones(5), 0.5 * np.exp(-rate * times)], axis=1)
        assert (tail_excess(occupancy, times, 1.0, 1, 0) <= 1e-12) is fits


def test_the_bound_of_the_distance_from_balance_knows_how_long_overload_lasts() -> None:
    assert balance_bound(5.5, 0.0, 0.0) == pytest.approx(7 * 5.5)
    assert balance_bound(5.5, 12.0, 2.0) == pytest.approx(12 * (5 + 2 * 13) * np.exp(-2))
