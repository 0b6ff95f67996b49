"""The paper's figures with other parameters: what they draw, what they reject, and that they write no file."""

from __future__ import annotations

import inspect
import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib import import_module
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from evenly.errors import InputError
from evenly.paper.experiments.lab import Lab
from evenly.theory.tuning import settle_time_bound
from evenly.workload.demand import Phase

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FUNCTIONS = {
    "fig1": "state_diagram",
    "fig2": "equilibria",
    "fig3": "oscillation",
    "fig4": "settling",
    "fig5": "resource_shares",
    "fig6": "varying_demand",
}


def drawing(name: str) -> Callable[..., Figure]:
    """Return a function of `evenly.paper.figures`, which is imported when it draws: Matplotlib takes a second."""

    def draw(**given: Any) -> Figure:  # noqa: ANN401
        figure: Figure = getattr(import_module("evenly.paper.figures"), name)(**given)
        return figure

    draw.__name__ = name  # the test's name says which
    return draw


state_diagram, equilibria, oscillation = map(drawing, ("state_diagram", "equilibria", "oscillation"))
settling, resource_shares, varying_demand = map(drawing, ("settling", "resource_shares", "varying_demand"))
BOUND = "the bound of Prop. 7"


@pytest.fixture(autouse=True)
def nothing_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run each test in an empty folder, which must stay empty, and close its figures."""
    from matplotlib import pyplot as plt

    monkeypatch.chdir(tmp_path)
    yield
    plt.close("all")
    assert list(tmp_path.iterdir()) == []


def drawn(axes: Axes, label: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the data of the line with this label."""
    (line,) = (line for line in axes.lines if line.get_label() == label)
    return np.asarray(line.get_xdata()), np.asarray(line.get_ydata())


def upright(axes: Axes) -> list[float]:
    """Return the places of vertical lines without a label: those that mark a jump, or the threshold."""
    found = [
        np.unique(np.asarray(line.get_xdata())) for line in axes.lines if str(line.get_label()).startswith("_")
    ]
    return [float(places[0]) for places in found if places.size == 1]


def caption(figure: Figure) -> str:
    return str(figure.get_label())


def labels(axes: Axes) -> list[str]:
    return [str(line.get_label()) for line in axes.lines]


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


# --- what is drawn -----------------------------------------------------------------------------------------


def test_a_state_diagram_draws_each_task_and_token() -> None:
    from matplotlib.collections import PathCollection
    from matplotlib.colors import to_rgba

    from evenly.plots.style import INK

    figure = state_diagram(pools=9, load=3.5, threshold=2, seed=5)
    (axes,) = figure.axes
    tasks, tokens = [], []
    for dots in (found for found in axes.collections if isinstance(found, PathCollection)):
        places = np.asarray(dots.get_offsets())
        if len(places) > 1:  # a row of tasks and free servers
            tasks.append(sum(np.allclose(face, to_rgba(INK)) for face in np.asarray(dots.get_facecolor())))
        else:
            tokens.append((float(places[0, 0]), int(places[0, 1])))
    assert len(tasks) == 9
    assert tasks == sorted(tasks)
    left = min(x for x, _ in tokens)
    assert [row for x, row in tokens if x == left] == [row for row in range(9) if tasks[row] < 2]
    assert [row for x, row in tokens if x == left + 1] == [row for row in range(9) if tasks[row] <= 2]
    assert upright(axes) == [2.5]  # right of column 2
    assert "up to the\nthreshold, 2" in texts(axes)
    assert "9 pools at load 3.5 under the threshold 2" in caption(figure)


@pytest.mark.parametrize(("load", "threshold"), [(0.6, None), (2, 12)])
def test_a_state_diagram_shows_any_threshold(load: float, threshold: int | None) -> None:
    (axes,) = state_diagram(pools=6, load=load, threshold=threshold).axes
    level = int(load) if threshold is None else threshold
    assert upright(axes) == [level + 0.5]
    assert axes.get_xlim()[1] > level + 1.5


def test_equilibria_have_the_load_as_their_mean_and_are_simulated_alike() -> None:
    from matplotlib.patches import Rectangle

    figure = equilibria(load=7.3, pools=2000, thresholds=(9, 6), replications=4, horizon=10.0)
    for axes, threshold in zip(figure.axes, (9, 6), strict=True):
        theory, simulated, _ = axes.lines
        levels, shares = np.asarray(theory.get_xdata()), np.asarray(theory.get_ydata())
        assert shares.sum() == pytest.approx(1.0, abs=0.01)  # invisible shares are left out
        assert levels @ shares == pytest.approx(7.3, abs=0.1)
        outside = levels > threshold if threshold > 7.3 else levels <= threshold
        assert outside.any() and not shares[outside].any()
        # Shares of 2,000 pools over several independent states deviate by some thousandths.
        np.testing.assert_allclose(np.asarray(simulated.get_ydata()), shares, atol=0.05)
        bars = {round(bar.get_x() + 0.4): bar.get_height() for bar in axes.patches if isinstance(bar, Rectangle)}
        assert {level: round(height, 9) for level, height in bars.items() if height} == {7: 0.7, 8: 0.3}
        assert axes.get_ylim()[1] > shares.max()
    assert [axes.get_title() for axes in figure.axes] == [
        "thresholds above 7: too large",
        "thresholds below 7: too small",
    ]
    assert "0.7 of the pools with 7 and 0.3 with 8 tasks" in caption(figure)


@pytest.mark.parametrize(
    ("load", "titles"),
    [
        (0.6, ["thresholds above 1: too large"]),
        (5, ["thresholds above 5: too large", "thresholds below 4: too small"]),
    ],
)
def test_a_panel_without_thresholds_is_left_out(load: float, titles: list[str]) -> None:
    figure = equilibria(load=load, pools=200, replications=2, horizon=8.0)
    assert [axes.get_title() for axes in figure.axes] == titles
    for axes in figure.axes:
        assert axes.get_ylim()[1] > max(np.asarray(line.get_ydata()).max(initial=0.0) for line in axes.lines)


def test_an_oscillation_shows_each_size_from_the_optimum() -> None:
    figure = oscillation(pools=[30, 90], load=5.6, alpha=0.9, horizon=5.0, long_run=320.0)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["n = 30 pools", "n = 90 pools"]
    for axes in figure.axes:
        times, values = drawn(axes, "threshold")
        assert (times[0], times[-1], values[0]) == (0.0, 5.0, 5)
        assert set(np.abs(np.diff(values[:-1]))) <= {1}
        assert set(drawn(axes, "floor(load), the optimum")[1]) == {5}
        assert drawn(axes, "tasks per pool")[1][0] == pytest.approx(5.6, abs=0.5 / 30)
        shares = [float(text.removesuffix(" %")) for text in texts(axes)]
        assert sum(shares) == pytest.approx(100.0, abs=0.1 * (len(shares) + 1))
        low, high = axes.get_ylim()
        assert all(low < value < high for value in values)
    assert "load 5.6 and alpha 0.9, with 30 pools (top) and 90 (bottom)" in caption(figure)


def test_an_oscillation_of_one_system_below_load_one() -> None:
    (axes,) = oscillation(pools=40, load=0.6, alpha="0.9", horizon=3.0, long_run=320.0).axes
    assert drawn(axes, "threshold")[1][0] == 0
    assert axes.get_ylim()[0] < 0


@pytest.mark.parametrize(("load", "best"), [(0.6, (0, 1)), (3.0, (2, 3))])
def test_an_oscillation_names_all_optimal_thresholds(load: float, best: tuple[int, int]) -> None:
    figure = oscillation(pools=40, load=load, alpha="0.9", horizon=3.0, long_run=320.0)
    (axes,) = figure.axes
    low, high = axes.get_ylim()
    dashed = [line for line in axes.lines if line.get_linestyle() == "--"]
    assert [np.unique(np.asarray(line.get_ydata())).tolist() for line in dashed] == [[each] for each in best]
    assert all(low < each < high for each in best)
    entries = [text.get_text() for text in figure.legends[0].get_texts()]
    assert entries == [f"the optima, {best[0]} and {best[1]}", "tasks per pool", "threshold"]
    assert f"Both {best[0]} and {best[1]} are optimal." in caption(figure)


def test_settling_draws_thresholds_to_the_optimum_and_the_bound() -> None:
    figure = settling(load=7.3, alpha=0.95)
    for axes, start in zip(figure.axes, (0, 9), strict=True):
        for label in ("threshold, fluid", "threshold, simulated"):
            times, values = drawn(axes, label)
            assert (times[0], times[-1]) == (0.0, 7.0)
            assert values[0] == start
        assert drawn(axes, "threshold, fluid")[1][-1] == 7
        bound = settle_time_bound(load=7.3, alpha=0.95, initial_tasks=start)
        assert set(drawn(axes, BOUND)[0]) == {bound}
        assert texts(axes) == [f"{bound:.2f}"]
        times, mass = drawn(axes, "tasks per pool, fluid")
        np.testing.assert_allclose(mass, 7.3 + (start - 7.3) * np.exp(-times), atol=1e-9)
    # Each panel has one thick and eight thin lines, two of the fluid system, and the bound.
    assert [len(axes.lines) for axes in figure.axes] == [12, 12]
    assert "on its way to 7 for load 7.3, alpha 0.95 and 500 pools" in caption(figure)


@pytest.mark.parametrize(
    ("load", "alpha", "why"),
    [(5, "0.95", "for whole loads."), (5.9, 0.5, "for an alpha of at most load / 6 = 0.9833.")],
)
def test_settling_without_a_bound_leaves_it_out(load: float, alpha: float | str, why: str) -> None:
    figure = settling(load=load, alpha=alpha, pools=50, initial_tasks=12, replications=2)
    for axes in figure.axes:
        assert "threshold, fluid" in labels(axes)
        assert BOUND not in labels(axes)
        assert texts(axes) == []
    assert caption(figure).endswith(f"There is no bound on the settling time: the paper has none {why}")


def test_settling_from_the_optimum_below_load_one() -> None:
    figure = settling(load=0.4, alpha=0.95, pools=50, initial_tasks=0, replications=1)
    for axes in figure.axes:
        times, values = drawn(axes, "threshold, fluid")
        assert (times.tolist(), values.tolist()) == ([0.0, 7.0], [0, 0])
        assert set(drawn(axes, BOUND)[0]) == {0.0}


def test_a_bound_beyond_the_horizon_is_not_drawn() -> None:
    figure = settling(horizon=4.0, pools=50, replications=2)
    left, right = figure.axes
    assert BOUND in labels(left)
    assert BOUND not in labels(right)
    assert "(6.18)" in caption(figure)


def test_resource_shares_have_the_laws_of_their_policies() -> None:
    from scipy.stats import poisson

    figure = resource_shares(policies=("jsq", "random"), load=4.2, pools=500, horizon=80.0)
    axes = figure.axes[0]
    jsq, random = axes.lines
    assert [str(line.get_label()).partition(":")[0] for line in axes.lines] == ["jsq", "random"]
    levels, shares = np.asarray(random.get_xdata()), np.asarray(random.get_ydata())
    # Under random routing the other tasks in a task's pool are Poisson; 500 pools deviate by some thousandths.
    np.testing.assert_allclose(shares, poisson.pmf(levels - 1, 4.2), atol=0.05)
    balanced = np.isin(np.asarray(jsq.get_xdata()), (4, 5))
    assert np.asarray(jsq.get_ydata())[balanced].sum() > 0.9
    assert "load 4.2 and 500 pools" in caption(figure)
    assert "alpha" not in caption(figure)  # no policy here learns


def test_a_varying_demand_marks_its_own_jumps_and_waves() -> None:
    from matplotlib.patches import Rectangle

    figure = varying_demand(schedule="0:2,4:6~1/2,8:6", alpha="0.9", horizon=10.0, initial_tasks=2, pools=100)
    levels, imbalance = figure.axes
    times, demand = drawn(levels, "demand")
    assert demand[times < 4].tolist() == [2.0] * int((times < 4).sum())
    assert (demand[times > 4].min(), demand[times > 4].max()) == pytest.approx((5.0, 7.0), abs=0.01)
    assert upright(levels) == upright(imbalance) == [4.0]  # none at time 0: the initial tasks equal the load
    (span,) = (patch for patch in levels.patches if isinstance(patch, Rectangle))
    assert (span.get_x(), span.get_width()) == (4.0, 4.0)
    assert "swift, large" in texts(levels)
    assert drawn(levels, "threshold")[1][0] == 2
    times, distance = drawn(imbalance, "fluid")
    assert (times[-1], distance[0]) == (10.0, pytest.approx(0.0, abs=1e-9))
    # Right after the jump the occupancy is that of load 2, and the balanced one has levels 3 to 6 full.
    assert distance.max() == pytest.approx(2.0, abs=0.2)
    assert "The demand is 2 from time 0, 6 swinging by 1 with period 2 from time 4, 6 from time 8" in (
        caption(figure)
    )


def test_a_schedule_can_be_a_list_of_phases() -> None:
    figure = varying_demand(schedule=[Phase(0.0, 0.5), Phase(5.0, 4.0)], alpha=0.9, horizon=8.0, initial_tasks=0)
    levels, _ = figure.axes
    assert upright(levels) == [0.0, 5.0]
    path = drawn(levels, "tasks per pool")
    # From empty at load 0.5; 500 pools deviate by sqrt(0.5 / 500) = 0.03.
    assert path[1][np.searchsorted(path[0], 4.9)] == pytest.approx(0.5 * (1 - exp(-4.9)), abs=0.3)


@pytest.mark.parametrize("horizon", [1.5, 40.0])
def test_a_caption_only_mentions_times_before_the_horizon(horizon: float) -> None:
    text = caption(varying_demand(pools=20, horizon=horizon))
    assert "The demand is 5.5 from time 0" in text
    assert "45" not in text
    assert ("3.5 from time 30" in text) is (horizon > 30)


# --- all of them -------------------------------------------------------------------------------------------


def test_the_defaults_are_the_papers_values() -> None:
    figures = import_module("evenly.paper.figures")
    for name, figure in figures.FIGURES.items():
        parameters = inspect.signature(getattr(figures, FUNCTIONS[name])).parameters
        paper = asdict(figure.of_paper(Lab()))
        for word, value in paper.items():
            assert parameters[word].default in (value, None), word  # None: chosen by the other parameters
        assert set(parameters) == {*paper, "seed", "figure"}
        assert parameters["seed"].default == 1  # as the command's


def test_figures_draw_on_the_figure_given() -> None:
    from matplotlib import pyplot as plt
    from matplotlib.figure import Figure

    mine = Figure(figsize=(5, 4))
    assert settling(pools=20, replications=1, figure=mine) is mine
    assert len(mine.axes) == 2
    assert plt.get_fignums() == []
    named = plt.figure("mine")
    assert settling(pools=20, replications=1, figure=named).get_label() == "mine"
    assert plt.get_fignums() == [named.number]


def test_the_seed_determines_the_figure() -> None:
    first, again, other = (
        drawn(oscillation(pools=20, horizon=5.0, long_run=320.0, seed=seed).axes[0], "tasks per pool")[1].tolist()
        for seed in (1, 1, 2)
    )
    assert first == again != other


def test_the_caller_s_style_does_not_change() -> None:
    from matplotlib import pyplot as plt

    before = dict(plt.rcParams)
    state_diagram(pools=3, load=1.5)
    assert dict(plt.rcParams) == before


# One row for each parameter of each figure; the checks of numbers are tested with the functions that make them.
@pytest.mark.parametrize(
    ("function", "arguments", "sentence"),
    [
        (state_diagram, {"pools": 41}, "pools must be a whole number from 1 to 40, not 41."),
        (state_diagram, {"load": 21.5}, "load must be a number from 0.001 to 20, not 21.5."),
        (
            equilibria,
            {"thresholds": (6, 5)},
            "thresholds must not contain 5, which is optimal for load 5.5: it balances the load.",
        ),
        (equilibria, {"thresholds": ()}, "thresholds must have at least one number."),
        (equilibria, {"thresholds": (7, 7)}, "thresholds must differ from each other, not 7, 7."),
        (
            equilibria,
            {"thresholds": range(6, 15)},
            "thresholds must be at most 8 above the optimum and 8 below it.",
        ),
        (equilibria, {"thresholds": itertools.count(6)}, "thresholds must have at most 16 values."),
        (equilibria, {"thresholds": b"7"}, "thresholds must be a whole number from 0 to 1000000, not b'7'."),
        (
            equilibria,
            {"thresholds": np.array(7)},
            "thresholds must be a whole number from 0 to 1000000, not array(7).",
        ),
        (
            equilibria,
            {"pools": 10**9},
            "This would simulate 1.5e+13 events; at most 1e+12 are allowed: "
            "reduce the pools, the load or the time.",
        ),
        (equilibria, {"horizon": 7}, "The warm-up must end before the horizon 7, not at 7."),
        (oscillation, {"pools": []}, "pools must have at least one number."),
        (oscillation, {"alpha": np.array(0.9)}, "alpha must lie strictly between 0 and 1, not array(0.9)."),
        (oscillation, {"long_run": 0}, "long_run must be a number from 0.001 to 10000000, not 0."),
        (settling, {"alpha": "0.9999999"}, "alpha must be at most 0.999999 in the fluid limit, not 0.9999999."),
        (settling, {"load": 4000.5}, "load must be a number from 0.001 to 3000, not 4000.5."),
        (settling, {"initial_tasks": 1.5}, "initial_tasks must be a whole number from 0 to 1000, not 1.5."),
        (settling, {"replications": True}, "replications must be a whole number from 1 to 1000, not True."),
        (settling, {"seed": -1}, "seed must be a whole number from 0 to 18446744073709551615, not -1."),
        (settling, {"figure": 3}, "figure must be a matplotlib Figure, not 3."),
        (
            resource_shares,
            {"policies": ["jsq", "pull"]},
            "policies must be different ones of random, power-of-d, jsq, threshold, not ['jsq', 'pull'].",
        ),
        (
            resource_shares,
            {"policies": [["jsq"]]},
            "policies must be different ones of random, power-of-d, jsq, threshold, not [['jsq']].",
        ),
        (
            resource_shares,
            {"policies": []},
            "policies must be different ones of random, power-of-d, jsq, threshold, not [].",
        ),
        (resource_shares, {"warmup": "late"}, "warmup must be a number from 0 to 10000000, not 'late'."),
        (varying_demand, {"schedule": [Phase(1.0, 2.0)]}, "A schedule must begin at time 0, as in 0:5.5,20:10."),
        (varying_demand, {"schedule": itertools.repeat(0)}, "schedule must have at most 1000 values."),
        (varying_demand, {"horizon": 0}, "horizon must be a number from 0.001 to 1000000, not 0."),
    ],
)
def test_bad_input_is_rejected_in_one_sentence_and_draws_nothing(
    function: Callable[..., Figure], arguments: dict[str, Any], sentence: str
) -> None:
    from matplotlib import pyplot as plt

    with pytest.raises(InputError) as rejected:
        function(**arguments)
    assert str(rejected.value) == sentence
    assert plt.get_fignums() == []


@pytest.mark.full
def test_the_package_is_quick_to_import_and_reaches_the_figures() -> None:
    script = (
        "import sys, evenly.paper\n"
        "assert not {'numpy', 'matplotlib', 'numba'} & set(sys.modules)\n"
        "assert 'figures' in dir(evenly.paper)\n"
        "assert callable(evenly.paper.figures.settling)\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "try: evenly.paper.nothing\n"
        "except AttributeError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "module 'evenly.paper' has no attribute 'nothing'\n"
