"""The formulas and bounds that claims compare measurements with."""

from math import log

import numpy as np
import pytest

from evenly.paper.claims.balance import balance_bound, tasks_missing
from evenly.paper.claims.demand import first_time_at
from evenly.paper.claims.diffusion import WHOLE
from evenly.paper.claims.diffusion_starts import SCALED, fractional_start, initial_vector, whole_start
from evenly.paper.claims.equilibria import erlang_b, fullest_expected, theta_of_large, theta_of_small
from evenly.paper.claims.masses import varying_bound
from evenly.paper.claims.model import utility_lost
from evenly.paper.claims.tails import tail_excess

TIMES, VALUES = np.array([1.0, 2.0, 4.0]), np.array([1, 2, 1])


def test_only_spread_loses_utility() -> None:
    assert utility_lost(np.array([0, 0, 0.4, 0.6]), log) == pytest.approx(0)
    assert utility_lost(np.array([0, 0.5, 0, 0.5]), log) > 0.2


def test_the_laws_of_the_examples_have_the_load_as_their_mean() -> None:
    from scipy.stats import poisson

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
        assert (tail_excess(occupancy, times, 2, 0.0) <= 1e-12) is fits


def test_the_bound_for_a_varying_function_is_the_integral_of_the_lemma() -> None:
    times = np.array([0.0, 1.0, 3.0])
    bound = varying_bound(2.0, np.array([4.0, -1.0]), times)
    first = 2 * np.exp(-1) + 4 * (1 - np.exp(-1))
    assert bound == pytest.approx([2.0, first, first * np.exp(-2) - (1 - np.exp(-2))])


def test_the_bound_on_the_distance_from_balance_depends_on_how_long_overload_lasts() -> None:
    assert balance_bound(5.5, 0.0, 0.0) == pytest.approx(7 * 5.5)
    assert balance_bound(5.5, 12.0, 2.0) == pytest.approx(12 * (5 + 2 * 13) * np.exp(-2))


def test_first_time_at_a_threshold() -> None:
    assert first_time_at(TIMES, VALUES, 2, (1.5, 8.0)) == 0.5
    assert first_time_at(TIMES, VALUES, 1, (1.5, 8.0)) == 2.5
    assert first_time_at(TIMES, VALUES, 7, (1.5, 8.0)) == 6.5


def test_the_unbalanced_starts_satisfy_the_assumptions_of_the_theorems() -> None:
    """On the scale of sqrt(n) only Z is off balance at a fractional load, and all of `SCALED` at a whole one."""
    y, z, *levels = initial_vector(fractional_start(160_000, 3.0))
    assert z == 3.0
    assert [y, *levels] == pytest.approx([0.05] * 3)
    counts = np.bincount(whole_start(160_000)) / 400
    above = np.cumsum(counts[::-1])[::-1][WHOLE + 1 :]
    assert above.tolist() == list(SCALED[1:])
    assert counts[: WHOLE - 1].sum() == pytest.approx(0.05)
    assert counts[:WHOLE].sum() == SCALED[0]
