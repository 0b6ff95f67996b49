"""Advice on alpha: candidates, the choice among them, and what is measured, by two methods that share nothing."""

import json
from collections.abc import Sequence
from fractions import Fraction
from math import floor, sqrt
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from evenly.advice import alpha as module
from evenly.advice import measure as alpha_measure
from evenly.advice.alpha import candidate_alphas, choose, measured_loads, recommend_alpha
from evenly.advice.measure import Measurement
from evenly.advice.recommendation import Advice, Candidate
from evenly.errors import InputError
from evenly.sim import Scenario, simulate
from evenly.theory.exact.law import solve_exact
from evenly.theory.stability.predict import predict_stability
from evenly.theory.tuning import check_alpha_for_load, check_alpha_for_pools, exact_alpha_min, suggested_alpha

# Student's t with 19 degrees of freedom exceeds 9 in size with probability 3e-8, and the 95 % half-width is 2.093
# standard errors: less than 1e-6 for thirty comparisons.
CERTAIN = 9 / 2.093


def falls(alpha: float, pools: int) -> int:
    return floor(Fraction(str(alpha)) * pools)


def candidate(alpha: float, spread: float, resync: float, changes: float = 0.0) -> Candidate:
    """Return a candidate with this relative spread and these messages, at two loads."""
    common: dict[str, Any] = {
        "jsq_spread": 0.5, "error": None, "max_tasks": 1.0, "jsq_max_tasks": 1.0, "change_rate": changes,
    }  # fmt: skip
    rows = (
        Measurement(load=1.0, spread=0.5 * spread, resync_per_task=0.5 * resync, share_optimal=1.0, **common),
        Measurement(load=1.5, spread=0.49 * spread, resync_per_task=1.5 * resync, share_optimal=1.0, **common),
    )
    return Candidate(alpha=alpha, measurements=rows)


def expected_choice(rows: Sequence[dict[str, Any]]) -> float:
    """Apply the rule, written again, to the numbers that are printed."""
    limit = 1.02 * min(row["relative_spread"] for row in rows)
    good: dict[float, float] = {
        row["alpha"]: row["resync_per_task"] for row in rows if row["relative_spread"] <= limit
    }
    cheap = [alpha for alpha, resync in good.items() if resync <= 0.1]
    return max(cheap) if cheap else min(good, key=good.__getitem__)


# --- the exact spread --------------------------------------------------------------------------------------


def test_the_exact_spread_of_two_random_pools() -> None:
    """Half of the mean distance between two independent Poisson numbers."""
    from scipy.stats import skellam

    load = 1.7
    distance = np.arange(-60, 61)
    expected = np.abs(distance) @ skellam.pmf(distance, load, load) / 2
    law = solve_exact(policy="random", pools=2, load=load)
    assert law.spread == pytest.approx(expected, rel=1e-7)
    assert law.to_dict()["spread"] == {"mean": law.spread}


def test_the_exact_spread_of_three_random_pools() -> None:
    from scipy.stats import poisson

    load, levels = 0.8, np.arange(18)
    tasks = np.stack(np.meshgrid(levels, levels, levels))
    weight = np.prod(poisson.pmf(tasks, load), axis=0)
    expected = np.sum(weight * np.std(tasks, axis=0))
    assert solve_exact(policy="random", pools=3, load=load).spread == pytest.approx(expected, rel=1e-6)


# --- candidates and loads ----------------------------------------------------------------------------------


@pytest.mark.parametrize("pools", [2, 7, 16])
def test_few_pools_have_every_candidate(pools: int) -> None:
    alphas = candidate_alphas(pools, 5.5)
    assert [falls(alpha, pools) for alpha in alphas] == list(range(pools - 1))
    assert all(0 < alpha < 1 and len(str(alpha)) <= 5 for alpha in alphas)


@pytest.mark.parametrize(
    ("pools", "load_max"), [(17, 0.5), (17, 50), (20, 5.5), (100, 50), (999, 5.5), (1000, 50), (10**9, 0.5)]
)
def test_many_pools_have_some_candidates(pools: int, load_max: float) -> None:
    alphas = candidate_alphas(pools, load_max)
    numbers = [falls(alpha, pools) for alpha in alphas]
    assert numbers == sorted(set(numbers))
    assert 7 <= len(numbers) <= 15
    assert numbers[-1] <= pools - 2
    assert min(alphas) <= 0.5
    assert 1 - max(alphas) <= max(3 / pools, 0.004)
    if exact_alpha_min(load_max) < 1 - Fraction(2, pools):  # room for one above the bound that is not the largest
        above = min(alpha for alpha in alphas if Fraction(str(alpha)) > exact_alpha_min(load_max))
        assert Fraction(str(above)) - exact_alpha_min(load_max) <= Fraction(2, pools)


@pytest.mark.parametrize(
    ("load_max", "loads"),
    [
        (5.5, (4.67, 5.0, 5.33, 5.5)),
        (10, (9.33, 9.67, 10.0)),
        (0.5, (0.33, 0.5)),
        (0.2, (0.2,)),
        (1.67, (1.0, 1.33, 1.67)),  # 1.67 - 0.67 is a little less than 1 in floating point
    ],
)
def test_loads_with_all_kinds_of_fractional_parts_are_measured(load_max: float, loads: tuple[float, ...]) -> None:
    assert measured_loads(load_max) == loads


# --- the choice --------------------------------------------------------------------------------------------


def test_the_largest_good_and_cheap_alpha_is_chosen() -> None:
    rows = [
        candidate(0.5, 1.021, 0.0),
        candidate(0.7, 1.019, 0.05),
        candidate(0.8, 1.01, 0.1),
        candidate(0.9, 1.0, 0.2),
    ]
    assert choose(rows).alpha == 0.8
    assert choose(rows[::-1]).alpha == 0.8
    assert choose(rows[:2] + rows[3:]).alpha == 0.7


def test_with_late_messages_the_largest_good_and_steady_alpha_is_chosen() -> None:
    rows = [candidate(0.5, 1.0, 0.0, 0.2), candidate(0.8, 1.0, 0.0, 1.0), candidate(0.9, 1.0, 0.0, 1.1)]
    assert [choose(rows, late=late).alpha for late in (True, False)] == [0.8, 0.9]
    restless = [candidate(0.5, 1.03, 0.0, 1.5), candidate(0.7, 1.01, 0.0, 2.0), candidate(0.8, 1.0, 0.0, 3.0)]
    assert choose(restless, late=True).alpha == 0.7


def test_if_none_is_cheap_the_good_one_with_the_fewest_messages_is_chosen() -> None:
    rows = [
        candidate(0.5, 1.03, 0.01),
        candidate(0.6, 1.02, 0.3),
        candidate(0.7, 1.01, 0.2),
        candidate(0.8, 1.0, 0.4),
    ]
    assert choose(rows).alpha == 0.7
    assert choose([candidate(0.5, 1.3, 5.0)]).alpha == 0.5


def test_the_worst_load_counts_for_balance_and_the_mean_for_messages() -> None:
    found = candidate(0.7, 1.1, 0.2)
    assert found.relative_spread == pytest.approx(1.1)
    assert found.worst.load == 1.0
    assert found.resync_per_task == pytest.approx(0.2)


# --- what is measured --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def exact_advice() -> Advice:
    return recommend_alpha(pools=3, load_max=1.5)


def test_small_systems_are_solved_exactly(exact_advice: Advice) -> None:
    assert exact_advice.method == "exact"
    assert exact_advice.loads == (0.67, 1.0, 1.33, 1.5)
    assert [falls(row.alpha, 3) for row in exact_advice.candidates] == [0, 1]
    for row in exact_advice.candidates:
        assert tuple(measured.load for measured in row.measurements) == exact_advice.loads
        for measured in row.measurements:
            law = solve_exact(policy="threshold", pools=3, load=measured.load, alpha=row.alpha)
            jsq = solve_exact(policy="jsq", pools=3, load=measured.load)
            optimum = {0.67: [0, 1], 1.0: [0, 1], 1.33: [1], 1.5: [1]}[measured.load]
            shares = law.threshold_share or {}
            assert measured.relative_spread == pytest.approx(law.spread / jsq.spread, rel=1e-12)
            assert (measured.max_tasks, measured.jsq_max_tasks) == (law.max_tasks, jsq.max_tasks)
            assert measured.resync_per_task == law.resync_per_task
            assert measured.change_rate == pytest.approx((law.rise_rate or 0) + (law.fall_rate or 0), rel=1e-12)
            assert measured.share_optimal == pytest.approx(sum(shares[level] for level in optimum), rel=1e-12)
            assert measured.error == 0


def test_simulation_measures_what_the_exact_solution_does(
    exact_advice: Advice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alpha_measure, "EXACT_STATES", 1)
    simulated = recommend_alpha(pools=3, load_max=1.5, seed=5)
    assert simulated.method == "simulation"
    assert simulated.alpha == exact_advice.alpha
    for ours, theirs in zip(simulated.candidates, exact_advice.candidates, strict=True):
        for one, other in zip(ours.measurements, theirs.measurements, strict=True):
            assert one.load == other.load
            assert one.error is not None
            assert 0 < one.error < 0.006
            assert abs(one.relative_spread - other.relative_spread) < CERTAIN * one.error
            # Over twelve seeds these varied by half of a per cent (standard deviation) at most: six of them.
            assert one.resync_per_task == pytest.approx(other.resync_per_task, rel=0.03)
            assert one.change_rate == pytest.approx(other.change_rate, rel=0.03)
            assert one.share_optimal == pytest.approx(other.share_optimal, rel=0.03)
            assert one.max_tasks == pytest.approx(other.max_tasks, rel=0.02)
            assert one.jsq_max_tasks == pytest.approx(other.jsq_max_tasks, rel=0.02)


@pytest.mark.full
def test_twenty_pools_are_advised_to_stay_below_the_papers_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The closer to 1, the more messages, for almost the same balance."""
    monkeypatch.setattr(alpha_measure, "EVENTS", 5 * 10**5)
    advice = recommend_alpha(pools=20, load_max=5.5)
    assert advice.method == "simulation"
    assert 0.5 < advice.alpha < 0.7
    assert advice.paper_rule_possible
    assert not advice.paper_rule_met
    assert advice.alpha == expected_choice(advice.to_dict()["candidates"])
    resync = [row.resync_per_task for row in advice.candidates]
    assert resync == sorted(resync)
    spread = [row.relative_spread for row in advice.candidates[:5]]
    assert spread == sorted(spread, reverse=True)
    for row in advice.candidates:
        predicted = predict_stability(pools=20, load=5.5, alpha=row.alpha)
        measured = row.measurements[-1]
        assert measured.load == 5.5
        # Over ten seeds rates had standard deviations of 2.8 % at most, and the share one of 0.01: six of them.
        assert measured.change_rate == pytest.approx(predicted.change_rate, rel=0.17)
        assert measured.resync_per_task == pytest.approx(predicted.resync_per_task, rel=0.17)
        assert measured.share_optimal == pytest.approx(1 - predicted.share_off, abs=0.06)
    direct = simulate(Scenario(pools=20, load=5.5, alpha=0.8, horizon=20020, warmup=20), seed=99)
    (measured,) = (row.measurements[-1] for row in advice.candidates if row.alpha == 0.8)
    # The run measured is a ninth as long, its standard errors thrice as large.
    resync_error, spread_error = (3 * CERTAIN * direct.half_widths()[key] for key in ("resync_per_task", "spread"))
    assert measured.resync_per_task == pytest.approx(direct.resync_per_task, abs=resync_error)
    assert measured.spread == pytest.approx(direct.spread, abs=spread_error)


@pytest.mark.full
def test_a_threshold_that_stays_too_high_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """At alpha 1/2 a threshold of 6 stays, although 5 is optimal: tasks are Poisson, but at most 6."""
    from scipy.optimize import brentq
    from scipy.stats import poisson

    monkeypatch.setattr(alpha_measure, "EVENTS", 10**6)
    load, levels = 5.5, np.arange(7)

    def law(rate: float) -> NDArray[np.float64]:
        weights: NDArray[np.float64] = poisson.pmf(levels, rate) / poisson.cdf(levels[-1], rate)
        return weights

    rate = brentq(lambda rate: float(levels @ law(rate)) - load, 1, 100)
    predicted = sqrt(float((levels - load) ** 2 @ law(rate)))
    advice = recommend_alpha(pools=1000, load_max=load)
    measured = advice.candidates[0].measurements[-1]
    assert advice.candidates[0].alpha == 0.5
    assert measured.share_optimal is not None
    assert measured.share_optimal < 0.01
    # The load of 1,000 pools fluctuates by 0.074 and its average over the run by 0.011, at a slope of about -1.
    assert measured.spread == pytest.approx(predicted, abs=0.07)
    assert measured.jsq_spread == pytest.approx(0.5, abs=0.02)
    assert advice.paper_rule_met
    assert 0.9 < advice.alpha < 0.99
    assert advice.alpha == expected_choice(advice.to_dict()["candidates"])


@pytest.mark.parametrize(("pools", "load_max"), [(100, 0.5), pytest.param(1000, 10, marks=pytest.mark.full)])
def test_with_enough_pools_the_papers_rule_is_followed(
    pools: int, load_max: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alpha_measure, "EVENTS", 5 * 10**5)
    advice = recommend_alpha(pools=pools, load_max=load_max)
    assert advice.paper_rule_met
    assert advice.chosen is not None
    assert advice.chosen.relative_spread < 1.02
    assert advice.chosen.resync_per_task <= 0.1


def test_a_smaller_system_is_measured_in_place_of_a_large_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alpha_measure, "EVENTS", 10**5)
    monkeypatch.setattr(module, "MAX_TASKS", 2000)
    advice = recommend_alpha(pools=10**6, load_max=20)
    assert (advice.pools, advice.pools_measured) == (10**6, 100)
    assert advice.paper_rule_met
    assert advice.chosen is not None
    assert advice.chosen.resync_per_task > 0.1  # too many for a hundred pools, but the larger system sends fewer


@pytest.mark.parametrize(
    ("pools", "alpha"),
    # 9/10 must be exceeded, and 1 - 1/pools not be reached; with ten pools there is no room.
    [(10**6, 0.91), (100, 0.91), (11, 0.901), (10, None)],
)
def test_where_the_stand_in_has_too_few_pools_the_papers_rule_is_followed(
    pools: int, alpha: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alpha_measure, "EVENTS", 10**4)
    monkeypatch.setattr(module, "MAX_TASKS", 45)
    advice = recommend_alpha(pools=pools, load_max=9)
    assert advice.pools_measured == 5
    assert advice.paper_rule_possible == advice.paper_rule_met == (alpha is not None)
    if alpha is None:
        assert advice.alpha == expected_choice(advice.to_dict()["candidates"])
    else:
        assert advice.alpha == advice.to_dict()["recommended"] == alpha
        assert advice.chosen is None
        check_alpha_for_load(alpha, 9)
        check_alpha_for_pools(alpha, pools)
    if pools == 10**6:
        assert advice.alpha == suggested_alpha(9)


@pytest.mark.parametrize(("pools", "load_max", "possible"), [(2, 0.5, True), (2, 1.0, False), (3, 1.0, True)])
def test_whether_the_papers_rule_can_hold(pools: int, load_max: float, possible: bool) -> None:
    advice = recommend_alpha(pools=pools, load_max=load_max)
    assert advice.paper_rule_possible == possible
    assert advice.alpha_min == load_max / (load_max + 1)


def test_the_advice_is_repeatable_and_reports_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alpha_measure, "EVENTS", 2 * 10**4)
    fractions: list[float] = []
    first = recommend_alpha(pools=30, load_max=2, seed=3, progress=fractions.append)
    assert first == recommend_alpha(pools=30, load_max=2, seed=3)
    assert first != recommend_alpha(pools=30, load_max=2, seed=4)
    assert fractions[-1] == pytest.approx(1)
    assert first.chosen is not None
    facts = json.loads(json.dumps(first.to_dict()))
    assert facts["recommended"] == first.alpha == first.chosen.alpha
    assert len(facts["candidates"]) == len(first.candidates)
    fractions.clear()
    recommend_alpha(pools=2, load_max=0.5, progress=fractions.append)
    assert_allclose(fractions, [0.5, 1.0])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"pools": 1, "load_max": 5}, "pools must be a whole number from 2"),
        ({"pools": 5, "load_max": 1001}, "load_max must be a number from 1e-100 to 1000, not 1001"),
        ({"pools": 50, "load_max": 3, "seed": -1}, "seed"),
    ],
)
def test_bad_input_gets_a_sentence(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        recommend_alpha(**given)


@pytest.mark.full
def test_late_messages_are_measured_by_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alpha_measure, "EVENTS", 2 * 10**5)
    advice = recommend_alpha(pools=20, load_max=2.5, delay="exponential:0.05")
    assert advice.method == "simulation"
    assert advice.to_dict()["delay"] == "exponential:0.05"
    assert all(candidate.share_optimal is None for candidate in advice.candidates)
    assert advice.chosen is not None
    assert advice.chosen.relative_spread < 1.05
    assert advice.chosen.change_rate <= 1
    with pytest.raises(InputError, match=r"^delay must be at most 1 for a recommendation, not 1\.5\.$"):
        recommend_alpha(pools=20, load_max=2.5, delay=1.5)
