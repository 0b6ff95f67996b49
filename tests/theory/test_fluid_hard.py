"""Fluid systems that are hard to solve: low loads, high thresholds, fast waves, brief and late events."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenly.theory.fluid.predict import predict_fluid
from evenly.theory.fluid.solver import grid_over
from evenly.workload.demand import Phase, parse_schedule
from tests.theory.fluid_support import MASS, small_steps
from tests.tiers import rest_in_full

FAST_FALLS: list[dict[str, Any]] = [
    {"load": 100.5, "alpha": "0.995", "threshold": 150, "initial_tasks": 150.0, "horizon": 1.0},
    {"load": 85.2, "threshold": 213, "initial_tasks": 213.9, "horizon": 0.9},
    {"load": 0.2, "alpha": "0.99", "threshold": 7, "initial_tasks": 7.0, "horizon": 6.0},
    {"load": 0.110820773546, "alpha": "0.999", "threshold": 7, "initial_tasks": 7.0, "horizon": 6.0},
    {"load": 1.0, "alpha": "0.97", "threshold": 12, "initial_tasks": 13.0, "horizon": 6.0},
    {"load": 60.0, "alpha": "0.94", "threshold": 50, "initial_occupancy": [1.0] * 48 + [0.95] * 3, "horizon": 1.0},
    {"load": 500.3, "alpha": "0.999", "threshold": 600, "initial_tasks": 600.0, "horizon": 0.2},
]
SWIFT_WAVES: list[dict[str, Any]] = [
    {"schedule": "0:6~6/0.5", "threshold": 1, "initial_tasks": 2.0, "horizon": 6.0},
    {"schedule": "0:5~5/0.5", "threshold": 1, "initial_tasks": 4.09, "horizon": 6.0},
    {"schedule": "0:7.75124~7.59766/0.5", "alpha": "0.5", "threshold": 7, "initial_tasks": 8.0, "horizon": 1.0},
    {"schedule": "0:6~6/0.5", "alpha": "0.999", "threshold": 1, "initial_tasks": 2.0, "horizon": 1.0},
    {"schedule": "0:2~2/0.5", "threshold": 9, "initial_tasks": 4.69, "horizon": 12.0},
    {"schedule": "0:0,2.2:5", "threshold": 1, "initial_tasks": 8.0, "horizon": 12.0},
    {"schedule": "0:0.4,3.1:0,5.5:1.27", "alpha": "0.97", "threshold": 7, "initial_tasks": 7.157, "horizon": 8.0},
]
LATE_EVENTS: list[dict[str, Any]] = [  # where the last digits of the time are coarser than the events need
    {"schedule": "0:2~1/300", "threshold": 1, "horizon": 5000.0},
    {"schedule": "0:2~1/300", "alpha": "0.8", "horizon": 5000.0},
    {"schedule": "0:2~1/50000", "alpha": "0.8", "horizon": 3e5},
    {"schedule": "0:10,5000.1:300,5100:20", "threshold": 100, "horizon": 5200.0},
]


@pytest.mark.parametrize("given_", FAST_FALLS + SWIFT_WAVES)
def test_mass_is_preserved_and_changes_do_not_depend_on_the_output_times(given_: dict[str, Any]) -> None:
    few, many = predict_fluid(**given_, points=2), predict_fluid(**given_, points=301)
    assert few.mass_error < MASS
    assert many.mass_error < MASS
    assert few.change_thresholds.tolist() == many.change_thresholds.tolist()
    assert few.change_times == pytest.approx(many.change_times, abs=1e-9)
    assert few.occupancy[-1] == pytest.approx(many.occupancy[-1], abs=1e-8)


@pytest.mark.parametrize(
    "given_", rest_in_full([case for case in FAST_FALLS + SWIFT_WAVES if case.get("load", 1) < 60], 5)
)
def test_small_steps_give_the_same_solution(given_: dict[str, Any]) -> None:
    horizon = min(given_["horizon"], 2.0)
    path = predict_fluid(**{**given_, "horizon": horizon}, points=2)
    load = given_.get("load")

    def demand(time: float) -> float:
        return load if load is not None else phase_at(given_["schedule"], time)

    alpha = float(given_["alpha"]) if "alpha" in given_ else None
    end, changes = small_steps(path.occupancy[0], given_["threshold"], demand, horizon, 1e-4, alpha)
    assert np.max(np.abs(end - path.occupancy[-1])) < 5e-3
    assert [value for _, value in changes] == path.change_thresholds.tolist()
    assert [time for time, _ in changes] == pytest.approx(path.change_times.tolist(), abs=5e-3)


def phase_at(text: str, time: float) -> float:
    return next(phase for phase in reversed(parse_schedule(text)) if phase.start <= time).load_at(time)


def test_a_brief_dip_below_alpha_is_a_fall() -> None:
    """q(50) is below alpha only for a moment."""
    path = predict_fluid(
        load=60.0, alpha="0.94", threshold=50, initial_occupancy=[1.0] * 48 + [0.95] * 3, horizon=1.0
    )
    assert path.change_thresholds[:2].tolist() == [49, 50]
    assert path.change_times[:2] == pytest.approx([0.000243, 0.014889], abs=1e-6)


@settings(max_examples=60)
@given(
    load=st.one_of(st.floats(0.02, 1), st.floats(1, 12), st.integers(1, 12).map(float)),
    alpha=st.sampled_from(["0.05", "0.5", "0.9", "0.97", "0.999"]),
    threshold=st.integers(0, 14),
    initial=st.one_of(st.floats(0, 14), st.integers(0, 14).map(float)),
)
def test_any_learning_system_is_solved(load: float, alpha: str, threshold: int, initial: float) -> None:
    path = predict_fluid(
        load=load, alpha=alpha, threshold=threshold, initial_tasks=initial, horizon=8.0, points=17
    )
    assert path.mass_error < MASS
    held = path.occupancy[np.arange(17), path.threshold]
    assert np.all((held >= float(alpha) - 1e-9) | (path.threshold == 0))


@settings(max_examples=40)
@given(
    load=st.floats(0.1, 8),
    swing=st.floats(0, 1),
    period=st.sampled_from([0.3, 1.0, 5.0]),
    drop=st.floats(0, 8),
    alpha=st.sampled_from([None, "0.5", "0.95"]),
    threshold=st.integers(0, 10),
    initial=st.floats(0, 10),
)
def test_any_varying_demand_is_solved(
    load: float, swing: float, period: float, drop: float, alpha: str | None, threshold: int, initial: float
) -> None:
    demand = [Phase(0.0, load, swing * load, period), Phase(2.0, drop), Phase(3.0, load, load, period)]
    path = predict_fluid(
        schedule=demand, alpha=alpha, threshold=threshold, initial_tasks=initial, horizon=4.0, points=9
    )
    assert path.mass_error < MASS
    assert np.all(np.diff(path.occupancy, axis=1) <= 1e-9)


@pytest.mark.parametrize("given_", rest_in_full(LATE_EVENTS, 2))
def test_events_late_in_a_long_run_are_found(given_: dict[str, Any]) -> None:
    path = predict_fluid(**given_)
    assert path.mass_error < MASS
    assert np.all(np.diff(path.occupancy, axis=1) <= 1e-9)
    assert path.mode_times[-1] > 0.7 * given_["horizon"]


def test_a_late_jump_of_the_load_has_the_effect_of_an_early_one() -> None:
    early = predict_fluid(schedule="0:10,60.1:200", alpha="0.9", horizon=80.0)
    late = predict_fluid(schedule="0:10,900000.1:200", alpha="0.9", horizon=900_020.0)
    assert late.change_thresholds.tolist() == early.change_thresholds.tolist()
    assert late.change_times[10:] - 900_000 == pytest.approx(early.change_times[10:] - 60, abs=1e-9)
    assert late.occupancy[-1] == pytest.approx(early.occupancy[-1], abs=1e-9)


def test_a_grid_that_is_cut_short_is_the_beginning_of_the_whole_grid() -> None:
    wave = Phase(0.0, 3.0, 1.0, 0.7)
    whole, short = grid_over(wave, 1.3, 90.0), grid_over(wave, 1.3, 90.0, until=4.1)
    assert whole[-1] == 90
    assert short.tolist() == whole[whole <= 4.1].tolist()


def test_a_long_horizon_ends_at_rest() -> None:
    for given_ in ({"threshold": 8}, {"threshold": 2}, {"threshold": 5}, {"alpha": "0.93", "initial_tasks": 9.0}):
        path = predict_fluid(load=5.5, horizon=1e6, points=5, **given_)
        assert path.mass_error < MASS
        assert path.occupancy[2] == pytest.approx(path.occupancy[-1], abs=1e-10)
