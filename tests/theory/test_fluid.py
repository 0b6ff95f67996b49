"""The fluid limit with a fixed threshold, against closed forms, its own equations and small steps."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenly.errors import InputError
from evenly.theory.balance import balanced_occupancy, optimal_thresholds
from evenly.theory.fluid.mass import tail_mass_bound
from evenly.theory.fluid.modes import Mode, assignment
from evenly.theory.fluid.path import FluidPath
from evenly.theory.fluid.predict import predict_fluid
from evenly.workload.demand import Phase
from tests.theory.fluid_support import MASS, Floats, random_start, small_steps
from tests.tiers import rest_in_full


def starts(count: int) -> list[tuple[Any, ...]]:
    """Return loads, thresholds and starts of every kind."""
    rng = np.random.default_rng(20)
    cases = []
    for n in range(count):
        load = float(rng.integers(1, 9)) if n % 4 == 0 else round(float(rng.uniform(0.2, 9)), 3)
        threshold = max(0, math.floor(load) + int(rng.integers(-3, 4)))
        cases.append((load, threshold, random_start(rng, load)))
    return cases


@pytest.mark.parametrize(("load", "threshold", "start"), rest_in_full(starts(30), 12))
def test_mass_and_order_are_preserved_and_the_tail_bounds_hold(load: float, threshold: int, start: Floats) -> None:
    path = predict_fluid(load=load, threshold=threshold, initial_occupancy=start, horizon=12.0, points=241)
    assert path.mass_error < MASS
    expected = load + (start[1:].sum() - load) * np.exp(-path.times)
    assert np.allclose(path.occupancy[:, 1:].sum(axis=1), expected, rtol=0, atol=MASS)
    assert np.all(path.occupancy[:, 0] == 1)
    assert np.all(np.diff(path.occupancy, axis=1) <= 1e-10)
    # Prop. 1, at every load and from any time on: the errata and sharpenings have the proof.
    for level in (threshold + 1, threshold + 2):
        mass, limit = path.tail_mass(level), max(load - level + 1, 0.0)
        for begin in (0, 20, 60):
            bound = tail_mass_bound(mass[begin], limit, path.times[begin:] - path.times[begin])
            assert np.all(mass[begin:] <= bound + MASS)


def test_the_bounds_on_tail_masses_are_reached() -> None:
    """From full pools, the mass above the threshold obeys its bound with equality while no pool is below."""
    for load, threshold, tasks in ((5.5, 5, 11), (5.5, 3, 0), (2.0, 1, 9)):
        path = predict_fluid(load=load, threshold=threshold, initial_tasks=float(tasks), horizon=12.0, points=241)
        full = path.occupancy[:, threshold] == 1
        first = int(np.argmax(full))
        assert np.all(full[first:])
        mass = path.tail_mass(threshold + 1)[first:]
        bound = tail_mass_bound(mass[0], load - threshold, path.times[first:] - path.times[first])
        assert np.allclose(mass, bound, rtol=0, atol=MASS)


@pytest.mark.parametrize(("load", "threshold", "start"), rest_in_full(starts(10), 5))
def test_small_steps_give_the_same_solution(load: float, threshold: int, start: Floats) -> None:
    path = predict_fluid(load=load, threshold=threshold, initial_occupancy=start, horizon=1.5, points=2)
    size = path.occupancy.shape[1]
    padded = np.pad(start, (0, size - start.size))
    errors = [
        np.max(np.abs(small_steps(padded, threshold, lambda _: load, 1.5, dt)[0] - path.occupancy[-1]))
        for dt in (1e-3, 5e-4)
    ]
    # First order in the step, with a constant that stays below ten times the largest rate.
    assert errors[1] < 10 * max(load, 10) * 5e-4
    assert errors[1] < 0.7 * errors[0] or errors[0] < 1e-6


@pytest.mark.parametrize(("load", "threshold", "start"), rest_in_full(starts(12), 6))
def test_the_path_solves_the_integral_equation(load: float, threshold: int, start: Floats) -> None:
    """Between events, q(t) - q(s) is the integral of arrivals minus departures."""
    path = predict_fluid(load=load, threshold=threshold, initial_occupancy=start, horizon=3.0, points=6001)
    level = np.arange(path.occupancy.shape[1])
    slopes = np.array(
        [
            assignment(np.where(row > 1 - 1e-10, 1.0, row), load, threshold) - level * -np.diff(row, append=0.0)
            for row in path.occupancy
        ]
    )
    dt = path.times[1]
    middle = path.occupancy[2::2] - path.occupancy[:-2:2]
    simpson = dt / 3 * (slopes[:-2:2] + 4 * slopes[1:-1:2] + slopes[2::2])
    misfit = np.abs(middle - simpson).max(axis=1)
    # A few steps contain an event, or are so close to a surface that Simpson's rule is too coarse.
    assert np.mean(misfit > 1e-7) < 0.08
    assert misfit.max() < 20 * dt


def test_empty_pools_fill_up_at_the_times_that_the_mass_gives() -> None:
    """From empty pools, q(threshold) reaches 1 when u reaches the threshold, and u is known."""
    path = predict_fluid(load=10.5)
    assert path.modes == (Mode.FILL, Mode.HOLD)
    assert path.mode_times[1] == pytest.approx(math.log(10.5 / 0.5), abs=1e-9)
    low = predict_fluid(load=10.5, threshold=3)
    assert low.modes == (Mode.FILL, Mode.HOLD, Mode.SPILL)
    # All pools have three tasks when u = 3, and four when u = 4, because no tasks are elsewhere.
    assert low.mode_times[1:] == pytest.approx([math.log(10.5 / 7.5), math.log(10.5 / 6.5)], abs=1e-9)


def test_a_level_that_the_load_cannot_hold_is_let_go() -> None:
    path = predict_fluid(load=5.5, threshold=7, initial_tasks=12.0)
    assert path.modes == (Mode.SPILL, Mode.HOLD, Mode.FILL)
    leave_high, leave = path.mode_times[1:]
    at_high = predict_fluid(
        load=5.5, threshold=7, initial_tasks=12.0, horizon=float(leave_high), points=2
    ).occupancy[-1]
    assert 8 * (1 - at_high[9]) == pytest.approx(5.5, abs=1e-8)
    at_low = predict_fluid(load=5.5, threshold=7, initial_tasks=12.0, horizon=float(leave), points=2).occupancy[-1]
    assert at_low[7] == pytest.approx(1, abs=1e-9)
    assert 7 * (1 - at_low[8]) == pytest.approx(5.5, abs=1e-8)


def test_a_level_is_let_go_at_the_time_of_the_closed_form() -> None:
    """In (b) with no pool above h, q(h) = u - threshold: the level is let go when u = h - load / threshold."""
    path = predict_fluid(load=5.5, threshold=7, initial_tasks=7.9)
    assert path.modes == (Mode.HOLD, Mode.FILL)
    mass = 7 + 1 - 5.5 / 7
    assert path.mode_times[1] == pytest.approx(math.log((7.9 - 5.5) / (mass - 5.5)), abs=1e-9)


@pytest.mark.parametrize("load", [0.4, 1.0, 2.9, 5.0, 5.5, 10.5, 20.25])
def test_every_start_leads_to_balance_under_an_optimal_threshold(load: float) -> None:
    rng = np.random.default_rng(3)
    for threshold in optimal_thresholds(load):
        for _ in range(3):
            path = predict_fluid(
                load=load, threshold=threshold, initial_occupancy=random_start(rng, load), horizon=24.0, points=2
            )
            end = path.occupancy[-1]
            assert np.allclose(end, balanced_occupancy(load, end.size), rtol=0, atol=1e-8)


@pytest.mark.parametrize(("load", "threshold"), [(5.5, 2), (5.5, 4), (5.5, 6), (5.5, 8), (3.0, 1), (3.0, 4)])
def test_other_thresholds_settle_away_from_balance(load: float, threshold: int) -> None:
    end = predict_fluid(load=load, threshold=threshold, initial_tasks=1.0, horizon=60.0, points=2).occupancy[-1]
    assert np.max(np.abs(end - balanced_occupancy(load, end.size))) > 0.1
    level = np.arange(end.size)
    drift = assignment(np.where(end > 1 - 1e-10, 1.0, end), load, threshold) + level * np.diff(end, append=0.0)
    assert np.max(np.abs(drift[1:])) < 1e-7


def test_balance_is_a_fixed_point() -> None:
    for load in (0.5, 3.0, 5.5):
        path = predict_fluid(load=load, initial_occupancy=balanced_occupancy(load, 12), horizon=50.0)
        assert np.max(np.abs(path.occupancy - path.occupancy[0])) < 1e-10
        assert len(path.modes) == 1


def test_a_surface_that_is_never_reached_is_approached_safely() -> None:
    path = predict_fluid(load=5.0, horizon=60.0)
    assert path.modes[0] is Mode.FILL
    assert path.mass_error < MASS
    assert path.occupancy[-1][5] == pytest.approx(1, abs=1e-9)


def test_a_load_of_zero_empties_the_pools_and_a_step_up_refills_them() -> None:
    path = predict_fluid(schedule="0:5.5,10:0,20:3.3", threshold=2, horizon=40.0)
    assert "".join(mode.value for mode in path.modes) == "abcbabc"
    assert path.mass_error < MASS
    # Without arrivals, only the surviving tasks are left at time 20.
    assert path.total_mass[path.times == 20.0][0] == pytest.approx((5.5 - 5.5 * math.exp(-10)) * math.exp(-10))


def test_a_wave_is_the_limit_of_many_small_steps() -> None:
    wave = [Phase(0.0, 4.2, 1.5, 3.0)]
    path = predict_fluid(schedule=wave, threshold=4, initial_tasks=6.0, horizon=6.0, points=61)
    errors = []
    for pieces in (120, 240):
        edges = np.linspace(0, 6.0, pieces + 1)
        steps = [Phase(float(a), wave[0].load_at((a + b) / 2)) for a, b in pairwise(edges)]
        other = predict_fluid(schedule=steps, threshold=4, initial_tasks=6.0, horizon=6.0, points=61)
        errors.append(np.max(np.abs(other.occupancy - path.occupancy)))
    assert errors[1] < 2e-4
    assert errors[1] < 0.4 * errors[0]  # second order
    assert path.mass_error < MASS
    slow, _ = small_steps(path.occupancy[0], 4, wave[0].load_at, 6.0, 5e-4)
    assert np.max(np.abs(slow - path.occupancy[-1])) < 5e-3


def test_levels_left_out_are_bounded_and_the_bound_is_stated() -> None:
    path = predict_fluid(load=8.5, threshold=1, initial_tasks=3.0)
    assert 0 < path.truncation < 1e-12
    assert predict_fluid(load=8.5).truncation == 0
    assert path.occupancy[:, -1].max() < 1e-11  # the error of the integration


def test_imbalance_is_the_distance_from_balance() -> None:
    path = predict_fluid(load=2.5, initial_tasks=4.0, points=11)
    levels = path.occupancy.shape[1]
    expected = [math.dist(row, balanced_occupancy(2.5, levels)) for row in path.occupancy]
    assert path.imbalance == pytest.approx(expected)
    assert path.imbalance[-1] < 1e-7


@settings(max_examples=30)
@given(
    load=st.floats(0.05, 12), threshold=st.integers(0, 14), initial=st.floats(0, 15), horizon=st.floats(0.01, 30)
)
def test_any_balanced_start_is_solved(load: float, threshold: int, initial: float, horizon: float) -> None:
    path = predict_fluid(load=load, threshold=threshold, initial_tasks=initial, horizon=horizon, points=7)
    assert path.mass_error < MASS
    assert path.times[-1] == horizon
    assert len(path.modes) <= 6


def test_the_start_can_list_the_tasks_of_each_pool() -> None:
    path = predict_fluid(load=2.5, initial_tasks=[3, 0, 1, 3], points=5)
    same = predict_fluid(load=2.5, initial_occupancy=[1, 0.75, 0.5, 0.5], points=5)
    assert path.occupancy[0][:5].tolist() == [1, 0.75, 0.5, 0.5, 0]
    assert np.array_equal(path.occupancy, same.occupancy)
    assert (path.initial_tasks, path.initial_occupancy) == ((3, 0, 1, 3), None)
    assert same.initial_tasks is None
    assert path.to_dict()["initial"] == [3, 0, 1, 3]
    counts = np.array([3, 0, 1, 3])
    assert predict_fluid(load=2.5, initial_tasks=counts, points=5) == path  # type: ignore[arg-type]


def check_contract(path: FluidPath) -> None:
    found = path.to_dict()
    assert set(found) >= {"times", "occupancy", "threshold", "update_times"}
    assert len(found["times"]) == len(found["occupancy"]) == len(found["threshold"])


def test_to_dict_has_the_documented_keys() -> None:
    check_contract(predict_fluid(load=2.5, points=5))
    check_contract(predict_fluid(load=2.5, alpha="0.9", points=5))


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({}, "a load or a schedule"),
        ({"load": 5.5, "schedule": "0:5"}, "not both"),
        ({"load": -1}, "load must be a positive number of at most 100000, not -1"),
        ({"load": 5.5, "threshold": -1}, "threshold must be a whole number from 0 to"),
        ({"load": 5.5, "alpha": 1.5}, "strictly between 0 and 1, not 1.5"),
        ({"load": 5.5, "alpha": "0.9999999"}, "at most 0.999999"),
        ({"load": 5.5, "alpha": "0." + "5" * 51}, "alpha must have at most 50 decimal places"),
        ({"load": 5.5, "initial_tasks": -1}, "initial_tasks must be a number from 0 to 3000"),
        (
            {"load": 5.5, "initial_tasks": 0, "initial_occupancy": [1.0]},
            "initial_tasks or initial_occupancy, and not",
        ),
        ({"load": 5.5, "initial_tasks": [1, 0.5]}, "initial_tasks must be a whole number from 0 to 2999, not 0.5"),
        ({"load": 5.5, "initial_occupancy": [0.9, 0.5]}, "must start with 1"),
        ({"load": 5.5, "initial_occupancy": [1, 0.5, 0.6]}, "never increase"),
        ({"load": 5.5, "initial_occupancy": [1, 0.5, -0.1]}, "have no negative number"),
        ({"load": 5.5, "initial_occupancy": "x"}, "initial occupancy must start with 1"),
        ({"load": 5.5, "initial_tasks": range(10**12)}, "a list with the tasks of each pool, not range"),
        ({"load": 5.5, "horizon": 1e-308}, "horizon must be a number from 1e-12 to"),
        ({"schedule": "0:2,1e-308:3"}, "Each phase of the demand must last at least 1e-12"),
        ({"schedule": "0:1000~500/1", "alpha": 0.9, "horizon": 900.0}, "would change about 2.81e.05 times"),
        ({"load": 5.5, "points": 1}, "points must be a whole number from 2 to"),
        ({"load": 5000}, "levels"),
        ({"load": 900, "points": 100_000}, "points times levels"),
        ({"schedule": [Phase(0.0, 5.0, 1.0, 1e-6)]}, "phases and periods"),
        ({"schedule": "5:1"}, "begin at time 0"),
    ],
)
def test_bad_input_is_rejected(given_: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        predict_fluid(**given_)  # type: ignore[arg-type]  # bad on purpose
