"""Equilibria against the paper's own equations in 60 digits, Erlang's recursion, linear systems and Thm 1.

Nothing here conditions a Poisson law, which is how the equilibria are computed.
"""

import json
import warnings
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from math import ceil, factorial, floor, isclose, nextafter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from evenly.errors import InputError
from evenly.theory.balance import FloatArray, balanced_occupancy, exactly
from evenly.theory.equilibrium import Equilibrium, predict_equilibrium
from evenly.theory.poisson import likely_levels, poisson_weights

DIGITS = 60
WITHIN = Decimal("1e-12")

LARGE: list[tuple[float, int]] = [
    (5.5, 6), (5.5, 7), (5.5, 8), (0.5, 2), (0.001, 3), (1.0, 2), (7.0, 8), (1.0, 10_000), (99.25, 140),
    (5.999999, 6), (nextafter(6, 0), 6), (9999.5, 10_000), (9999.999999, 10_000), (1e4, 10_001), (1e4, 10_100),
    (1e4, 20_000),
]  # fmt: skip
SMALL: list[tuple[float, int]] = [
    (5.5, 2), (5.5, 3), (5.5, 4), (1.5, 0), (7.0, 5), (99.25, 60), (6.000001, 5), (nextafter(6, 7), 5),
    (1e4, 0), (1e4, 1), (1e4, 9000), (1e4, 9900), (1e4, 9998), (9999.000001, 9998),
]  # fmt: skip
BALANCED: list[tuple[float, int]] = [
    (5.5, 5),
    (5.0, 4),
    (5.0, 5),
    (0.3, 0),
    (1.0, 0),
    (1e4, 9999),
    (9999.25, 9999),
]
ANY = [*LARGE, *SMALL, *BALANCED]


# --- the paper's equations, in 60 digits ------------------------------------------------------------------


def large_gap(x: Decimal, load: Decimal, threshold: int) -> Decimal:
    """Return x times the right-hand side of eq. (4) minus the load, which is zero at theta."""
    ratio, total = (1 - x) / load, Decimal(0)
    for factor in range(1, threshold + 1):  # Horner's rule: l (1 + r (l - 1) (1 + r (l - 2) (...)))
        total = factor * (1 + ratio * total)
    return x * total - load


def small_gap(x: Decimal, load: Decimal, threshold: int) -> Decimal:
    """Return the left-hand side of eq. (5) minus 1."""
    high = threshold + 1
    rate = load - high * (1 - x)
    term, total, level = Decimal(1), Decimal(0), high
    while level <= rate or term > total * Decimal(10) ** -DIGITS:
        total += term
        level += 1
        term *= rate / level
    return (1 - x) * total - 1


def root_near(gap: Callable[[Decimal], Decimal], guess: float) -> Decimal:
    """Return the root by the secant method; assert that the sign changes within 1e-12 of the guess."""
    older, newer = max(Decimal(guess) - WITHIN, Decimal(0)), min(Decimal(guess) + WITHIN, Decimal(1))
    before, after = gap(older), gap(newer)
    assert before * after < 0
    if newer <= 2 * WITHIN or 1 - older <= 2 * WITHIN:  # far from linear there, and close enough
        return Decimal(guess)
    for _ in range(20):
        older, newer, before = newer, newer - after * (newer - older) / (after - before), after
        if abs(newer - older) < Decimal("1e-40"):
            break
        after = gap(newer)
    return newer


def large_law(theta: Decimal, load: Decimal, threshold: int) -> list[float]:
    """Return the fractions with exactly 0..l tasks of Ex. 1."""
    shares = [theta]
    for i in range(1, threshold + 1):
        shares.append(shares[-1] * (threshold - i + 1) * (1 - theta) / load)
    return [float(share) for share in reversed(shares)]


def small_law(theta: Decimal, load: Decimal, threshold: int, levels: int) -> list[float]:
    """Return the fractions with exactly i < levels tasks of Ex. 2."""
    high = threshold + 1
    rate = load - high * (1 - theta)
    shares = [Decimal(0)] * high + [1 - theta]
    for level in range(high + 1, levels):
        shares.append(shares[-1] * rate / level)
    return [float(share) for share in shares]


@pytest.mark.parametrize(("load", "threshold"), LARGE)
def test_a_large_threshold_solves_eq_4_and_has_the_law_of_ex_1(load: float, threshold: int) -> None:
    found = predict_equilibrium(load=load, threshold=threshold)
    assert found.kind == "large"
    assert found.theta is not None
    with localcontext() as context:
        context.prec = DIGITS
        exact = Decimal(load)
        theta = root_near(lambda x: large_gap(x, exact, threshold), found.theta)
        # A theta below 1e-12 has no effect on the law: almost all pools are below the threshold.
        law = large_law(theta, exact, threshold) if theta > WITHIN else poisson_law(exact, threshold + 1)
        assert_allclose(found.pools_with_exactly, law, rtol=0, atol=1e-12)
        assert found.offered is not None
        assert theta > 1 - 2 * WITHIN or isclose(found.offered, float(exact / (1 - theta)), rel_tol=1e-12)


@pytest.mark.parametrize(("load", "threshold"), SMALL)
def test_a_small_threshold_solves_eq_5_and_has_the_law_of_ex_2(load: float, threshold: int) -> None:
    found = predict_equilibrium(load=load, threshold=threshold)
    assert found.kind == "small"
    assert found.theta is not None
    levels = len(found.pools_with_exactly)
    with localcontext() as context:
        context.prec = DIGITS
        exact = Decimal(load)
        theta = root_near(lambda x: small_gap(x, exact, threshold), found.theta)
        law = small_law(theta, exact, threshold, levels) if 1 - theta > WITHIN else poisson_law(exact, levels)
        assert_allclose(found.pools_with_exactly, law, rtol=0, atol=1e-12)
        rate = float(exact - (threshold + 1) * (1 - theta))
        assert found.birth_rate is not None
        assert isclose(found.birth_rate, rate, rel_tol=1e-12, abs_tol=1e-24)


def poisson_law(load: Decimal, levels: int) -> list[float]:
    term, law = (-load).exp(), []
    for level in range(1, levels + 1):
        law.append(float(term))
        term *= load / level
    return law


@pytest.mark.parametrize(
    ("threshold", "theta"),
    [(6, 0.640234), (7, 0.300113), (8, 0.147212), (2, 0.841601), (3, 0.681270), (4, 0.352720)],
)
def test_theta_at_the_thresholds_of_the_papers_figure(threshold: int, theta: float) -> None:
    assert predict_equilibrium(load=5.5, threshold=threshold).theta == pytest.approx(theta, abs=5e-7)


@settings(max_examples=100)
@given(load=st.floats(0.01, 60), threshold=st.integers(0, 120))
def test_the_papers_equations_hold_for_any_load_and_threshold(load: float, threshold: int) -> None:
    found = predict_equilibrium(load=load, threshold=threshold)
    assert found.mean_tasks == pytest.approx(load, rel=1e-13)
    if found.theta is None:
        return
    gap = large_gap if found.kind == "large" else small_gap
    with localcontext() as context:
        context.prec = DIGITS
        root_near(lambda x: gap(x, Decimal(load), threshold), found.theta)


@pytest.mark.parametrize(("load", "threshold"), LARGE[1::3])
def test_theta_agrees_with_erlangs_recursion(load: float, threshold: int) -> None:
    found = predict_equilibrium(load=load, threshold=threshold)
    assert found.theta is not None
    assert found.offered is not None
    with localcontext() as context:
        context.prec = DIGITS
        offered, blocked = Decimal(found.offered), Decimal(1)
        for server in range(1, threshold + 1):
            blocked = offered * blocked / (server + offered * blocked)
        assert abs(blocked - Decimal(found.theta)) < WITHIN
        # A large offered traffic has a relative error of 1e-15.
        assert abs(offered * (1 - blocked) - Decimal(load)) < WITHIN * (1 + threshold // 1000)


# --- the equilibrium as a law and as a stationary point ----------------------------------------------------


def stationary_by_linear_system(births: FloatArray, first: int) -> FloatArray:
    """Return the law of a birth-death process with death rate i at level i, from its balance equations."""
    levels = np.arange(first, first + len(births))
    rates = np.diag(births[:-1], 1) + np.diag(levels[1:].astype(float), -1)
    system = (rates - np.diag(rates.sum(axis=1))).T
    system[-1] = 1.0
    return np.linalg.solve(system, np.append(np.zeros(len(births) - 1), 1.0))


@pytest.mark.parametrize(("load", "threshold"), [(5.5, 6), (5.5, 8), (0.5, 3), (20.3, 25), (7.0, 9)])
def test_below_a_large_threshold_pools_are_birth_death_processes(load: float, threshold: int) -> None:
    found = predict_equilibrium(load=load, threshold=threshold)
    assert found.theta is not None
    law = stationary_by_linear_system(np.full(threshold + 1, load / (1 - found.theta)), 0)
    assert_allclose(found.pools_with_exactly, law, atol=1e-12)


@pytest.mark.parametrize(("load", "threshold"), [(5.5, 2), (5.5, 4), (1.5, 0), (20.3, 17), (7.0, 5)])
def test_above_a_small_threshold_pools_are_birth_death_processes(load: float, threshold: int) -> None:
    found = predict_equilibrium(load=load, threshold=threshold)
    assert found.theta is not None
    high = threshold + 1
    law = stationary_by_linear_system(np.full(80, load - high * (1 - found.theta)), high)
    levels = min(len(law), len(found.pools_with_exactly) - high)
    assert_allclose(found.pools_with_exactly[high : high + levels], law[:levels], atol=1e-12)
    assert not found.pools_with_exactly[:high].any()


def assignment(q: FloatArray, load: float, threshold: int) -> FloatArray:
    """Return p_1, p_2, ... of Thm 1, case by case."""
    high = threshold + 1
    p = np.zeros(len(q))  # p[i - 1] is p_i
    q = np.append(q, [0.0, 0.0])
    if q[threshold] < 1:  # (a)
        for i in range(1, threshold + 1):
            p[i - 1] = (q[i - 1] - q[i]) / (1 - q[threshold])
    elif q[high] < 1:  # (b)
        if threshold > 0:
            p[threshold - 1] = threshold / load * (1 - q[high])
        p[high - 1] = 1 - threshold / load * (1 - q[high])
    else:  # (c)
        share = high / load * (1 - q[high + 1])
        p[high - 1] = share
        for i in range(high + 1, len(p) + 1):
            p[i - 1] = (1 - share) * (q[i - 1] - q[i])
    return p


@pytest.mark.parametrize(("load", "threshold"), [case for case in ANY if 1e-9 < abs(case[0] - 6) < 1000])
def test_equilibria_are_stationary_points_of_thm_1(load: float, threshold: int) -> None:
    q = predict_equilibrium(load=load, threshold=threshold).occupancy
    p = assignment(q, load, threshold)
    levels = np.arange(1, len(q) + 1)
    q = np.append(q, [0.0, 0.0])
    drift = load * p - levels * (q[1:-1] - q[2:])
    rounding = 1e-15 / (1 - q[threshold]) if q[threshold] < 1 else 0.0  # the divisor of (a) loses digits
    assert_allclose(drift, 0.0, atol=2e-13 * (1 + load) + load * rounding)
    assert p.sum() == pytest.approx(1, abs=1e-12)


def test_another_occupancy_is_not_a_stationary_point() -> None:
    q = predict_equilibrium(load=5.5, threshold=7).occupancy
    drift = 5.6 * assignment(q, 5.6, 7)[:7] - np.arange(1, 8) * (q[1:8] - np.append(q, 0.0)[2:9])
    assert np.abs(drift).max() > 0.01


FAR_OUT = [(1e-300, 10_000), (1e-300, 1), (1e-9, 1), (1e5, 0), (99_999.5, 100_000), (3.0, 10**6)]


@pytest.mark.parametrize(("load", "threshold"), [*ANY, *FAR_OUT])
def test_an_equilibrium_is_an_occupancy_with_the_load_as_its_mass(load: float, threshold: int) -> None:
    """Nothing overflows and nothing warns."""
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        found = predict_equilibrium(load=load, threshold=threshold)
    assert np.isfinite(found.occupancy).all()
    assert found.birth_rate is None or found.birth_rate <= load
    assert found.offered is None or found.offered >= load
    assert found.occupancy[0] == 1
    assert (np.diff(found.occupancy, append=0.0) <= 0).all()
    assert_allclose(exactly(found.occupancy), found.pools_with_exactly, rtol=0, atol=1e-14)
    assert found.pools_with_exactly.sum() == pytest.approx(1, abs=1e-12)
    assert found.mean_tasks == pytest.approx(load, rel=1e-13)
    assert np.arange(len(found.occupancy)) @ found.pools_with_exactly == pytest.approx(load, rel=1e-12)


def test_the_mass_beyond_the_last_level_is_within_the_stated_bound() -> None:
    for load, threshold in [(5.5, 3), (1.5, 0), (99.25, 60), (400.0, 100)]:
        found = predict_equilibrium(load=load, threshold=threshold)
        assert found.birth_rate is not None
        assert found.truncation is not None
        with localcontext() as context:
            context.prec = DIGITS
            share, beyond = Decimal(float(found.pools_with_exactly[-1])), Decimal(0)
            for level in range(len(found.occupancy), len(found.occupancy) + 5000):
                share *= Decimal(found.birth_rate) / level
                beyond += share
        assert 0 < beyond <= Decimal(found.truncation) < Decimal("1e-20")
    assert predict_equilibrium(load=5.5, threshold=7).truncation == 0
    assert predict_equilibrium(load=5.5, threshold=5).truncation == 0


# --- optimal thresholds ------------------------------------------------------------------------------------


@pytest.mark.parametrize("load", [1.0, 1.25, 2.0, 2.5, 3.9, 6.0, 7.001, 7.999])
def test_only_optimal_thresholds_balance_the_load(load: float) -> None:
    optimal = {floor(load), ceil(load) - 1}  # Cor. 1
    for threshold in range(16):
        found = predict_equilibrium(load=load, threshold=threshold)
        distance = distance_from_balance(found)
        assert (found.kind == "balanced") == (threshold in optimal)
        assert (distance == 0) == (threshold in optimal)
        if threshold not in optimal:
            assert distance > 1e-7
            assert found.kind == ("large" if threshold > load else "small")


def distance_from_balance(found: Equilibrium) -> float:
    levels = max(len(found.occupancy), ceil(found.load) + 1)
    q = np.pad(found.occupancy, (0, levels - len(found.occupancy)))
    return float(np.abs(q - balanced_occupancy(found.load, levels)).max())


@pytest.mark.parametrize("load", [0.01, 0.25, 0.5, 0.999])
def test_below_load_one_threshold_one_balances_as_well(load: float) -> None:
    # Ex. 1 says that q differs from q*. But with at most one task in a pool, the mean determines the law.
    assert distance_from_balance(predict_equilibrium(load=load, threshold=0)) == 0
    assert distance_from_balance(predict_equilibrium(load=load, threshold=1)) < 1e-14
    assert distance_from_balance(predict_equilibrium(load=load, threshold=2)) > load * load / 5


def test_a_threshold_far_from_the_load_gives_a_poisson_law() -> None:
    for load, threshold in [(12.5, 200), (400.0, 0)]:
        with localcontext() as context:
            context.prec = DIGITS
            found = predict_equilibrium(load=load, threshold=threshold).pools_with_exactly
            assert_allclose(found, poisson_law(Decimal(load), len(found)), atol=1e-13)


# --- numerics ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "first", "last"), [(3.5, 0, 12), (3.0, 0, 2), (0.01, 4, 30), (55.5, 20, 90), (1e9, 0, 7)]
)
def test_weights_are_powers_over_factorials(rate: float, first: int, last: int) -> None:
    exact = [Fraction(rate) ** level / factorial(level) for level in range(first, last + 1)]
    assert_allclose(
        poisson_weights(rate, first, last), [float(weight / max(exact)) for weight in exact], rtol=1e-13
    )


@pytest.mark.parametrize(
    ("rate", "low", "high"),
    [(0.2, 0, 10**6), (7.3, 0, 10**6), (900.0, 0, 10**6), (900.0, 1000, 10**6), (900.0, 0, 800), (1e7, 0, 5000)],
)
def test_levels_left_out_have_negligible_weight(rate: float, low: int, high: int) -> None:
    first, last = likely_levels(rate, low, high)
    assert low <= first <= last <= high
    with localcontext() as context:
        context.prec = DIGITS
        for edge, step in ((first, -1), (last, 1)):
            weight, level = Decimal(1), min(max(floor(rate), low), high)
            while level != edge:
                level += step
                weight *= Decimal(rate) / level if step > 0 else (level + 1) / Decimal(rate)
            assert weight < Decimal("1e-25") or edge in (low, high)


# --- inputs and results ------------------------------------------------------------------------------------


def test_the_right_kind_is_accepted() -> None:
    for threshold, kind in ((7, "large"), (3, "small"), (5, "balanced")):
        assert predict_equilibrium(load=5.5, threshold=threshold, kind=kind).kind == kind


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((5.5, 5, "large"), "threshold 5 is optimal for load 5.5: .* the balanced one, not a large-threshold one"),
        ((5.999999, 6, "balanced"), "6 is too large for load 5.999999: .*, not the balanced one"),
        ((5.5, 3, "large"), "3 is too small for load 5.5: .* a small-threshold one, not a large-threshold one"),
        ((5.5, 3, "tiny"), "kind must be one of large, small, balanced, not 'tiny'"),
        ((0, 3), "load must be a positive number of at most 100000, not 0"),
        ((5e-324, 1), "load must be at least 1e-300, not 5e-324"),
        ((5.5, -1), "threshold must be a whole number from 0 to 1000000, not -1"),
    ],
)
def test_bad_input_is_rejected_in_one_sentence(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(InputError, match=words):
        predict_equilibrium(**dict(zip(("load", "threshold", "kind"), arguments, strict=False)))


@pytest.mark.parametrize(("threshold", "kind"), [(7, "large"), (3, "small"), (5, "balanced")])
def test_to_dict_is_ready_for_json(threshold: int, kind: str) -> None:
    found = predict_equilibrium(load=5.5, threshold=threshold)
    facts = json.loads(json.dumps(found.to_dict()))
    assert (facts["load"], facts["threshold"], facts["kind"], facts["theta"]) == (
        5.5,
        threshold,
        kind,
        found.theta,
    )
    assert facts["pools_with_exactly"] == found.pools_with_exactly.tolist()
    assert facts["occupancy"] == found.occupancy.tolist()
    assert facts["mean_tasks"] == pytest.approx(5.5)
    assert (facts["theta"] is None) == (kind == "balanced")
    assert (facts["offered"] is None) == (kind != "large")
    assert (facts["birth_rate"] is None) == (kind != "small")
