"""The judge: numbers that support a claim or do not."""

from math import gamma, inf, isnan, log, pi, sqrt

import numpy as np
import pytest

from evenly.paper.claims.judge import (
    FALSE_ALARM,
    above,
    at_least,
    at_most,
    below,
    empirical_reach,
    equals,
    is_exactly,
    is_near,
    mean_and_error,
    mostly,
    noted,
    powers,
    proportion,
    seldom,
    two_sample_reach,
)

SAMPLES = np.arange(10.0)  # mean 4.5, standard error sqrt(55 / 6 / 10)
ERROR = 2.2621571628 * sqrt(55 / 60)  # Student's 97.5 % quantile with nine degrees of freedom, from a table


def test_intervals_follow_students_law() -> None:
    assert mean_and_error(SAMPLES) == pytest.approx((4.5, ERROR))


def test_equality_holds_up_to_chance() -> None:
    from scipy.integrate import quad

    found = equals("x", SAMPLES, 6.0)
    assert found.supports
    assert found.value == 4.5
    assert found.error == pytest.approx(ERROR)
    assert found.expected == 6.0
    _, reach = mean_and_error(SAMPLES, FALSE_ALARM)
    # Student's density with nine degrees of freedom, integrated over both tails beyond the reach.
    tails, _ = quad(lambda x: (1 + x**2 / 9) ** -5, reach / sqrt(55 / 60), inf, epsabs=0)
    assert 2 * tails * gamma(5) / (sqrt(9 * pi) * gamma(4.5)) == pytest.approx(FALSE_ALARM, rel=1e-6)
    assert equals("x", SAMPLES, 4.5 + 0.99 * reach).supports
    assert not equals("x", SAMPLES, 4.5 + 1.01 * reach).supports
    assert equals("x", SAMPLES, 4.5 + 1.01 * reach, slack=0.02 * reach).supports


def test_the_rate_of_false_alarms_is_that_of_the_quantile() -> None:
    """At an error probability of 5 %, about 200 of 4,000 intervals miss, within six deviations."""
    rng = np.random.default_rng(1)
    missed = sum(
        abs(mean) > reach for mean, reach in (mean_and_error(rng.normal(size=5), 0.05) for _ in range(4000))
    )
    assert abs(missed - 200) < 6 * sqrt(4000 * 0.05 * 0.95)


def test_the_whole_interval_must_be_on_one_side() -> None:
    assert below("x", SAMPLES, 4.5 + ERROR + 0.01).supports
    assert not below("x", SAMPLES, 4.5 + ERROR - 0.01).supports
    assert above("x", SAMPLES, 4.5 - ERROR - 0.01).supports
    assert not above("x", SAMPLES, 4.5 - ERROR + 0.01).supports


def test_equal_samples_do_not_tell_their_error() -> None:
    for number in (equals("x", [2.0] * 5, 2.0), below("x", [2.0] * 5, 3.0), above("x", [2.0] * 5, 1.0)):
        assert number.supports and number.error is not None and isnan(number.error)


def test_deterministic_numbers() -> None:
    assert is_exactly("x", 3, 3).supports
    assert not is_exactly("x", 3, 4).supports
    assert is_near("x", 1.0, 1.1, 0.2).supports
    assert not is_near("x", 1.0, 1.1, 0.05).supports
    assert at_most("x", 2, 2).supports
    assert not at_most("x", 3, 2).supports
    assert at_least("x", 2, 2).supports
    assert not at_least("x", 1, 2).supports


def test_a_frequency_has_wilsons_interval() -> None:
    share, error = proportion(5, 50)  # Wilson's interval is 0.0434752 to 0.2136023
    assert share == 0.1
    assert error == pytest.approx((0.2136023 - 0.0434752) / 2, abs=1e-6)
    assert proportion(0, 50)[1] > 0


def test_the_reach_of_a_distribution_function() -> None:
    assert empirical_reach(100, 0.05) == pytest.approx(sqrt(log(40) / 200))
    samples = np.sort(np.random.default_rng(2).uniform(size=(2000, 100)), axis=1)
    steps = np.arange(100) / 100
    distances = np.maximum(samples - steps, steps + 0.01 - samples).max(axis=1)
    assert (distances > empirical_reach(100, 0.05)).mean() < 0.05 + 6 * sqrt(0.05 * 0.95 / 2000)


@pytest.mark.parametrize(("misses", "supports"), [(0, True), (5, True), (6, False)])
def test_a_share_of_runs_is_judged_by_the_binomial_law(misses: int, supports: bool) -> None:
    """If each run fails with probability 0.01, five of ten fail with probability 2.4e-8, six with 2.0e-10."""
    number = mostly("hits", [True] * (10 - misses) + [False] * misses, 0.99)
    assert number.supports == supports
    assert number.value == 1 - misses / 10
    assert number.error is not None and number.error > 0


@pytest.mark.parametrize(("count", "supports"), [(34, True), (35, False)])
def test_a_rate_is_judged_by_poissons_law(count: int, supports: bool) -> None:
    """With 10 expected, 34 or more have a probability of 2.2e-9, 35 or more of 6.4e-10."""
    number = seldom("events", [count, 0, 0, 0], 1000, 0.01)
    assert number.supports == supports
    assert number.value == count / 1000


def test_the_error_of_a_rate_is_exact_without_events_and_larger_with_clusters() -> None:
    none, even, cluster = (seldom("", counts, 100, 1.0).error for counts in ([0, 0], [8, 8], [16, 0]))
    assert none == pytest.approx(-np.log(0.025) / 200)  # the exact interval ends at -log(0.025) / 100
    assert even is not None and cluster is not None and even < cluster


def test_a_number_for_a_note_does_not_affect_the_verdict() -> None:
    number = noted("", [1.0, 2.0, 3.0])
    assert number.supports and number.expected is None
    assert number.value == 2.0
    assert number.error == pytest.approx(4.302653 / np.sqrt(3))


def test_a_share_of_many_runs_is_judged_by_the_binomial_law() -> None:
    # Of 100 runs, at most 80 hits have probability 4e-20 at a share of 0.99; at most 95, 0.0034.
    assert mostly("x", [True] * 95 + [False] * 5, 0.99).supports
    assert not mostly("x", [True] * 80 + [False] * 20, 0.99).supports


def test_samples_of_one_law_are_within_the_reach_and_samples_of_two_laws_are_not() -> None:
    rng = np.random.default_rng(3)
    one, two = rng.poisson(5, (2, 2000))
    apart = rng.poisson(7, 2000)
    levels = np.arange(40)
    first, second, other = ((sample[:, None] <= levels).mean(axis=0) for sample in (one, two, apart))
    assert two_sample_reach(2000) == pytest.approx(sqrt(log(2e9) / 2000))
    assert np.abs(first - second).max() < two_sample_reach(2000) < np.abs(first - other).max()


def test_powers_are_fitted() -> None:
    sizes = [10, 100, 1000]
    rows = [[3.0 * size**-0.5 for size in sizes], [2.0 * size**-1.0 for size in sizes]]
    assert powers(sizes, rows) == pytest.approx([-0.5, -1.0])
