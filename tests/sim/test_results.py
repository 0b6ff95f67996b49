"""Results as one line, an HTML table, frames and pictures; equality by value."""

import copy
import pickle
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenly.errors import InputError
from evenly.sim import Comparison, Result, Scenario, Trajectory, compare, simulate, with_policies
from evenly.sim.coupling import couple_with_jsq, simulate_sizes
from tests.sim.support import means_of

LEARNING = Scenario(pools=20, load=2.5, alpha="0.9", horizon=60.0, warmup=10.0)
POLICIES = ("random", "power-of-d", "jsq", "threshold", "round-robin")


def learned(**changed: Any) -> Result:  # noqa: ANN401
    return simulate(LEARNING, **{"replications": 3, "points": 101, "seed": 4, **changed})


def compared(**changed: Any) -> Comparison:  # noqa: ANN401
    return compare(with_policies(LEARNING, POLICIES), **{"replications": 3, "seed": 4, **changed})


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run in an empty folder, and check that nothing is written and no figure stays open."""
    from matplotlib import pyplot

    monkeypatch.chdir(tmp_path)
    yield
    pyplot.close("all")
    assert list(tmp_path.iterdir()) == []


# --- numbers -------------------------------------------------------------------------------------------------


def test_a_result_has_its_means_as_attributes() -> None:
    result = simulate(replace(LEARNING, capacity=3), replications=3, seed=4)
    means = means_of(result)
    for name, mean in means.scalars().items():
        assert getattr(result, name) == mean
    assert result.scalars() == means.scalars()
    assert result.pools_with_exactly.tolist() == means.pools_with_exactly.tolist()
    assert result.task_share.tolist() == means.task_share.tolist()
    assert result.max_tasks_distribution.tolist() == means.max_tasks_distribution.tolist()
    assert result.threshold_share == means.threshold_share
    assert result.lost_tasks == sum(window.lost_tasks for window in result.windows) > 0
    assert result.without_token == sum(window.without_token for window in result.windows) > 0
    assert result.change_count == sum(window.change_count for window in result.windows) > 0
    assert result.change_rate == pytest.approx(result.change_count / (3 * 50.0), rel=1e-12)


def test_the_tables_hold_what_the_report_says() -> None:
    result = learned()
    report = result.to_dict()
    assert result.levels["tasks"].tolist() == list(range(len(report["pools_with_exactly"])))
    assert result.levels["pools_with_exactly"].tolist() == report["pools_with_exactly"]
    assert result.levels["task_share"].tolist() == report["task_share"]
    maxima = result.levels["max_tasks_distribution"].tolist()
    assert maxima[: len(report["max_tasks"]["distribution"])] == report["max_tasks"]["distribution"]
    assert result.samples["mean_tasks"].mean() == pytest.approx(report["mean_tasks"], rel=1e-12)
    assert result.samples["time"].tolist() == pytest.approx([50.0] * 3)
    assert result.samples["change_count"].sum() == report["threshold"]["changes"]
    assert result.trajectory["time"].tolist() == np.linspace(0, 60.0, 101).tolist()
    assert {"threshold", "green_tokens", "yellow_tokens"} <= set(result.trajectory)
    assert "threshold" not in simulate(replace(LEARNING, policy="jsq", alpha=None), points=2).trajectory
    assert report["lost_share"] == result.lost_share


def test_a_trajectory_that_was_not_recorded_raises_an_error_with_the_remedy() -> None:
    from matplotlib import pyplot

    result = learned(points=0)
    with pytest.raises(InputError, match="points="):
        _ = result.trajectory
    with pytest.raises(InputError, match="points="):
        result.plot_panels()
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize("kind", ["result", "trajectory", "intervals", "comparison"])
def test_frames_are_the_columns(kind: str) -> None:
    kinds: dict[str, Callable[[], Any]] = {
        "result": learned,
        "trajectory": lambda: learned().trajectories[1],
        "intervals": lambda: learned().conf_int(),
        "comparison": lambda: compared(seed=2**64 - 1, replications=1),
    }
    table = kinds[kind]()
    pandas, polars = table.to_pandas(), table.to_polars()
    columns = table.columns()
    assert list(pandas.columns) == polars.columns == list(columns)
    for name, values in columns.items():
        assert str(pandas[name].tolist()) == str(list(map(plain, values)))  # NaN differs from itself
        assert str(polars[name].to_list()) == str(list(map(plain, values)))


def plain(value: Any) -> Any:  # noqa: ANN401
    return value.item() if hasattr(value, "item") else value


def test_a_comparison_is_a_table_with_inputs_means_and_intervals() -> None:
    found = compared()
    frame = found.to_pandas().set_index("policy")
    assert list(frame.index) == list(POLICIES)
    assert frame.loc["threshold", "alpha"] == 0.9
    assert frame.loc["threshold", "initial_threshold"] == 0
    assert frame.loc["power-of-d", "sample_size"] == 2
    assert np.isnan(
        frame.loc["jsq", ["alpha", "initial_threshold", "sample_size", "capacity", "threshold"]].astype(float)
    ).all()
    assert frame["label"].tolist()[:2] == ["random", "power-of-2"]
    assert frame["schedule"].tolist() == ["0:2.5"] * 5
    for result in found:
        row = frame.loc[result.scenario.policy]
        table = result.conf_int()
        for name, mean, low, high in zip(*(table[column] for column in table), strict=True):
            assert (row[name], row[f"{name}_low"], row[f"{name}_high"]) == (mean, low, high)


def test_a_comparison_is_a_sequence() -> None:
    found = compared()
    assert len(found) == 5
    assert list(found) == [found[place] for place in range(5)]
    assert found[-1].scenario.policy == "round-robin"
    assert found[1:3] == Comparison(results=(found[1], found[2]))
    assert found[2] in found
    assert found.index(found[3]) == 3
    assert found.to_dict() == {"policies": [result.to_dict() for result in found]}
    with pytest.raises(FrozenInstanceError):
        found.results = ()  # type: ignore[misc]
    empty = compare([])
    assert (len(empty), repr(empty), empty.to_dict()) == (0, "Comparison(no scenarios)", {"policies": []})
    with pytest.raises(InputError, match="nothing to draw"):
        empty.plot()


# --- equality ------------------------------------------------------------------------------------------------


def test_the_same_run_is_equal_however_long_it_took() -> None:
    one, two = learned(), learned(workers=1)
    assert one == replace(two, seconds=1e9)
    assert hash(one) == hash(replace(two, seconds=1e9))
    assert compared() == compared(workers=1)
    assert hash(compared()) == hash(compared(workers=1))
    assert one.trajectories[1] == two.trajectories[1]
    assert one.levels == two.levels
    assert couple_with_jsq(pools=4, load=1.5) == couple_with_jsq(pools=4, load=1.5)


def test_another_run_is_another_result() -> None:
    for changed in ({"seed": 5}, {"replications": 2}, {"points": 100}, {"trajectories": 2}):
        assert learned() != learned(**changed)
    assert learned().trajectories[0] != learned().trajectories[1]
    assert learned() != "learned"


# --- text ----------------------------------------------------------------------------------------------------


def test_a_result_keeps_the_offered_load() -> None:
    """`Result.load(path)` read a file once: it fails, rather than to do something else."""
    assert learned().load == LEARNING.load == 2.5
    assert simulate(Scenario(pools=3, schedule="0:1.5,5:2", horizon=10.0)).load == 1.5
    with pytest.raises(TypeError):
        Result.load("run.npz")  # type: ignore[arg-type]


def test_a_result_is_one_short_line() -> None:
    result = learned()
    width = result.half_widths()["max_tasks"]
    assert (
        repr(result)
        == str(result)
        == (
            f"Result(threshold α=0.9, 20 pools, load 2.5: max {result.max_tasks:.2f} ± {width:.2f}, "  # noqa: RUF001
            f"spread {result.spread:.2f})"
        )
    )
    assert "±" not in repr(learned(replications=1, batches=0))
    schedule = ",".join(f"{time}:{time % 7}.25~0.125/3" for time in range(100))
    long = Scenario(policy="pull", pools=10**6, schedule=schedule, capacity=7, horizon=1e-6)
    shown: list[object] = [result, *result.trajectories, compared(), *compared(), simulate(long, points=2)]
    nine = compare([long] * 9)
    shown += [simulate(long, points=2).trajectories[0], nine, couple_with_jsq(pools=4, load=1.5)]
    for each in shown:
        assert len(repr(each)) < 200
        assert "\n" not in repr(each)
    assert repr(nine).endswith("; pull (5): 0.00; 4 more)")


def test_html_is_the_table_that_the_command_prints() -> None:
    result = learned()
    page = result._repr_html_()
    assert '<th style="text-align: left">fullest pool</th>' in page
    assert f"{result.max_tasks:.3f} ± {result.half_widths()['max_tasks']:.3f}" in page
    assert "script" not in page
    page = compared()._repr_html_()
    assert page.count("<tr>") == 1 + len(POLICIES)
    assert "<td>threshold, alpha 0.9</td>" in page
    assert "above 3" in page
    assert "fullest pool at the end" in result.trajectories[0]._repr_html_()
    assert len(page) < 5000


def test_a_comparison_states_only_what_its_scenarios_share() -> None:
    from matplotlib.figure import Figure

    sizes = compare([replace(LEARNING, pools=pools) for pools in (10, 20, 40)])
    assert repr(sizes).startswith(
        "Comparison(3 results, 10 to 40 pools, load 2.5, spread: threshold, alpha 0.9, 10 "
    )
    assert "<td>threshold, alpha 0.9, 40 pools</td>" in sizes._repr_html_()
    assert sizes.plot_panels(figure=Figure()).get_suptitle() == "10 to 40 pools, load 2.5, time 10 to 60"
    loads = compare([replace(LEARNING, load=load, horizon=10 * load + 20) for load in (1.5, 2.5)])
    assert repr(loads).startswith("Comparison(2 results, 20 pools, load 1.5 to 2.5, spread: ")
    assert "above" not in loads._repr_html_()
    assert loads.plot_panels(figure=Figure()).get_suptitle() == "20 pools, load 1.5 to 2.5"
    schedule = replace(LEARNING, load=None, schedule="0:2.5,20:4~1/3")
    steps = compare(with_policies(schedule, ["jsq", "random"]))
    assert repr(steps).startswith("Comparison(2 results, 20 pools, load 0:2.5,20:4~1/3, spread: jsq: ")
    assert steps.plot_panels(figure=Figure()).get_suptitle() == "20 pools, load 0:2.5,20:4~1/3, time 10 to 60"
    mixed = compare([schedule, LEARNING])
    assert repr(mixed).startswith("Comparison(2 results, 20 pools, 2 kinds of demand, spread: ")
    assert "above" not in mixed._repr_html_()
    full = compare([replace(LEARNING, capacity=5)] * 2)
    assert repr(full).startswith("Comparison(2 results, 20 pools, load 2.5, capacity 5, spread: ")
    started = compare([replace(LEARNING, initial_tasks=tasks) for tasks in (0, 3)])
    assert "<td>threshold, alpha 0.9, initial tasks 3</td>" in started._repr_html_()
    assert started.plot_panels(figure=Figure(), title="").get_suptitle() == ""


@pytest.mark.parametrize(
    "changed",
    [
        [{"pools": 10}, {"pools": 20}],
        [{"load": None, "schedule": "0:1,5:2"}, {"load": 1.0}],
        [{"capacity": 4}, {"capacity": None}],
        [{"service_rate": 2.0}, {"horizon": 30.0}, {"warmup": 0.0}],
        [{}, {}, {"pools": 10}],
    ],
    ids=str,
)
def test_rows_of_a_comparison_can_be_told_apart(changed: list[dict[str, Any]]) -> None:
    from matplotlib.figure import Figure

    found = compare([replace(LEARNING, **each) for each in changed])
    labels = [label for label, _ in found._rows()]
    assert len(set(labels)) == len(changed)
    assert all(label.startswith("threshold, alpha 0.9") for label in labels)
    entries = [str(line.get_label()) for line in found.plot(ax=Figure().add_subplot()).lines]
    assert all(entry.startswith(f"{label}: spread ") for entry, label in zip(entries, labels, strict=True))


# --- pictures ------------------------------------------------------------------------------------------------


def test_a_plot_draws_on_the_axes_given_and_returns_them() -> None:
    from matplotlib import pyplot
    from matplotlib.figure import Figure

    run = learned()
    for drawn in (run, run.trajectories[1], compared()):
        axes = Figure().add_subplot()
        assert drawn.plot(ax=axes) is axes
        assert axes.get_legend() is not None
        assert axes.get_xlabel()
        assert pyplot.get_fignums() == []


def test_a_plot_without_axes_makes_a_figure_in_our_style() -> None:
    from matplotlib import pyplot
    from matplotlib.colors import to_hex

    run = learned()
    for drawn in (run, run.trajectories[1], compared()):
        axes = drawn.plot()
        assert axes.figure in [pyplot.figure(number) for number in pyplot.get_fignums()]
        axes.figure.canvas.draw()
        assert to_hex(axes.yaxis.get_gridlines()[0].get_color()) == "#dddddd"
        assert not axes.spines["right"].get_visible()


@pytest.mark.parametrize("kind", ["result", "trajectory", "comparison"])
def test_panels_fill_the_figure_given_or_a_new_one(kind: str) -> None:
    from matplotlib import pyplot
    from matplotlib.colors import to_hex
    from matplotlib.figure import Figure

    kinds: dict[str, Callable[[], Any]] = {
        "result": learned,
        "trajectory": lambda: learned().trajectories[0],
        "comparison": compared,
    }
    drawn = kinds[kind]()
    figure = Figure()
    assert drawn.plot_panels(figure=figure) is figure
    count = len(figure.axes)
    assert count == (1 if kind == "comparison" else 3)
    assert pyplot.get_fignums() == []
    new = drawn.plot_panels()
    assert len(new.axes) == count
    assert pyplot.get_fignums() == [new.number]
    new.canvas.draw()
    assert to_hex(new.axes[0].yaxis.get_gridlines()[0].get_color()) == "#dddddd"


def test_the_bars_are_the_shares_and_the_fullest_pool_is_marked() -> None:
    from matplotlib.figure import Figure

    result = learned()
    axes = result.plot(ax=Figure().add_subplot())
    heights = {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in axes.patches}  # type: ignore[attr-defined]
    for tasks, share in enumerate(result.pools_with_exactly):
        assert heights.get(tasks, 0.0) == pytest.approx(share, abs=5e-4)
    assert axes.lines[0].get_xdata()[0] == result.max_tasks  # type: ignore[index]


def test_the_lines_of_a_trajectory_are_its_columns() -> None:
    from matplotlib.figure import Figure

    run = learned().trajectories[0]
    axes = run.plot(ax=Figure().add_subplot())
    lines = {line.get_label(): np.asarray(line.get_ydata()).tolist() for line in axes.lines}
    assert lines["fullest pool m(t)"] == run.max_tasks.tolist()
    assert lines["tasks per pool"] == run.mean_tasks.tolist()
    assert lines["threshold"][1:-1] == run.change_thresholds.tolist()
    assert set(lines["demand"]) == {2.5}


def test_a_figure_is_saved_whole_to_every_path(tmp_path: Path) -> None:
    from evenly.plots.style import saved_figure

    folder = tmp_path / "figures"
    folder.mkdir()
    with saved_figure(folder / "one.png", 4, 3, folder / "two.svg") as figure:
        learned().plot_panels(figure=figure)
    assert sorted(path.name for path in folder.iterdir()) == ["one.png", "two.svg"]
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


# --- what results keep ---------------------------------------------------------------------------------------


def test_a_trajectory_keeps_its_run() -> None:
    runs = learned(trajectories=2).trajectories
    assert [(run.seed, run.replication, run.scenario) for run in runs] == [(4, 0, LEARNING), (4, 1, LEARNING)]
    sizes = simulate_sizes(LEARNING, pools=[5, 10], seed=6, points=11)
    assert [(run.seed, run.scenario.pools) for run in sizes] == [(6, 5), (6, 10)]
    assert isinstance(sizes[0], Trajectory)
    report = sizes[1].to_dict()
    assert (report["pools"], report["seed"], len(report["time"])) == (10, 6, 11)
    assert report["change_times"] == sizes[1].change_times.tolist()


def test_a_coupling_keeps_what_was_asked_and_counts_the_differences() -> None:
    run = couple_with_jsq(pools=4, load=1.5, initial_tasks=[3, 0, 0, 1], seed=2, events=50)
    assert (run.pools, run.load, run.initial_tasks, run.seed) == (4, 1.5, (3, 0, 0, 1), 2)
    assert run.differences == 0
    wrong = run.threshold.copy()
    wrong[7:9] += 1
    other = replace(run, threshold=wrong)
    assert other.differences == 2
    assert repr(other).endswith(", 2 differences)")
    columns = other.columns()
    for name in ("tasks_below", "pools_above"):
        assert (columns[f"threshold_{name}"] - columns[f"jsq_{name}"]).tolist() == [0] * 7 + [1, 1] + [0] * 42
    assert run.to_dict()["final_jsq"] == run.final_jsq.tolist()
    assert couple_with_jsq(pools=4, load=1.5, initial_tasks=2).initial_tasks == 2.0


def test_a_report_keeps_all_inputs_under_their_current_names() -> None:
    scenario = Scenario(
        policy="power-of-d", pools=4, load=2.0, initial_tasks=[3, 0, 0, 1], horizon=5.0, capacity=4
    )
    result = simulate(scenario)
    report = result.to_dict()
    assert (report["sample_size"], report["initial_tasks"]) == (2, [3, 0, 0, 1])
    assert (report["initial_threshold"], report["change_rate"]) == (None, None)
    assert np.isnan(result.threshold)
    result = learned()
    report = result.to_dict()
    assert (report["sample_size"], report["initial_tasks"], report["initial_threshold"]) == (None, 0, 0)
    assert report["change_rate"] == result.change_rate > 0
    assert report["without_token"] == report["unguided"] == result.without_token
    assert report["lost_tasks"] == report["lost"] == 0
    coupled = couple_with_jsq(pools=2, load=1.5, initial_tasks=[3, 0], events=9)
    assert coupled.to_dict()["initial_tasks"] == [3, 0]


def test_results_are_read_only_and_so_are_their_copies() -> None:
    for result in (learned(), copy.deepcopy(learned()), pickle.loads(pickle.dumps(learned()))):
        assert result == learned()
        arrays = [result.pools_with_exactly, result.task_share, result.max_tasks_distribution]
        arrays += [result.window.at_least, result.windows[0].max_time, result.trajectories[0].max_tasks]
        for array in arrays:
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 9
        with pytest.raises(TypeError, match="read-only"):
            result.threshold_share[0] = 1.0
    run = couple_with_jsq(pools=4, load=1.5, events=9)
    with pytest.raises(ValueError, match="read-only"):
        run.final_jsq[0] = 9


def wrong(value: object) -> Any:  # noqa: ANN401
    """Return a value that type checkers would reject."""
    return value


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: learned().conf_int(wrong("x")), "level must be a number strictly between 0 and 1, not 'x'."),
        (lambda: simulate_sizes(wrong(4), pools=[4]), "scenario must be a Scenario, not 4."),
        (lambda: compare(wrong(LEARNING)), "scenarios must be a list of Scenario objects, not one Scenario."),
        (lambda: with_policies(wrong(4), ["jsq"]), "scenario must be a Scenario, not 4."),
    ],
)
def test_a_value_of_the_wrong_type_is_rejected_in_one_sentence(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        call()
    assert str(refused.value) == sentence
