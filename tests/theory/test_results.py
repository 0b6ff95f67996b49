"""Predictions as results: their summary lines, tables, plots, and equality by value."""

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenly import theory
from evenly.errors import InputError
from evenly.theory import (
    power_of_d_fluid,
    predict_diffusion,
    predict_equilibrium,
    predict_fluid,
    predict_settling,
    predict_stability,
    random_fluid,
    solve_exact,
)
from evenly.theory.wording import ALPHA
from tests.theory.result_support import check_frames, check_plot, check_table, check_value, check_words

LEVELS = ["tasks", "pools_with_exactly", "occupancy"]
OVER_TIME = ["time", "demand", "mean_tasks", "threshold", "imbalance"]
LONG_RUN = [
    "quantity", "mean", "deviation", "quantile_0.05", "quantile_0.25", "quantile_0.50", "quantile_0.75",
    "quantile_0.95",
]  # fmt: skip
SETTLING = [
    "load", "alpha", "initial_tasks", "settled_threshold_least", "settled_threshold_largest", "optimal",
    "settle_time_bound",
]  # fmt: skip
EXACT = ["tasks", "pools_with_exactly", "task_share", "max_tasks_distribution"]

# name: (factory, a changed field, words of its summary line, columns, rows, panels)
Case = tuple[Callable[[], Any], dict[str, Any], list[str], list[str], int, int | None]
RESULTS: dict[str, Case] = {
    "exact, learning": (
        lambda: solve_exact(pools=2, load=0.5, alpha="0.4", capacity=3),
        {"spread": 0.5},
        [f"threshold {ALPHA}=0.4, 2 pools, load 0.5: max ", "spread ", "imbalance ", "% lost"],
        EXACT,
        4,
        3,
    ),
    "exact, jsq": (
        lambda: solve_exact(policy="jsq", pools=2, load=0.5, capacity=2),
        {"pools_with_exactly": np.array([0.5, 0.4, 0.1])},
        ["jsq, 2 pools, load 0.5: max "],
        EXACT,
        3,
        2,
    ),
    "fluid, fixed": (
        lambda: predict_fluid(load=2.5, horizon=3.0, points=4),
        {"initial_threshold": 3},
        ["threshold 2, load 2.5, from empty pools: at time 3 threshold 2, imbalance "],
        OVER_TIME,
        4,
        3,
    ),
    "fluid, learning": (
        lambda: predict_fluid(
            schedule="0:2.5,1:1.5~1/2", alpha="0.9", initial_tasks=[4, 2], horizon=3.0, points=4
        ),
        {"alpha": "0.8"},
        [f"threshold {ALPHA}=0.9, 2 phases of demand, from pools with 2 to 4 tasks: at time 3 threshold 1"],
        OVER_TIME,
        4,
        3,
    ),
    "fluid, from an occupancy": (
        lambda: predict_fluid(load=2.5, initial_occupancy=[1.0, 0.5], horizon=3.0, points=4),
        {"occupancy": np.ones((4, 5))},
        ["from an occupancy of 0.5 tasks per pool"],
        OVER_TIME,
        4,
        3,
    ),
    "equilibrium, large": (
        lambda: predict_equilibrium(load=2.5, threshold=4),
        {"theta": 0.5},
        ["threshold 4, load 2.5: too large, theta 0.2360, spread 1.158"],
        LEVELS,
        5,
        1,
    ),
    "equilibrium, optimal": (
        lambda: predict_equilibrium(load=2.5),
        {"threshold": 1},
        ["threshold 2, load 2.5: optimal, spread 0.500"],
        LEVELS,
        4,
        1,
    ),
    "equilibrium, jsq": (
        lambda: predict_equilibrium(policy="jsq", load=3),
        {"policy": "random"},
        ["jsq, load 3: spread 0.000"],
        LEVELS,
        4,
        1,
    ),
    "equilibrium, power-of-d": (
        lambda: predict_equilibrium(policy="power-of-d", load=2.5, sample_size=3),
        {"sample_size": 2},
        ["power-of-3, load 2.5: spread 0.861"],
        LEVELS,
        len(predict_equilibrium(policy="power-of-d", load=2.5, sample_size=3).occupancy),
        1,
    ),
    "diffusion": (
        lambda: predict_diffusion(load=2.5, points=5, paths=2, horizon=2.0),
        {"seed": 2},
        ["load 2.5, ornstein-uhlenbeck: pools with 3 or more 0.000 ± 1.581, in sqrt(pools)"],
        LONG_RUN,
        1,
        2,
    ),
    "diffusion at a whole load": (
        lambda: predict_diffusion(load=3, pools=400, points=5, paths=2, horizon=1.0),
        {"sample_paths": {}},
        ["load 3, 400 pools, reflected: tasks missing below 3 0.9", "pools with more than 3 0.9"],
        LONG_RUN,
        2,
        4,
    ),
    "settling": (
        lambda: predict_settling(load=5.5, alpha="0.93", initial_tasks=9),
        {"optimal": False},
        [f"load 5.5, {ALPHA}=0.93, from 9 tasks per pool: settles at 5, within 6.176 mean task times"],
        SETTLING,
        1,
        None,
    ),
    "settling, unbounded": (
        lambda: predict_settling(load=0.5, alpha=0.2),
        {"load": 0.6},
        ["settles at 0 to 2 by the paper's bounds, no bound on the time is known"],
        SETTLING,
        1,
        None,
    ),
    "stability": (
        lambda: predict_stability(pools=20, load=1.5, alpha="0.8"),
        {"threshold_share": {1: 1.0}},
        [f"20 pools, load 1.5, {ALPHA}=0.8: ", "% of the time off the optimum 1, ", " changes per mean task time"],
        ["threshold", "share", "optimal"],
        len(predict_stability(pools=20, load=1.5, alpha="0.8").threshold_share),
        None,
    ),
    "power-of-d over time": (
        lambda: power_of_d_fluid(load=2.5, horizon=2.0, points=3),
        {"sample_size": 3},
        ["power-of-2, load 2.5: 2.1617 tasks per pool at time 2"],
        ["time", "mean_tasks"],
        3,
        None,
    ),
    "random over time": (
        lambda: random_fluid(load=2.5, initial_tasks=[3, 1], horizon=2.0, points=3),
        {"initial_tasks": 2.0},
        ["random, load 2.5: 2.4323 tasks per pool at time 2"],
        ["time", "mean_tasks"],
        3,
        None,
    ),
}
each = pytest.mark.parametrize("name", RESULTS)
each_class = pytest.mark.parametrize("name", {type(made[0]()): name for name, made in RESULTS.items()}.values())


@each
def test_a_result_prints_as_one_line_and_as_a_table(name: str) -> None:
    make, _, words, _, _, _ = RESULTS[name]
    check_words(make(), words)


@each_class
def test_a_result_is_frozen_and_equal_by_value(name: str) -> None:
    make, changed, _, _, _, _ = RESULTS[name]
    check_value(make, replace(make(), **changed))


@each_class
def test_a_result_converts_to_frames(name: str) -> None:
    make, _, _, columns, rows, _ = RESULTS[name]
    check_frames(make(), columns, rows)


@each
def test_plots_write_no_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make, _, _, _, _, panels = RESULTS[name]
    check_plot(make(), tmp_path, panels=panels)


def test_further_tables() -> None:
    law = solve_exact(pools=2, load=0.5, alpha="0.4", capacity=3)
    check_table(law.thresholds, ["threshold", "share"], len(law.threshold_share or {}))
    assert sum(law.thresholds["share"]) == pytest.approx(1)
    check_table(solve_exact(policy="jsq", pools=2, load=0.5).thresholds, ["threshold", "share"], 0)
    path = predict_fluid(load=2.5, alpha="0.9", horizon=3.0, points=4)
    check_table(path.levels, ["time", "tasks", "occupancy"], path.occupancy.size)
    check_table(path.changes, ["time", "threshold"], 2)
    assert path.levels["occupancy"][path.occupancy.shape[1] + 1] == path.occupancy[1, 1]
    assert path.levels["time"][path.occupancy.shape[1]] == path.times[1]
    limit = predict_diffusion(load=3, points=5, paths=2, horizon=1.0)
    check_table(limit.samples, ["path", "time", "below", "above"], 10)
    assert limit.samples["below"][7] == limit.sample_paths["below"][1, 2]
    check_table(limit.variances, ["time", "variance"], 5)
    other = power_of_d_fluid(load=2.5, horizon=2.0, points=3)
    check_table(other.levels, ["time", "tasks", "occupancy"], other.occupancy.size)


def test_results_keep_their_inputs() -> None:
    law = solve_exact(pools=2, load=0.5, alpha="0.4", capacity=3)
    assert (law.policy, law.pools, law.load, law.alpha, law.capacity) == ("threshold", 2, 0.5, "0.4", 3)
    assert law.initial_threshold == 0
    assert law.change_rate == (law.rise_rate or 0) + (law.fall_rate or 0)
    assert law.messages_per_task == (law.green_per_task or 0) + (law.yellow_per_task or 0)
    path = predict_fluid(load=2.5, alpha="0.9", threshold=1, initial_tasks=3, horizon=4.0, points=9)
    assert (path.load, path.schedule, path.alpha, path.initial_threshold) == (2.5, None, "0.9", 1)
    assert (path.initial_tasks, path.horizon, path.points) == (3, 4.0, 9)
    assert [phase.load for phase in predict_fluid(schedule="0:2,1:3", points=2).phases] == [2, 3]
    found = predict_settling(load=5.5, alpha="0.93", initial_tasks=[9, 10, 8])
    assert found.initial_tasks == (9, 10, 8)
    assert found.settle_time_bound == predict_settling(load=5.5, alpha="0.93", initial_tasks=9).settle_time_bound
    assert found.to_dict()["initial_load"] == 9
    limit = predict_diffusion(load=2.5, pools=30, horizon=4, points=7, paths=1, seed=9)
    assert (limit.pools, limit.horizon, limit.points, limit.paths, limit.seed) == (30, 4.0, 7, 1, 9)
    assert limit.occupancy_mean == {3: 0.5}


def test_to_dict_has_all_inputs_under_old_and_new_names() -> None:
    path = predict_fluid(load=2.5, alpha="0.9", initial_tasks=[4, 2], horizon=3.0, points=4)
    report = path.to_dict()
    assert report["initial_tasks"] == report["initial"] == [4, 2]
    assert report["initial_occupancy"] is None
    assert report["change_times"] == report["update_times"] == path.change_times.tolist()
    assert report["change_thresholds"] == report["update_thresholds"] == path.change_thresholds.tolist()
    assert predict_fluid(load=2.5, initial_occupancy=[1, 0.5], points=2).to_dict()["initial_occupancy"] == [1, 0.5]
    law = solve_exact(policy="power-of-d", pools=2, load=0.5, tolerance=1e-6).to_dict()
    assert (law["sample_size"], law["choices"], law["tolerance"]) == (2, 2, 1e-6)
    other = random_fluid(load=2.5, initial_tasks=[3, 1], points=2).to_dict()
    assert (other["initial_tasks"], other["initial_occupancy"]) == ([3, 1], None)


def test_the_same_quantity_has_the_same_name() -> None:
    law = solve_exact(pools=2, load=0.5, alpha="0.4")
    assert law.threshold == sum(level * share for level, share in law.threshold_share.items())
    other = solve_exact(policy="jsq", pools=2, load=0.5)
    assert (other.threshold, other.threshold_share) == (None, {})
    assert other.to_dict()["threshold"] is None
    path = predict_fluid(load=2.5, horizon=3.0, points=4)
    assert path.mean_tasks.tolist() == path.total_mass.tolist()
    peers = power_of_d_fluid(load=2.5, horizon=2.0, points=3)
    assert peers.mean_tasks.tolist() == peers.total_mass.tolist()


@each_class
def test_a_result_is_read_only_and_so_are_its_copies(name: str) -> None:
    made = RESULTS[name][0]()
    for result in (made, copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert result == made
        for field in fields(result):
            check_frozen(getattr(result, field.name))


def check_frozen(value: object) -> None:
    if isinstance(value, np.ndarray):
        assert not value.flags.writeable
    if isinstance(value, dict):
        with pytest.raises(TypeError, match="read-only"):
            value["more"] = 1
        for held in value.values():
            check_frozen(held)


def test_a_result_copies_the_initial_occupancy() -> None:
    start = np.array([1.0, 0.5])
    path = predict_fluid(load=2.5, initial_occupancy=start, points=2)
    start[1] = 0.1
    assert path.initial_occupancy is not None
    assert path.initial_occupancy.tolist() == [1.0, 0.5]


def test_a_start_is_a_number_or_a_list() -> None:
    words = "initial_tasks must be a number of tasks per pool, or a list"
    start: Any
    for start in ({1, 2}, iter([1, 2]), (n for n in (1, 2)), np.array(3), np.ones((2, 2), int), b"12", [], "2"):
        with pytest.raises(InputError, match=words):
            predict_fluid(load=2.5, initial_tasks=start)
    start = {1, 2}
    for predict in (
        lambda: power_of_d_fluid(load=2.5, initial_tasks=start),
        lambda: predict_settling(load=5.5, alpha="0.93", initial_tasks=start),
        lambda: theory.settle_time_bound(load=5.5, alpha="0.93", initial_tasks=start),
    ):
        with pytest.raises(InputError, match=words):
            predict()


def test_the_spread_of_an_equilibrium_is_the_deviation_over_pools() -> None:
    found = predict_equilibrium(policy="random", load=4.0)
    assert found.spread == pytest.approx(2.0, abs=1e-9)  # the tasks of a pool are Poisson


def test_the_plot_shows_where_the_threshold_settles() -> None:
    from matplotlib.figure import Figure

    axes = predict_settling(load=2.5, alpha="0.7").plot(ax=Figure().add_subplot())
    (marks,) = (line for line in axes.get_lines() if str(line.get_label()).startswith("load 2.5"))
    assert np.asarray(marks.get_ydata()).tolist() == [2, 3]
    upper = next(line for line in axes.get_lines() if str(line.get_label()).startswith("_"))
    loads, highest = np.asarray(upper.get_xdata()), np.asarray(upper.get_ydata())
    assert np.array_equal(highest, np.floor(np.round(loads / 0.7, 9)))


def test_the_plot_marks_the_optimal_thresholds() -> None:
    from matplotlib.figure import Figure

    found = predict_stability(pools=20, load=1.5, alpha="0.8")
    axes = found.plot(ax=Figure().add_subplot())
    best, others = axes.containers
    assert [bar.get_height() for bar in best] == [found.threshold_share[1]]
    assert sum(bar.get_height() for bar in others) == pytest.approx(found.share_off, abs=1e-3)
    assert str(best.get_label()) == "optimal: 1"


def test_predictions_load_neither_the_simulator_nor_matplotlib() -> None:
    code = (
        "import sys, evenly.theory as theory; [getattr(theory, name) for name in theory.__all__];"
        "theory.predict_fluid(load=2.5, points=3).to_pandas();"
        "print({'evenly.sim', 'evenly.core', 'evenly.plots', 'matplotlib'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_every_public_name_exists() -> None:
    assert {"predict_fluid", "solve_exact", "Settling", "tail_mass_bound", "power_of_d_fluid"} < set(
        theory.__all__
    )
    for name in theory.__all__:
        assert getattr(theory, name).__name__ == name
        assert name in dir(theory)
