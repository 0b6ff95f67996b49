"""The time until the threshold settles, from an empty and from an overloaded system.

Paper: Sec. 5.1, Fig. 4; Prop. 7.
"""

from __future__ import annotations

from math import exp, floor, sqrt

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from evenly.paper.experiments.lab import Lab
from evenly.paper.figure import PaperFigure
from evenly.plots.style import GREEN, INK, ORANGE, RED
from evenly.sim import Result, Scenario, Trajectory, simulate
from evenly.theory.fluid.path import FluidPath, fluid
from evenly.theory.tuning import settle_time_bound

LOAD, ALPHA, POOLS = 5.5, "0.93", 500
EMPTY, FULL = 0, 9  # tasks in each pool, and the threshold, at time 0
HORIZON = 6.0  # by then it has settled, and leaves again once in 15,000 mean task times
SHOWN = 7.0
GREY = 8  # more runs in the picture


def settling(lab: Lab, start: int) -> Result:
    """Many runs from a start; the paths of the first are kept."""
    return lab.once(
        f"settling {start}",
        lambda: simulate(
            _scenario(POOLS, start, HORIZON),
            replications=lab.pick(1200, 100),
            seed=lab.seed_for(f"settling {start}"),
        ),
    )


def settling_from_empty(lab: Lab, pools: int, replications: int) -> Result:
    """Runs of another size, shorter: with many pools there is little chance in it."""
    return lab.once(
        f"settling of {pools}",
        lambda: simulate(
            _scenario(pools, EMPTY, 3.2), replications=replications, seed=lab.seed_for(f"settling of {pools}")
        ),
    )


def settle_times(result: Result) -> NDArray[np.float64]:
    """When the threshold changed for the last time, in each run."""
    return np.array([ending.since for ending in result.endings])


def limit(lab: Lab, start: int) -> FluidPath:
    """The fluid system from the same start."""
    return lab.once(
        f"fig4 fluid {start}",
        lambda: fluid(load=LOAD, alpha=ALPHA, threshold=start, initial=float(start), horizon=SHOWN, points=141),
    )


def bound(start: int) -> float:
    """The paper's bound for the settling time.

    Paper: Prop. 7, eq. (15).
    """
    found = settle_time_bound(LOAD, ALPHA, start)
    assert found is not None
    return found


def scatter(pools: int, load: float, start: float, time: float) -> float:
    """By how much time the tasks per pool are early or late: their deviation at a time over their speed then.

    Of the first tasks a fraction exp(-t) is left, each with that probability; the new ones are Poisson. The mean
    goes to the load like exp(-t).
    """
    left = exp(-time)
    return sqrt((start * left + load) * (1 - left) / pools) / (abs(start - load) * left)


def _scenario(pools: int, start: int, horizon: float) -> Scenario:
    return Scenario(pools=pools, load=LOAD, alpha=ALPHA, threshold=start, initial=start, horizon=horizon)


def _shown_runs(lab: Lab, start: int) -> list[Trajectory]:
    return lab.once(
        f"fig4 {start}",
        lambda: (
            simulate(_scenario(POOLS, start, SHOWN), replications=1 + GREY, seed=lab.seed, points=2).trajectories
        ),
    )


def _draw(lab: Lab, figure: Figure) -> None:
    panels = figure.subplots(1, 2, sharey=True)
    names = {EMPTY: "from an empty system", FULL: f"from {FULL} tasks in each pool"}
    for axes, (start, name) in zip(panels, names.items(), strict=True):
        _draw_start(axes, lab, start)
        axes.set_title(name, fontsize=10, loc="left")
        axes.set_xlabel("time, in mean task times")
    panels[0].set_ylabel("tasks")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9)


def _draw_start(axes: Axes, lab: Lab, start: int) -> None:
    first, *others = _shown_runs(lab, start)
    for place, run in enumerate(others):
        label = None if place else f"threshold, {GREY} more runs"
        axes.plot(*_steps(run, start), color="#999999", linewidth=0.7, drawstyle="steps-post", label=label)
    axes.plot(
        *_steps(first, start), color=GREEN, linewidth=2.2, drawstyle="steps-post", label="threshold, simulated"
    )
    path = limit(lab, start)
    times = np.concatenate([[0.0], path.update_times, [SHOWN]])
    values = np.concatenate([[start], path.update_thresholds, path.update_thresholds[-1:]])
    axes.plot(
        times, values, color=INK, linewidth=1.3, linestyle="--", drawstyle="steps-post", label="threshold, fluid"
    )
    axes.plot(
        path.times, path.total_mass, color=ORANGE, linewidth=1.6, linestyle=":", label="tasks per pool, fluid"
    )
    axes.axvline(bound(start), color=RED, linewidth=1.2, linestyle="-.", label="the bound of Prop. 7")
    axes.annotate(
        f"{bound(start):.2f}",
        (bound(start), 0.3),
        xytext=(4, 0),
        textcoords="offset points",
        color=RED,
        fontsize=9,
    )
    axes.set_xlim(0, SHOWN)
    axes.set_ylim(-0.1, FULL + 0.3)
    axes.set_yticks(range(FULL + 1))


def _steps(run: Trajectory, start: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    times = np.concatenate([[0.0], run.change_times, [SHOWN]])
    return times, np.concatenate([[start], run.change_thresholds, run.threshold[-1:]])


def _caption(lab: Lab) -> str:
    last = limit(lab, FULL).update_times[-1]
    return (
        f"The threshold on its way to {floor(LOAD)} for load {LOAD}, alpha {ALPHA} and {POOLS} pools. Left: from "
        f"an empty system and threshold 0; right: from {FULL} tasks in each pool and threshold {FULL}. The "
        f"thick line and the {GREY} thin ones are simulated runs (seed {lab.seed}, time 0 to {SHOWN:g}), the "
        "dashed line is the threshold of the fluid system and the dotted one its tasks per pool. The vertical "
        f"line is the bound on the settling time: tight on the left ({bound(EMPTY):.2f}), loose on the right "
        f"({bound(FULL):.2f}; the fluid system settles at {last:.2f})."
    )


FIGURE = PaperFigure(
    name="fig4",
    title="Time until the threshold settles, and the paper's bound",
    size=(6.8, 4.2),
    caption=_caption,
    draw=_draw,
)
