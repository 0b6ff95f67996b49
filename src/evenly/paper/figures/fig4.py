"""The time until the threshold settles, from an empty and from an overloaded system.

Paper: Sec. 5.1, Fig. 4; Prop. 7.
"""

from __future__ import annotations

from math import ceil, floor

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evenly.paper.experiments.lab import Lab
from evenly.paper.experiments.learned_threshold import threshold_steps
from evenly.paper.experiments.learning_cases import settled_at
from evenly.paper.experiments.settling import SettlingRuns, limit, of_paper, shown_runs
from evenly.paper.figures.figure import PaperFigure
from evenly.paper.figures.ticks import whole_ticks
from evenly.plots.style import GREEN, INK, ORANGE, RED
from evenly.theory.tuning import Alpha, settled_threshold


def settling(
    *,
    pools: int = 500,
    load: float = 5.5,
    alpha: Alpha = "0.93",
    initial_tasks: int = 9,
    horizon: float | None = None,
    replications: int = 9,
    seed: int = 1,
    figure: Figure | None = None,
) -> Figure:
    """Draw the threshold until it settles, simulated and in the fluid limit, with the paper's bound on the time.

    The left panel starts from an empty system and threshold 0, the right one from `initial_tasks` tasks in each
    pool and the same threshold. The default horizon is 7 mean task times, or as much later as it takes to show the
    bounds. The bound is left out where the paper has none: for whole loads, and if alpha is too small for Cor. 2.

    Paper: Fig. 4, Prop. 7.
    """
    setup = SettlingRuns(
        pools=pools,
        load=load,
        alpha=alpha,
        initial_tasks=initial_tasks,
        horizon=horizon,
        replications=replications,
    )
    return FIGURE.plot(setup, seed=seed, figure=figure)


def _draw(lab: Lab, setup: SettlingRuns, figure: Figure) -> None:
    panels = figure.subplots(1, 2, sharey=True)
    names = ("from an empty system", f"from {setup.initial_tasks} tasks in each pool")
    highs = []
    for axes, start, name in zip(panels, setup.starts, names, strict=True):
        highs.append(_draw_start(axes, lab, setup, start))
        axes.set_title(name, fontsize=10, loc="left")
        axes.set_xlabel("time, in mean task times")
    panels[0].set_ylabel("tasks")
    panels[0].set_ylim(-0.1, max(highs) + 0.3)
    whole_ticks(panels[0], 0, max(highs))
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9)


def _draw_start(axes: Axes, lab: Lab, setup: SettlingRuns, start: int) -> int:
    """Draw the runs from one start, and return the highest level drawn."""
    path = limit(lab, setup, start)
    first, *others = map(threshold_steps, shown_runs(lab, setup, start))
    for place, steps in enumerate(others):
        label = None if place else f"threshold, {len(others)} more run{'s' if len(others) > 1 else ''}"
        axes.plot(*steps, color="#999999", linewidth=0.7, drawstyle="steps-post", label=label)
    axes.plot(*first, color=GREEN, linewidth=2.2, drawstyle="steps-post", label="threshold, simulated")
    times = np.concatenate([[0.0], path.change_times, [setup.end]])
    values = np.concatenate([[start], path.change_thresholds, path.threshold[-1:]])
    axes.plot(
        times, values, color=INK, linewidth=1.3, linestyle="--", drawstyle="steps-post", label="threshold, fluid"
    )
    axes.plot(
        path.times, path.total_mass, color=ORANGE, linewidth=1.6, linestyle=":", label="tasks per pool, fluid"
    )
    _draw_bound(axes, setup, start)
    axes.set_xlim(0, setup.end)
    return max(ceil(float(path.total_mass.max())), *(int(steps[1].max()) for steps in (first, *others)))


def _draw_bound(axes: Axes, setup: SettlingRuns, start: int) -> None:
    """Draw the bound, if there is one within the horizon."""
    bound = setup.bound(start)
    if bound is None or bound > setup.end:
        return
    axes.axvline(bound, color=RED, linewidth=1.2, linestyle="-.", label="the bound of Prop. 7")
    axes.annotate(f"{bound:.2f}", (bound, 0.3), xytext=(4, 0), textcoords="offset points", color=RED, fontsize=9)


def _caption(lab: Lab, setup: SettlingRuns) -> str:
    full, thin = setup.initial_tasks, setup.replications - 1
    low, high = settled_threshold(load=setup.load, alpha=setup.alpha)
    goal = f"{low}" if low == high else f"a value from {low} to {high}"
    thick = {0: "thick line is a simulated run", 1: "thick line and the thin one are simulated runs"}
    return (
        f"The threshold on its way to {goal} for load {setup.load:g}, alpha {setup.alpha} and {setup.pools} "
        f"pools. Left: from an empty system and threshold 0; right: from {full} tasks in each pool and threshold "
        f"{full}. The {thick.get(thin, f'thick line and the {thin} thin ones are simulated runs')} "
        f"(seed {lab.seed}, time 0 to {setup.end:g}), the "
        "dashed line is the threshold of the fluid system and the dotted one its tasks per pool. "
        f"{_about_the_bound(lab, setup)}"
    )


def _about_the_bound(lab: Lab, setup: SettlingRuns) -> str:
    left, right = (setup.bound(start) for start in setup.starts)
    if left is None or right is None:  # whether there is a bound does not depend on the start
        why = (
            "whole loads"
            if setup.load == floor(setup.load)
            else f"an alpha of at most load / {floor(setup.load) + 1} = {setup.load / (floor(setup.load) + 1):.4g}"
        )
        return f"There is no bound on the settling time: the paper has none for {why}."
    late = [f"{bound:.2f}" for bound in (left, right) if bound > setup.end]
    if late:
        return f"Where there is no vertical line, the bound on the settling time is later ({late[-1]})."
    last = settled_at(limit(lab, setup, setup.initial_tasks))
    tight = f"The vertical line is the bound on the settling time: tight on the left ({left:.2f})"
    if last < right / 2:
        return f"{tight}, loose on the right ({right:.2f}; the fluid system settles at {last:.2f})."
    return f"{tight}; on the right it is {right:.2f}, and the fluid system settles at {last:.2f}."


FIGURE = PaperFigure(
    name="fig4",
    title="Time until the threshold settles, and the paper's bound",
    size=(6.8, 4.2),
    of_paper=of_paper,
    caption=_caption,
    draw=_draw,
)
