"""The predicted law of a learned threshold against exact laws of small systems, and its parts against brute force.

The error of the prediction is smallest with many pools; the tolerances here are about one and a half times the
errors measured. Larger systems are compared with simulations in tests/agreement.
"""

import json
from fractions import Fraction
from itertools import product
from math import inf, log, prod

import numpy as np
import pytest

from evenly.errors import InputError
from evenly.theory.balance import optimal_thresholds
from evenly.theory.equilibrium import predict_equilibrium
from evenly.theory.exact.law import solve_exact
from evenly.theory.stability import predict as stability
from evenly.theory.stability import states
from evenly.theory.stability.chain import LevelChain, never_falls, solve_level
from evenly.theory.stability.lattice import build_lattice
from evenly.theory.stability.missing import extra_when_short, missing_at_fall, share_lacking_more
from evenly.theory.stability.predict import MAX_POOLS, most_searched, predict_stability, stable_pools
from evenly.theory.stability.result import Stability
from evenly.theory.stability.states import Fleet
from tests.tiers import rest_in_full

# pools, load, alpha, and the allowed errors: of all shares of time; of changes and messages, relative
SMALL = [
    (2, 1.5, "0.3", 0.0025, 0.06),
    (3, 1.5, "0.5", 0.0016, 0.014),
    (3, 2.5, "0.3", 0.015, 0.066),
    (4, 1.5, "0.5", 0.001, 0.006),
    (4, 2.9, "0.7", 0.001, 0.01),
    (5, 2.2, "0.6", 0.0008, 0.004),
    (6, 1.9, "0.8", 0.0005, 0.002),
    (6, 1.0, "0.7", 0.0001, 0.001),
    (6, 2.5, "0.5", 0.002, 0.012),
    (8, 1.5, "0.2", 0.0011, 0.003),
    (8, 0.7, "0.6", 3e-6, 3e-6),
    (10, 1.2, "0.85", 5e-5, 0.0004),
]


# --- small systems, exactly --------------------------------------------------------------------------------


@pytest.mark.parametrize(("pools", "load", "alpha", "shares_off", "rates_off"), SMALL)
def test_small_systems_are_close_to_their_exact_law(
    pools: int, load: float, alpha: str, shares_off: float, rates_off: float
) -> None:
    law = solve_exact(policy="threshold", pools=pools, load=load, alpha=alpha, tolerance=1e-8)
    found = predict_stability(pools=pools, load=load, alpha=alpha)
    assert law.threshold_share is not None
    assert law.rise_rate is not None
    assert law.fall_rate is not None
    levels = law.threshold_share.keys() | found.threshold_share.keys()
    distances = [found.threshold_share.get(k, 0.0) - law.threshold_share.get(k, 0.0) for k in levels]
    assert sum(map(abs, distances)) / 2 <= shares_off
    assert found.change_rate == pytest.approx(law.rise_rate + law.fall_rate, rel=rates_off)
    assert found.resync_per_task == pytest.approx(law.resync_per_task, rel=rates_off)
    assert found.reliable == (alpha != "0.3")  # where rates are off by more than 2 %


def test_with_a_single_level_in_reach_the_law_is_exact() -> None:
    # The threshold is 0 or 1, and pools almost never have two tasks: nothing is left out.
    law = solve_exact(policy="threshold", pools=12, load=0.3, alpha="0.6", tolerance=1e-12)
    found = predict_stability(pools=12, load=0.3, alpha="0.6")
    assert law.threshold_share is not None
    assert found.threshold_share[1] == pytest.approx(law.threshold_share[1], rel=1e-6)


# --- the chain of a level, as one large system of equations ------------------------------------------------


def brute_force(fleet: Fleet, level: int) -> tuple[float, float]:
    """Return the share of time below the level and the rate of falls, from all balance equations at once."""
    lattice = build_lattice(fleet, level, level * fleet.pools)
    size, tops = lattice.missing.size, fleet.pools
    rates = np.zeros((size * tops, size * tops))
    back = (fleet.pools - fleet.cut) * size + lattice.full
    for over in range(tops):
        here = over * size
        for source, target, base, slope in zip(
            lattice.source, lattice.target, lattice.base, lattice.slope, strict=True
        ):
            arrival = lattice.missing[target] < lattice.missing[source]
            if not (over == tops - 1 and arrival and lattice.high[source]):
                rates[here + source, here + target] += max(base + slope * over, 0.0)
        for state in range(size):
            if over > 0:
                rates[here + state, here - size + state] += (level + 1) * over
            if over == tops - 1 and lattice.high[state]:
                rates[here + state, back] += fleet.arrivals
        if over < tops - 1:
            rates[here + lattice.full, here + size + lattice.full] += fleet.arrivals
    generator = rates - np.diag(rates.sum(axis=1))
    system = np.vstack([generator.T, np.ones(size * tops)])
    law = np.linalg.lstsq(system, np.append(np.zeros(size * tops), 1.0), rcond=None)[0].reshape(tops, size)
    return float(law[:, ~lattice.high].sum()), float((law @ lattice.fall).sum())


@pytest.mark.parametrize(("fleet", "level"), [(Fleet(5, 1.6, 2), 1), (Fleet(6, 1.6, 3), 2), (Fleet(4, 2.2, 2), 3)])
def test_solving_from_the_top_down_agrees_with_solving_all_at_once(fleet: Fleet, level: int) -> None:
    low, falls = brute_force(fleet, level)
    chain = solve_level(fleet, level, None)
    assert chain.share_low == pytest.approx(low, rel=1e-7)
    assert chain.share_high == pytest.approx(1 - low, rel=1e-7)
    assert chain.fall_rate == pytest.approx(falls, rel=1e-7)


@pytest.mark.parametrize(
    ("fleet", "level"), [(Fleet(100, 2.9, 3), 3), (Fleet(60, 5.1, 6), 5), (Fleet(900, 2.9, 27), 3)]
)
def test_the_threshold_rises_as_often_as_it_falls(fleet: Fleet, level: int) -> None:
    lattice = build_lattice(fleet, level, 0)
    assert set(lattice.high[lattice.target[lattice.high[lattice.source] & (lattice.base > 0)]]) == {True, False}
    chain = solve_level(fleet, level, None)
    # After a fall some pools are short, and the probabilities of all returns add up to 1.
    assert sum(chain.returns.values()) == pytest.approx(1, rel=1e-9)
    mean_short = sum(short * chance for (short, _), chance in chain.returns.items())
    assert fleet.cut - 1 <= mean_short <= fleet.cut + 1.5


# --- what short pools lack ---------------------------------------------------------------------------------


@pytest.mark.parametrize("load", [0.5, 1.5, 2.9, 3.0, 10.9])
def test_extra_at_rest_agrees_with_the_equilibrium(load: float) -> None:
    level = optimal_thresholds(load)[-1] + 1
    theta = predict_equilibrium(load=load, threshold=level).theta
    assert theta is not None
    short = 1 - theta
    extra, lacking_more = extra_when_short(load, level, short)
    assert short + extra == pytest.approx(level - load, rel=1e-9)
    exactly = predict_equilibrium(load=load, threshold=level).pools_with_exactly
    assert short * (1 - lacking_more) == pytest.approx(exactly[level - 1], rel=1e-9)


@pytest.mark.parametrize("level", [1, 2, 3, 5])
def test_the_share_that_lacks_more_agrees_with_enumeration(level: int) -> None:
    table = share_lacking_more(level, 4, 5)
    for short, extra in product(range(1, 5), range(6)):
        weight = mean = 0.0
        for lacks in product(range(level), repeat=short):
            if sum(lacks) == extra:
                ways = prod(prod(level - 1 - i for i in range(lack)) for lack in lacks)
                weight += ways
                mean += ways * sum(lack > 0 for lack in lacks) / short
        assert table[short, extra] == pytest.approx(mean / weight if weight else 0.0)


@pytest.mark.parametrize(
    ("fleet", "level", "off"),
    [
        (Fleet(400, 2.9, 12), 3, 0.003),
        (Fleet(1000, 2.9, 30), 3, 0.002),
        (Fleet(400, 2.9, 32), 3, 0.004),
        (Fleet(400, 3.0, 40), 3, 0.005),
        (Fleet(200, 5.1, 20), 5, 0.012),
    ],
)
def test_the_edge_compensates_for_a_missing_extra(fleet: Fleet, level: int, off: float) -> None:
    with_extra, without = (solve_level(fleet, level, None, resolve) for resolve in (True, False))
    assert without.fall_rate == pytest.approx(with_extra.fall_rate, rel=off)
    assert odds(without) == pytest.approx(odds(with_extra), rel=off)
    # The edge is below the number missing at rest.
    assert (
        missing_at_fall(fleet.arrivals, level, fleet.cut)
        < fleet.cut + extra_when_short(fleet.arrivals, level, fleet.cut)[0]
    )


def odds(chain: LevelChain) -> float:
    return chain.share_low / chain.share_high


def test_sparse_rows_change_results_very_little(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = Fleet(6000, 2.96, 90)
    sparse = solve_level(fleet, 3, None)
    few = build_lattice(fleet, 3, 2000).missing.size
    monkeypatch.setattr(states, "_GAPS", inf)  # the widest gap is then one
    every = solve_level(fleet, 3, None)
    assert build_lattice(fleet, 3, 2000).missing.size > 3 * few
    assert odds(sparse) == pytest.approx(odds(every), rel=2e-3)
    assert sparse.fall_rate == pytest.approx(every.fall_rate, rel=2e-3)


# --- properties of the prediction --------------------------------------------------------------------------


def test_shares_and_times_are_consistent() -> None:
    found = predict_stability(pools=100, load=2.9, alpha=0.97)
    assert sum(found.threshold_share.values()) == pytest.approx(1, abs=1e-11)
    assert list(found.threshold_share) == sorted(found.threshold_share)
    assert found.optimum == 2
    assert found.share_above == pytest.approx(sum(v for k, v in found.threshold_share.items() if k > 2), abs=1e-11)
    assert found.share_below == pytest.approx(found.threshold_share[0] + found.threshold_share[1], abs=1e-11)
    assert found.share_off == found.share_above + found.share_below
    assert found.excursion_length == pytest.approx(found.share_off * found.time_between_excursions)
    # Nearly all changes begin or end an excursion from 2: two changes each.
    assert found.time_between_excursions == pytest.approx(2 / found.change_rate, rel=1e-5)


@pytest.mark.parametrize(
    ("load", "alpha", "step"), rest_in_full([(2.9, "0.97", 100), (5.1, "0.9", 20), (5.5, "0.93", 100)], 1)
)
def test_more_pools_are_more_stable(load: float, alpha: str, step: int) -> None:
    # Multiples of 1 / (1 - alpha): the share jumps between them.
    found = [predict_stability(pools=step * 2**i, load=load, alpha=alpha).share_off for i in range(6)]
    assert found == sorted(found, reverse=True)
    assert found[-1] < 0.7 * found[0]


def test_rare_excursions_follow_the_poisson_tail() -> None:
    # An excursion above 2 needs 3 n tasks. The Poisson tail falls at the rate 3 log(3 / load) - 3 + load in n.
    rates = [-log(predict_stability(pools=n, load=2.6, alpha="0.9").share_above) for n in (200, 400)]
    assert (rates[1] - rates[0]) / 200 == pytest.approx(3 * log(3 / 2.6) - 3 + 2.6, rel=0.12)


def test_a_whole_load_has_two_optimal_thresholds() -> None:
    found = predict_stability(pools=30, load=3.0, alpha="0.9")
    assert found.optimum == 3
    assert found.threshold_share[2] + found.threshold_share[3] == pytest.approx(1 - found.share_off, abs=1e-11)
    assert found.threshold_share[2] > 0.5 > found.share_off > 0


def test_below_load_one_two_thresholds_are_optimal() -> None:
    found = predict_stability(pools=20, load=0.8, alpha="0.9")
    assert found.optimum == 0
    assert found.share_below == 0
    assert found.share_above < 1e-5 < found.threshold_share[1]


def test_many_pools_never_leave_the_optimum() -> None:
    found = predict_stability(pools=MAX_POOLS, load=9.9, alpha="0.995")
    assert found.threshold_share == {9: 1.0}
    assert found.time_between_excursions == inf
    assert found.excursion_length == found.change_rate == found.resync_per_task == found.share_off == 0
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["time_between_excursions"] is None


def test_no_threshold_rises_when_tasks_are_too_few() -> None:
    assert predict_stability(pools=50, load=0.01, alpha="0.9").threshold_share == {0: 1.0}


def test_never_falls_means_that_falls_are_negligible() -> None:
    for fleet, level in [(Fleet(1000, 2.9, 50), 2), (Fleet(300, 1.7, 60), 1), (Fleet(4000, 5.5, 280), 5)]:
        assert never_falls(fleet, level)
        assert solve_level(fleet, level, None).share_low < 1e-12
    for fleet, level in [(Fleet(200, 5.5, 14), 5), (Fleet(100, 2.9, 3), 2), (Fleet(100, 2.9, 3), 3)]:
        assert not never_falls(fleet, level)
        assert solve_level(fleet, level, None).share_low > 1e-4


def test_alpha_is_the_decimal_as_written() -> None:
    # In binary, 0.57 * 100 is less than 57, which would change the number of short pools by one.
    written = predict_stability(pools=100, load=1.5, alpha=0.57)
    assert written.threshold_share == predict_stability(pools=100, load=1.5, alpha="0.575").threshold_share
    assert written.threshold_share != predict_stability(pools=100, load=1.5, alpha="0.569").threshold_share


def test_predictions_with_many_short_pools_are_reported_as_unreliable() -> None:
    assert predict_stability(pools=40, load=4.5, alpha="0.5").reliable
    assert not predict_stability(pools=300, load=4.5, alpha="0.7").reliable  # too many pools to keep track of
    assert predict_stability(pools=2000, load=4.5, alpha="0.93").reliable
    assert predict_stability(pools=2000, load=5.5, alpha="0.5").reliable  # nothing ever changes


@pytest.mark.parametrize(
    ("pools", "load", "alpha", "reliable"),
    # From simulations: with False, the relative error of a share was 4 % to 50 %, or that of changes over 2 %.
    [
        (10, 5.5, "0.1", False),
        (10, 5.5, "0.3", False),
        (10, 3.98, "0.2", False),
        (20, 3.98, "0.2", False),
        (100, 5.5, "0.5", False),
        (200, 5.5, "0.5", False),
        (10, 5.5, "0.5", True),
        (20, 5.5, "0.5", True),
        (20, 5.5, "0.7", True),
        (20, 5.5, "0.9", True),
        (20, 3.98, "0.5", True),
        (20, 10.5, "0.7", True),
    ],
)
def test_predictions_confirmed_by_simulation_are_reliable(
    pools: int, load: float, alpha: str, reliable: bool
) -> None:
    assert predict_stability(pools=pools, load=load, alpha=alpha).reliable == reliable


@pytest.mark.parametrize("load", [0.8, 1.5, 2.9, 3.0, 5.5])
def test_a_higher_threshold_at_rest_is_reported(load: float) -> None:
    level = optimal_thresholds(load)[-1] + 1
    theta = predict_equilibrium(load=load, threshold=level).theta
    assert theta is not None
    for pools in (20, 3000):
        assert predict_stability(pools=pools, load=load, alpha=f"{theta - 1e-6:.9f}").also_rests_at == level
        assert predict_stability(pools=pools, load=load, alpha=f"{theta + 1e-6:.9f}").also_rests_at is None


@pytest.mark.parametrize(
    ("fleet", "level", "resolved"),
    # The second and third have about as many states as the first, but would take about twenty seconds.
    [(Fleet(40, 4.5, 28), 6, True), (Fleet(100, 5.5, 50), 4, False), (Fleet(100, 5.5, 50), 5, False)],
)
def test_extra_is_kept_only_if_that_is_quick(fleet: Fleet, level: int, resolved: bool) -> None:
    assert states.shape_of(fleet, level).resolved == resolved


def test_to_dict_has_every_number() -> None:
    found = predict_stability(pools=100, load=2.9, alpha="0.97")
    written = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert written["threshold"]["time_at"]["3"] == found.threshold_share[3]
    assert written["messages"]["resync_per_task"] == found.resync_per_task
    assert written["alpha"] == 0.97
    names = set(Stability.__dataclass_fields__) - {"threshold_share", "change_rate", "resync_per_task"}
    assert {name: written[name] for name in names} == {name: getattr(found, name) for name in names}


# --- how many pools are stable -----------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize(
    ("load", "alpha", "share"),
    rest_in_full([(1.5, "0.8", 0.05), (1.05, "0.8", 0.27), (1.05, "0.8", 0.3)], 1),
)
def test_every_number_from_stable_pools_on_is_stable(load: float, alpha: str, share: float) -> None:
    # At load 1.05 the share rises with the pools between jumps: 0.27 holds for 26 and 27 pools, not for 28 to 30.
    least = stable_pools(load=load, alpha=alpha, share=share)
    assert least is not None
    first = int(1 / (1 - Fraction(alpha))) + 1  # fewer pools cannot work with this alpha
    off = {n: predict_stability(pools=n, load=load, alpha=alpha).share_off for n in range(first, least + 25)}
    assert least == max(n for n in off if off[n] > share) + 1


@pytest.mark.full
def test_stable_pools_of_the_paper() -> None:
    # Figure 3 shows 100, 400 and 500 pools, and calls the last stable.
    least = stable_pools(load=2.9, alpha=0.97)
    assert least is not None
    assert 1900 < least < 2000
    assert predict_stability(pools=500, load=2.9, alpha=0.97).share_above == pytest.approx(0.0737, abs=2e-4)
    below, at = (predict_stability(pools=n, load=2.9, alpha=0.97).share_off for n in (least - 1, least))
    assert at <= 0.01 < below


@pytest.mark.parametrize("load", [0.8, *(pytest.param(load, marks=pytest.mark.full) for load in (1.5, 2.9, 3.0))])
def test_no_number_of_pools_is_stable_if_a_higher_threshold_is_at_rest(load: float) -> None:
    theta = predict_equilibrium(load=load, threshold=optimal_thresholds(load)[-1] + 1).theta
    assert theta is not None
    assert stable_pools(load=load, alpha=f"{theta - 0.005:.3f}") is None
    assert stable_pools(load=load, alpha=f"{theta + 0.06:.2f}", share=0.1) is not None


@pytest.mark.full
def test_the_condition_of_the_paper_suffices_but_is_not_needed() -> None:
    assert 2.9 / 3 > 0.93  # against Cor. 2
    least = stable_pools(load=2.9, alpha="0.93", share=0.05)
    assert least is not None
    assert predict_stability(pools=2 * least, load=2.9, alpha="0.93").share_above < 0.025


def test_no_number_of_pools_is_stable_if_alpha_needs_too_many() -> None:
    assert stable_pools(load=2.5, alpha="0.9999999") is None


@pytest.mark.parametrize(
    ("load", "alpha", "most", "predictions"),
    [
        (1000.0, "0.93", 0, 0),
        (5.5, "0.99999", 9090, 0),
        (10.001, "0.999", 4999, 4),
        pytest.param(2.9, "0.97", 17241, 25, marks=pytest.mark.full),
    ],
)
def test_the_search_needs_few_predictions(
    load: float, alpha: str, most: int, predictions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def counted(*, pools: int, load: float, alpha: str) -> Stability:
        asked.append(pools)
        return predict_stability(pools=pools, load=load, alpha=alpha)

    monkeypatch.setattr(stability, "predict_stability", counted)
    found = stable_pools(load=load, alpha=alpha)
    assert most_searched(load) == most
    assert len(asked) <= predictions
    assert max(asked, default=0) <= most
    assert found is None or found in asked


@pytest.mark.parametrize(("share", "fewest"), [(0.5, 11), (1e-6, 11)])
def test_stable_pools_is_at_least_what_alpha_needs(share: float, fewest: int) -> None:
    found = stable_pools(load=0.1, alpha="0.9", share=share)
    assert found == fewest


# --- bad input ---------------------------------------------------------------------------------------------


def test_rules_that_cancel_each_other_are_rejected() -> None:
    with pytest.raises(
        InputError, match=r"alpha 0.97 is too large for 20 pools: it must be below 1 - 1/20 = 0.95"
    ):
        predict_stability(pools=20, load=2.9, alpha=0.97)
    with pytest.raises(InputError, match="too large for 20 pools"):
        predict_stability(pools=20, load=2.9, alpha="0.95")
    assert predict_stability(pools=20, load=2.9, alpha="0.9499").share_off > 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"pools": 1, "alpha": 0.01}, "pools must be a whole number from 2 to 1000000000, not 1"),
        ({"pools": 10**6 + 1}, "pools must be at most 1000000 for a prediction, not 1000001"),
        ({"load": 1000.5}, "load must be at most 1000 for a prediction, not 1000.5"),
        ({"load": 0.0}, "load must be a positive number"),
        (
            {"pools": 10**6, "load": 11.0},
            "pools times load must be at most 10000000 for a prediction, not 11000000",
        ),
        ({"alpha": 1}, "alpha must lie strictly between 0 and 1"),
    ],
)
def test_bad_input_is_rejected(options: dict[str, float | str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        predict_stability(**{"pools": 100, "load": 2.9, "alpha": "0.97", **options})  # type: ignore[arg-type]


def test_a_share_must_be_between_0_and_1() -> None:
    for share in (0.0, 1.0):
        with pytest.raises(InputError, match=r"share must be (a positive number of at most|below) 1"):
            stable_pools(load=2.9, alpha=0.97, share=share)
