"""Limits of other policies against forward recursion in 100 digits, closed forms and Runge-Kutta steps."""

from collections.abc import Callable
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from evenly.errors import InputError
from evenly.theory.balance import FloatArray, balanced_occupancy
from evenly.theory.equilibrium import predict_equilibrium
from evenly.theory.fluid.other_policies import power_of_d_fluid, random_fluid
from evenly.theory.other_policies import jsq_fixed_point, power_of_d_fixed_point, random_fixed_point
from tests import distributions as stats
from tests.tiers import rest_in_full

CASES = [(0.05, 2), (0.8, 2), (1.0, 3), (2.5, 2), (5.5, 5), (10.5, 2), (10.5, 3), (30.25, 2)]


def padded(q: FloatArray, levels: int) -> FloatArray:
    return np.pad(q, (0, max(0, levels - len(q))))[:levels]


# --- fixed points ------------------------------------------------------------------------------------------


def forward_recursion(load: float, sample_size: int, digits: int = 100) -> list[Decimal]:
    """Return the fixed point from its equation, level by level, with q_1 found by bisection.

    Solved for q_{i+1}, the equation gives all levels from q_1. Errors grow by a factor of about d per level below
    the load and faster above it: if q_1 is too large, some q_{i+1} exceeds q_i; if too small, it is negative.
    """
    with localcontext() as context:
        context.prec = digits
        low, high, best = Decimal(0), Decimal(1), [Decimal(1)]
        for _ in range(3 * digits):  # bisections: a digit takes three and a third
            q = [Decimal(1), (low + high) / 2]
            while 0 <= q[-1] <= q[-2] and len(q) < 1000:
                i = len(q) - 1
                q.append(q[-1] - Decimal(load) * (q[-2] ** sample_size - q[-1] ** sample_size) / i)
            if q[-1] < 0:
                low = q[1]
            else:
                high = q[1]
            best = q[:-1]
        return best


@pytest.mark.parametrize(("load", "sample_size"), rest_in_full(CASES, 4))
def test_the_fixed_point_agrees_with_the_recursion(load: float, sample_size: int) -> None:
    exact = [float(value) for value in forward_recursion(load, sample_size)]
    assert exact[-1] < 1e-6  # no level that matters is missing
    found = padded(power_of_d_fixed_point(load=load, sample_size=sample_size), len(exact))
    keep = np.array(exact) > 1e-6  # the recursion breaks off at the last levels
    assert_allclose(found[keep], np.array(exact)[keep], rtol=0, atol=1e-13)


def test_the_fixed_point_at_the_load_of_fig_5() -> None:
    found = power_of_d_fixed_point(load=10.5)
    assert_allclose(found[9:14], [0.907076, 0.777600, 0.548569, 0.258642, 0.053864], atol=5e-7)


@pytest.mark.parametrize(
    ("load", "sample_size"),
    [
        *[(0.001, 2), (0.001, 512), (0.5, 3), (1.0, 1), (1.0, 100), (3.0, 2), (3.0, 512), (10.5, 2), (10.5, 10)],
        *[(99.9, 1), (99.9, 3), (99.9, 512), (1000.0, 2), (1000.0, 100), (1234.5, 1), (1234.5, 512)],
    ],
)
def test_the_fixed_point_satisfies_its_equation_and_has_the_right_mass(load: float, sample_size: int) -> None:
    q = np.append(power_of_d_fixed_point(load=load, sample_size=sample_size), [0.0, 0.0])
    levels = np.arange(1, len(q) - 1)
    gap = load * (q[:-2] ** sample_size - q[1:-1] ** sample_size) - levels * (q[1:-1] - q[2:])
    # A rounding error of q near 1 is multiplied by load * d in the first term.
    assert_allclose(gap, 0.0, atol=max(1e-14, 1e-15 * load * sample_size))
    assert q[1:].sum() == pytest.approx(load, rel=1e-13)
    assert q[0] == 1
    assert (np.diff(q) <= 0).all()
    assert (q[1:-1] <= np.minimum(1.0, load / levels) * q[:-2] + 1e-14).all()  # bounds the levels left out


@pytest.mark.parametrize("load", [0.01, 0.5, 3.0, 10.5, 250.0, 1e4])
def test_random_assignment_is_poisson(load: float) -> None:
    found = random_fixed_point(load)
    law = stats.poisson.sf(np.arange(len(found)) - 1, load)
    assert_allclose(found, law, atol=1e-13)
    assert stats.poisson.sf(len(found) - 1, load) < 1e-19
    assert_allclose(padded(power_of_d_fixed_point(load=load, sample_size=1), len(law)), law, atol=1e-12)


def test_more_choices_balance_the_load_better() -> None:
    load, levels = 7.3, 40
    balanced = balanced_occupancy(load, levels)
    laws = [
        padded(power_of_d_fixed_point(load=load, sample_size=sample_size), levels)
        for sample_size in (1, 2, 3, 5, 20, 500)
    ]
    tails = [np.cumsum(q[::-1])[::-1] for q in (*laws, balanced)]
    for fewer, more in pairwise(tails):
        assert (more <= fewer + 1e-12).all()
        assert (more < fewer - 1e-4).any()
    assert_allclose(laws[-1], balanced, atol=0.03)


def test_the_shortest_queue_balances_the_load() -> None:
    assert_allclose(jsq_fixed_point(2.25), [1, 1, 1, 0.25])
    assert_allclose(jsq_fixed_point(3.0), [1, 1, 1, 1])


def test_policies_are_selected_by_name() -> None:
    assert_allclose(predict_equilibrium(policy="jsq", load=2.25).occupancy, jsq_fixed_point(2.25))
    assert_allclose(predict_equilibrium(policy="random", load=2.25).occupancy, random_fixed_point(2.25))
    assert_allclose(
        predict_equilibrium(policy="power-of-d", load=2.25).occupancy,
        power_of_d_fixed_point(load=2.25, sample_size=2),
    )
    assert_allclose(
        predict_equilibrium(policy="power-of-d", load=2.25, sample_size=4).occupancy,
        power_of_d_fixed_point(load=2.25, sample_size=4),
    )


# --- fluid solutions ---------------------------------------------------------------------------------------


def runge_kutta(load: float, sample_size: int, start: FloatArray, horizon: float, steps: int) -> FloatArray:
    """Return the occupancy at the horizon, by the classical method, level by level as in the equation."""

    def slope(q: FloatArray) -> FloatArray:
        change = np.zeros(len(q))
        for i in range(1, len(q)):
            above = q[i + 1] if i + 1 < len(q) else 0.0
            change[i] = load * (q[i - 1] ** sample_size - q[i] ** sample_size) - i * (q[i] - above)
        return change

    q, step = start, horizon / steps
    for _ in range(steps):
        one = slope(q)
        two = slope(q + step / 2 * one)
        three = slope(q + step / 2 * two)
        q = q + step / 6 * (one + 2 * two + 2 * three + slope(q + step * three))
    return q


@pytest.mark.parametrize("sample_size", [2, 4])
def test_the_fluid_solution_agrees_with_runge_kutta(sample_size: int) -> None:
    start = np.array([1.0, 0.9, 0.4, 0.4, 0.1])
    path = power_of_d_fluid(load=3.2, sample_size=sample_size, initial_occupancy=start, horizon=1.5, points=4)
    times, found = path.times, path.occupancy
    assert_allclose(times, [0, 0.5, 1.0, 1.5])
    assert_allclose(found[0], padded(start, found.shape[1]))
    for row in (1, 3):
        steps = runge_kutta(3.2, sample_size, padded(start, 25), times[row], 100 * row)  # errors of about 1e-9
        assert_allclose(padded(found[row], 25), steps, atol=2e-8)


def thinned_and_joined(exactly: FloatArray, load: float, time: float) -> FloatArray:
    """Return the law of a pool under random assignment: survivors of the initial tasks plus a Poisson number."""
    stays = np.exp(-time)
    levels = np.arange(len(exactly))
    left = sum(share * stats.binom.pmf(levels, count, stays) for count, share in enumerate(exactly))
    return np.convolve(np.asarray(left), stats.poisson.pmf(np.arange(200), load * (1 - stays)))


@pytest.mark.parametrize("load", [0.4, 6.5, 60.0])
def test_random_assignment_over_time_has_a_closed_form(load: float) -> None:
    start = np.array([1.0, 0.9, 0.9, 0.6, 0.4, 0.4, 0.4])
    exactly = start - np.append(start[1:], 0.0)
    path = random_fluid(load=load, initial_occupancy=start, horizon=3.0, points=13)
    for time, q in zip(path.times, path.occupancy, strict=True):
        law = thinned_and_joined(exactly, load, time)
        at_least = np.cumsum(law[::-1])[::-1]
        levels = min(len(at_least), len(q))
        assert_allclose(q[:levels], at_least[:levels], atol=2e-9)


@pytest.mark.parametrize(
    ("load", "sample_size", "initial"),
    [(0.8, 2, 14.5), (3.0, 1, 14.5), (10.5, 2, 0), (10.5, 2, 14.5), (10.5, 3, 14.5), (30.25, 2, 0)],
)
def test_the_fluid_solution_settles_in_the_fixed_point(load: float, sample_size: int, initial: float) -> None:
    path = power_of_d_fluid(load=load, sample_size=sample_size, initial_tasks=initial, horizon=40.0, points=81)
    times, found = path.times, path.occupancy
    mass = load + (initial - load) * np.exp(-times)
    assert_allclose(found[:, 1:].sum(axis=1), mass, atol=1e-8 * (1 + load))
    fixed = padded(power_of_d_fixed_point(load=load, sample_size=sample_size), found.shape[1])
    assert_allclose(found[-1], fixed, atol=1e-10)
    assert_allclose(found[0], balanced_occupancy(initial, found.shape[1]))
    assert (np.diff(found, axis=1) <= 1e-9).all()


def test_equilibria_of_all_policies_have_the_same_keys() -> None:
    own = predict_equilibrium(load=2.25, threshold=5).to_dict()
    assert (own["policy"], own["choices"]) == ("threshold", None)
    for policy, sample_size in (("jsq", None), ("random", None), ("power-of-d", 4)):
        found = predict_equilibrium(policy=policy, load=2.25, sample_size=sample_size)
        facts = found.to_dict()
        assert facts.keys() == own.keys()
        assert facts["choices"] == found.sample_size == sample_size
        assert_allclose(np.cumsum(found.pools_with_exactly[::-1])[::-1], found.occupancy, atol=1e-15)


def test_the_default_threshold_is_optimal() -> None:
    assert predict_equilibrium(load=2.25) == predict_equilibrium(load=2.25, threshold=2)
    assert predict_equilibrium(policy="power-of-d", load=2.25).sample_size == 2


# --- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "options", "words"),
    [
        (power_of_d_fixed_point, {"load": 0}, "load must be a positive number of at most 100000, not 0"),
        (power_of_d_fixed_point, {"sample_size": 0}, "sample_size must be a whole number from 1 to 512, not 0"),
        (
            predict_equilibrium,
            {"policy": "random", "load": -1.0},
            "load must be a positive number of at most 100000, not -1",
        ),
        (predict_equilibrium, {"policy": "pull"}, "one of threshold, jsq, power-of-d, random, not 'pull'"),
        (
            predict_equilibrium,
            {"policy": "jsq", "sample_size": 2},
            "sample_size is for policy power-of-d, not jsq",
        ),
        (predict_equilibrium, {"policy": "jsq", "kind": "large"}, "kind is for policy threshold, not jsq"),
        (predict_equilibrium, {"sample_size": 2}, "sample_size is for policy power-of-d, not threshold"),
        (
            power_of_d_fluid,
            {"initial_tasks": -1.0},
            "initial_tasks must be a number from 0 to 3000, not -1",
        ),
        (power_of_d_fluid, {"initial_tasks": 1, "initial_occupancy": [1.0]}, "and not both"),
        (power_of_d_fluid, {"initial_occupancy": [0.9, 0.1]}, "start with 1"),
        (power_of_d_fluid, {"initial_occupancy": [1.0, 0.1, 0.2]}, "never increase"),
        (power_of_d_fluid, {"horizon": 0.0}, "horizon must be a number from 1e-12 to .*, not 0"),
        (power_of_d_fluid, {"points": 1}, "points must be a whole number from 2 to 100000, not 1"),
        (power_of_d_fluid, {"load": 1e3, "points": 10**5}, "points times levels must be at most 20000000"),
        (random_fluid, {"load": 0}, "load must be a positive number of at most 100000, not 0"),
    ],
)
def test_bad_input_is_rejected_in_one_sentence(
    call: Callable[..., object], options: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        call(**{"load": 3.0, **options})
