"""The fluid limit with learning: its definition, its theorems, and the same solution in small steps."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from evenly.theory.balance import balanced_occupancy, optimal_thresholds
from evenly.theory.equilibrium import predict_equilibrium
from evenly.theory.fluid.mass import tail_mass_bound
from evenly.theory.fluid.path import FluidPath
from evenly.theory.fluid.predict import predict_fluid
from evenly.theory.settling import predict_settling
from evenly.theory.tuning import settle_time_bound, settled_distance_bound
from evenly.workload.demand import parse_schedule
from tests.theory.fluid_support import MASS, Floats, random_start, small_steps
from tests.tiers import rest_in_full


def learned(count: int) -> list[tuple[Any, ...]]:
    """Return loads, alphas, initial thresholds and starts of every kind."""
    rng = np.random.default_rng(21)
    cases = []
    for n in range(count):
        load = float(rng.integers(1, 7)) if n % 5 == 0 else round(float(rng.uniform(0.3, 7)), 3)
        alpha = str(rng.choice(["0.5", "0.7", "0.85", "0.93", "0.99"]))
        cases.append((load, alpha, int(rng.integers(0, 10)), random_start(rng, 1.5 * load)))
    return cases


def thresholds_of(path: FluidPath, first: int) -> list[int]:
    return [first, *path.change_thresholds.tolist()]


@pytest.mark.parametrize(("load", "alpha", "threshold", "start"), rest_in_full(learned(28), 10))
def test_learning_satisfies_its_definition_and_the_theorems(
    load: float, alpha: str, threshold: int, start: Floats
) -> None:
    path = predict_fluid(
        load=load, alpha=alpha, threshold=threshold, initial_occupancy=start, horizon=25.0, points=501
    )
    gap = float(1 - Fraction(alpha))
    assert path.mass_error < MASS
    # Def. 2 (b): the threshold is never where the rule would change it.
    here = path.occupancy[np.arange(path.times.size), path.threshold]
    above = path.occupancy[np.arange(path.times.size), path.threshold + 1]
    inside = ~np.isin(path.times, path.change_times)
    assert np.all((here[inside] >= 1 - gap - 1e-9) | (path.threshold[inside] == 0))
    assert np.all(above[inside] < 1)
    # Def. 2 (c): one step at a time; Prop. 4: a fall after a rise takes at least (1 - alpha) / threshold.
    levels = thresholds_of(path, threshold)
    assert np.all(np.abs(np.diff(levels)) == 1)
    times = path.change_times.tolist()
    for n in range(1, len(times)):
        rose_then_fell = levels[n] > levels[n - 1] and levels[n + 1] < levels[n]
        if rose_then_fell and times[n - 1] > 0:
            assert times[n] - times[n - 1] >= gap / levels[n] - 1e-9
    # Thm 6 and Prop. 6: the threshold settles within the bounds.
    settled = int(path.threshold[-1])
    assert not times or times[-1] < 24
    low = math.floor(load) - (load == math.floor(load))
    assert low <= settled <= Fraction(str(load)) / Fraction(alpha)
    # The sharper bounds: ceil(load) for every alpha from 1/2 on, and in its own equilibrium a threshold above the
    # load has a fraction alpha of the pools at it.
    assert settled <= math.ceil(load)
    if settled > max(optimal_thresholds(load)):
        assert predict_equilibrium(load=load, threshold=settled).occupancy[settled] >= 1 - gap


@pytest.mark.parametrize(("load", "alpha", "threshold", "start"), rest_in_full(learned(16), 8))
def test_tail_bounds_hold_while_learning(load: float, alpha: str, threshold: int, start: Floats) -> None:
    """Prop. 5 from several times on, where m is the largest threshold from there to the end."""
    path = predict_fluid(
        load=load, alpha=alpha, threshold=threshold, initial_occupancy=start, horizon=10.0, points=401
    )
    for begin in (0, 40, 120):
        most = int(path.threshold[begin:].max())
        elapsed = path.times[begin:] - path.times[begin]
        tail = path.tail_mass(most + 1)[begin:]
        assert np.all(tail <= tail_mass_bound(tail[0], max(load - most, 0.0), elapsed) + MASS)
        beyond = path.tail_mass(most + 2)[begin:]
        assert np.all(beyond <= tail_mass_bound(beyond[0], 0.0, elapsed) + MASS)
        if np.all(path.occupancy[begin:, most] < 1):
            assert np.all(tail <= tail_mass_bound(tail[0], 0.0, elapsed) + MASS)


def crowded(tasks: float, pools: float) -> Floats:
    """Return the occupancy when a fraction `pools` of the pools has all of the `tasks` tasks per pool."""
    start = np.full(round(tasks / pools) + 1, pools)
    start[0] = 1.0
    return start


def distance(load: float, alpha: str, start: Floats, threshold: int = 0) -> tuple[float, float]:
    """Return the largest distance from balance times exp(t - bound) after the bound (15), and its own bound."""
    mass = float(start[1:].sum())
    time = settle_time_bound(load=load, alpha=alpha, initial_tasks=mass)
    most = settled_distance_bound(load=load, alpha=alpha, initial_tasks=mass)
    assert time is not None and most is not None
    path = predict_fluid(
        load=load, alpha=alpha, threshold=threshold, initial_occupancy=start, horizon=time + 8.0, points=801
    )
    late = path.times >= time
    off = np.abs(path.occupancy[late] - balanced_occupancy(load, path.occupancy.shape[1])).max(axis=1)
    return float(np.max(off * np.exp(path.times[late] - time))), most


@pytest.mark.full
def test_after_the_bound_on_the_time_the_distance_from_balance_falls_exponentially() -> None:
    """Cor. 3, from starts of every kind at loads below and above 1, with the constant that it does not give."""
    rng = np.random.default_rng(22)
    for n in range(40):
        load = round(float(rng.uniform(0.05, 0.95) if n % 3 == 0 else rng.uniform(1.05, 6.9)), 3)
        high = math.floor(load) + 1
        alpha = f"{load / high + (1 - load / high) * rng.uniform(0.05, 0.95):.5f}"
        start = crowded(rng.uniform(0.1, 2 * high), 0.05) if n % 4 == 0 else random_start(rng, 1.5 * load)
        found, most = distance(load, alpha, start, int(rng.integers(0, high + 3)))
        assert found <= most * (1 + 1e-6) + 1e-7


@pytest.mark.full
def test_the_constant_of_corollary_3_is_reached() -> None:
    """From an empty system, from one with all its tasks in few pools, and below load 1/2 from singles."""
    for load, alpha in ((5.5, "0.93"), (2.2, "0.85"), (0.3, "0.8")):
        found, most = distance(load, alpha, np.array([1.0]))
        assert found == pytest.approx(load - math.floor(load), rel=1e-3)
        assert most == pytest.approx(load - math.floor(load), rel=1e-12)
    for tasks in (3.0, 5.5, 5.58):
        found, most = distance(5.5, "0.93", crowded(tasks, 0.02))
        assert most == 0.5
        # A crowded pool has up to 6 tasks that are not above level 6, and the first time is just after the bound.
        assert most - 6 * 0.02 - 2e-3 < found <= most
    for tasks in (0.7, 0.95):  # the second takes until u = alpha
        found, most = distance(0.3, "0.8", np.array([1.0, tasks]))
        assert found == pytest.approx(most, rel=1e-6)
        assert most == pytest.approx(min(tasks, 0.8) - 0.3, rel=1e-12)


@pytest.mark.parametrize("pools", [0.01, 0.004])
@pytest.mark.parametrize("tasks", [2.2, 5.5, 5.58])
def test_the_bound_on_the_settling_time_is_nearly_reached_from_a_few_crowded_pools(
    tasks: float, pools: float
) -> None:
    """The crowded pools only lose tasks, so the others fill as from empty; they need a fraction `pools` less."""
    path = predict_fluid(load=5.5, alpha="0.93", initial_occupancy=crowded(tasks, pools), horizon=3.0, points=2)
    assert path.change_thresholds[-1] == 5
    assert path.change_times[-1] == pytest.approx(math.log(5.5 / (5.5 - 5 * (1 - pools))), abs=2e-3)
    bound = settle_time_bound(load=5.5, alpha="0.93", initial_tasks=tasks)
    assert bound is not None
    assert 0.95 * bound < path.change_times[-1] <= bound


def test_from_empty_pools_the_threshold_rises_when_the_mass_reaches_whole_numbers() -> None:
    path = predict_fluid(load=5.5, alpha="0.93")
    assert path.change_thresholds.tolist() == [1, 2, 3, 4, 5]
    assert path.change_times == pytest.approx([math.log(5.5 / (5.5 - k)) for k in range(1, 6)], abs=1e-9)


def test_the_threshold_falls_at_alpha() -> None:
    path = predict_fluid(load=5.5, alpha="0.93", threshold=9, initial_tasks=9.0)
    assert path.change_thresholds.tolist() == [8, 7, 6, 5]
    for time, value in zip(path.change_times.tolist(), path.change_thresholds.tolist(), strict=True):
        just = predict_fluid(load=5.5, alpha="0.93", threshold=9, initial_tasks=9.0, horizon=time - 1e-7, points=2)
        assert just.threshold[-1] == value + 1
        slope = 10.0  # no level changes faster
        assert 0 < just.occupancy[-1][value + 1] - 0.93 < slope * 1e-7
        at = predict_fluid(load=5.5, alpha="0.93", threshold=9, initial_tasks=9.0, horizon=time, points=2)
        assert at.occupancy[-1][value + 1] == pytest.approx(0.93, abs=1e-9)
        assert at.occupancy[-1][value] > 0.93  # so no second fall is due at once (Lem. 6, App. B.4)


def test_the_first_fall_is_not_before_the_deficit_allows_it() -> None:
    """While only level 9 has gaps, q(9) = 1 - w, and w = 9 - u: the first fall has a closed lower bound."""
    path = predict_fluid(load=5.5, alpha="0.93", threshold=9, initial_tasks=9.0)
    mass = 9 - 0.07  # the least deficit at which the gap can be 0.07
    earliest = math.log((9 - 5.5) / (mass - 5.5))
    assert earliest < path.change_times[0] < earliest + 0.005


@pytest.mark.parametrize(
    ("load", "alpha", "threshold", "initial"),
    rest_in_full(
        [(2.9, 0.97, 2, 4.5), (0.6, 0.9, 4, 4.0), (5.5, 0.93, 9, 9.0), (4.3, 0.6, 7, 7.5), (3.0, 0.8, 5, 6.2)], 2
    ),
)
def test_small_steps_change_the_threshold_at_the_same_times(
    load: float, alpha: float, threshold: int, initial: float
) -> None:
    path = predict_fluid(load=load, alpha=alpha, threshold=threshold, initial_tasks=initial, horizon=4.0, points=2)
    end, changes = small_steps(path.occupancy[0], threshold, lambda _: load, 4.0, 2e-4, alpha)
    assert [value for _, value in changes] == path.change_thresholds.tolist()
    assert [time for time, _ in changes] == pytest.approx(path.change_times.tolist(), abs=0.01)
    assert np.max(np.abs(end - path.occupancy[-1])) < 0.01


def test_a_start_where_the_rule_applies_changes_the_threshold_immediately() -> None:
    up = predict_fluid(load=5.5, alpha="0.93", threshold=0, initial_tasks=3.4, points=5)
    assert up.change_thresholds[:3].tolist() == [1, 2, 3]
    assert np.all(up.change_times[:3] == 0)
    assert up.threshold[0] == 3
    down = predict_fluid(load=5.5, alpha="0.93", threshold=6, initial_tasks=2.5, points=5)
    assert down.change_thresholds[:4].tolist() == [5, 4, 3, 2]
    assert np.all(down.change_times[:4] == 0)


@pytest.mark.parametrize("load", rest_in_full([0.95, 1.0, 2.2, 0.3, 2.9, 4.0, 4.75, 6.5], 3))
def test_predicted_settling_agrees_with_the_fluid_limit(load: float) -> None:
    """Props 6 and 7 and Cor. 2 as `evenly tune` states them, from starts above and below."""
    for alpha in ("0.5", "0.75", "0.9", "0.97", "0.99"):
        for initial, threshold in ((0.0, 0), (3.2, 3), (9.0, 9)):
            expected = predict_settling(load=load, alpha=alpha, initial_tasks=initial)
            path = predict_fluid(
                load=load, alpha=alpha, threshold=threshold, initial_tasks=initial, horizon=25.0, points=126
            )
            low, high = expected.settled_threshold
            settled = int(path.threshold[-1])
            assert low <= settled <= high
            if expected.optimal:
                assert settled in optimal_thresholds(load)
            bound = expected.settle_time_bound
            if bound is not None:
                assert np.all(path.threshold[path.times > bound + 1e-9] == math.floor(load))


@pytest.mark.parametrize(
    ("load", "alpha", "initial"),
    [
        *[(5.5, "0.93", 0.0), (5.5, "0.93", 9.0), (2.9, "0.97", 0.0), (2.9, "0.97", 5.5)],
        *[(10.5, "0.96", 0.0), (10.5, "0.96", 14.0), (0.7, "0.8", 0.0), (0.7, "0.8", 2.0)],
    ],
)
def test_the_threshold_settles_before_the_bound(load: float, alpha: str, initial: float) -> None:
    """Prop. 7, with its formula written out again."""
    best, up = math.floor(load), math.ceil(load)
    bound = math.log(load / (load - best)) if best else 0.0
    if initial > load:
        bound += max(0.0, math.log((initial - load) / (float(alpha) * up - load)))
    path = predict_fluid(load=load, alpha=alpha, initial_tasks=initial, horizon=bound + 3, points=401)
    assert np.all(path.threshold[path.times > bound + 1e-9] == best)
    assert np.all(path.occupancy[path.times > bound + 1e-9, best] > 1 - 1e-9)
    if initial == 0 and best:  # tight
        assert path.change_times[-1] == pytest.approx(bound, abs=1e-9)


def test_the_threshold_can_settle_too_high_when_alpha_is_small() -> None:
    """The condition of Cor. 2 matters: 2.9 / 3 > 0.9, and the threshold stays at 3."""
    path = predict_fluid(load=2.9, alpha="0.9", threshold=5, initial_tasks=6.0, horizon=40.0)
    assert path.threshold[-1] == 3
    end = path.occupancy[-1]
    assert np.max(np.abs(end - balanced_occupancy(2.9, end.size))) > 0.005


def test_the_threshold_follows_a_varying_demand() -> None:
    text = "0:5,2:5~1/2,15:5,20:10,30:3,33:6~3/12,45:5"
    path = predict_fluid(schedule=text, alpha="0.91", horizon=50.0, points=1001)
    assert path.mass_error < MASS
    assert np.all(np.diff(path.change_times) > 0)
    phases = parse_schedule(text)

    def demand(time: float) -> float:
        return next(phase for phase in reversed(phases) if phase.start <= time).load_at(time)

    short = predict_fluid(schedule=text, alpha="0.91", horizon=8.0, points=2)
    end, changes = small_steps(short.occupancy[0], 0, demand, 8.0, 2e-4, 0.91)
    assert [value for _, value in changes] == short.change_thresholds.tolist()
    assert [time for time, _ in changes] == pytest.approx(short.change_times.tolist(), abs=0.01)
    assert np.max(np.abs(end - short.occupancy[-1])) < 0.01
    # Long after the jumps the threshold is the optimum of the load, or one below it at a whole load.
    at = {time: int(value) for time, value in zip(path.times.round(6).tolist(), path.threshold, strict=True)}
    assert at[29.0] in (9, 10)
    assert at[32.9] in (2, 3)
