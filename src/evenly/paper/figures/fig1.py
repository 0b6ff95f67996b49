"""A diagram of a system's state: one row per pool, one black circle per task, and the dispatcher's tokens.

Paper: Fig. 1.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evenly.paper.experiments.lab import Lab
from evenly.paper.experiments.snapshot import WARMUP, Snapshot, State, state
from evenly.paper.figures.figure import PaperFigure
from evenly.plots.style import BLUE, INK

_PAPER, _SHADE, _PALE = "#ffffff", "#e8eef4", "#b8b8b8"
_UNIT = 0.38  # inches between circles of full size
_ROOM = (5.2, 3.4)  # space beside and above the circles, in units


def state_diagram(
    *,
    pools: int = 12,
    load: float = 5.5,
    threshold: int | None = None,
    seed: int = 1,
    figure: Figure | None = None,
) -> Figure:
    """Draw one simulated state of a small system, with the tokens that the dispatcher holds.

    The threshold is fixed (default: floor(load)). At most 40 pools, at a load of at most 20.

    Paper: Fig. 1.
    """
    setup = Snapshot(pools=pools, load=load, threshold=threshold)
    columns = max(setup.level, setup.load) + 6  # an estimate of the number drawn
    size = (
        max(FIGURE.size[0], _UNIT * (columns + _ROOM[0])),
        max(FIGURE.size[1], _UNIT * (setup.pools + _ROOM[1])),
    )
    return FIGURE.plot(setup, seed=seed, figure=figure, size=size)


def _caption(lab: Lab, setup: Snapshot) -> str:
    shown = state(lab, setup)
    choice = (
        f"the first state after time {WARMUP:g} with two pools each below, at and one above the threshold, a "
        "fuller one, and five different numbers of tasks"
        if shown.varied
        else f"the first state after time {WARMUP:g}"
    )
    return (
        f"A simulated state: {setup.pools} pools at load {setup.load:g} under the threshold {setup.level}, at "
        f"time {shown.time:.2f} of a run from {setup.load:g} tasks per pool (seed {lab.seed}): {choice}. "
        "Rows are pools, black circles are tasks and white circles are free servers, whose number is not limited. "
        "Q(i) counts the tasks in column i, which is the number of pools with at least i tasks. "
        "On the right are the tokens that the dispatcher holds, with their number below: green (G) for pools "
        "below the threshold, yellow (Y) for pools at or below it."
    )


def _draw(lab: Lab, setup: Snapshot, figure: Figure) -> None:
    shown = state(lab, setup)
    columns = max(*shown.tasks, setup.level) + 2
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.set_xlim(-0.6, columns + 4.6)
    axes.set_ylim(setup.pools + 1.5, -1.9)
    width, height = figure.get_size_inches()
    scale = min(1.0, width / (columns + _ROOM[0]) / _UNIT, height / (setup.pools + _ROOM[1]) / _UNIT)
    _draw_threshold(axes, setup, scale)
    _draw_tasks(axes, shown, columns, scale)
    _draw_tokens(axes, shown, columns + 2.2, scale)


def _draw_threshold(axes: Axes, setup: Snapshot, scale: float) -> None:
    """Shade the columns up to the threshold and frame the next one with dashes."""
    threshold = setup.level
    top, bottom = -0.6, setup.pools - 0.4
    axes.fill_between([0.5, threshold + 0.5], top, bottom, color=_SHADE, linewidth=0)
    right = threshold + 1.5
    axes.plot([threshold + 0.5, right, right, threshold + 0.5], [top, top, bottom, bottom], "--", color=BLUE)
    axes.plot([threshold + 0.5] * 2, [top, bottom], color=BLUE, linewidth=2.0)
    size = 10 * scale
    if threshold >= 5:
        name = f"up to the threshold, {threshold}"
        axes.text((threshold + 1) / 2, -0.95, name, ha="center", va="bottom", color=BLUE, fontsize=size)
    else:  # there is less room
        name = f"up to the\nthreshold, {threshold}"
        axes.text(
            threshold + 0.25, -0.95, name, ha="right", va="bottom", color=BLUE, fontsize=size, linespacing=0.95
        )
    axes.text(
        threshold + 1, -0.95, "one\nabove", ha="center", va="bottom", color=BLUE, fontsize=size, linespacing=0.95
    )


def _draw_tasks(axes: Axes, shown: State, columns: int, scale: float) -> None:
    pools, size = len(shown.tasks), 10 * scale
    for row, count in enumerate(shown.tasks):
        levels = np.arange(1, columns + 1)
        faces = [INK if level <= count else _PAPER for level in levels]
        edges = [INK if level <= count else _PALE for level in levels]
        axes.scatter(
            levels, [row] * columns, s=130 * scale**2, c=faces, edgecolors=edges, linewidths=1.1 * scale, zorder=3
        )
        axes.text(columns + 0.85, row, "…", ha="center", va="center", color=_PALE, fontsize=size)
    counts = shown.pools_at_least
    axes.text(0.35, pools + 0.25, "Q(i)", ha="right", va="center", color=INK, fontsize=size)
    axes.text(0.35, pools + 1.0, "i", ha="right", va="center", color=INK, style="italic", fontsize=size)
    for level in range(1, columns + 1):
        here = str(counts[level] if level < len(counts) else 0)
        axes.text(level, pools + 0.25, here, ha="center", va="center", color=INK, weight="bold", fontsize=size)
        axes.text(
            level, pools + 1.0, str(level), ha="center", va="center", color=INK, style="italic", fontsize=size
        )


def _draw_tokens(axes: Axes, shown: State, left: float, scale: float) -> None:
    pools, size = len(shown.tasks), 10 * scale
    axes.text(
        left + 0.5,
        -0.95,
        "tokens at the\ndispatcher",
        ha="center",
        va="bottom",
        color=INK,
        fontsize=size,
        linespacing=0.95,
    )
    for place, (letter, held) in enumerate((("G", shown.green), ("Y", shown.yellow))):
        x = left + place
        for row in np.flatnonzero(held).tolist():
            axes.scatter([x], [row], s=170 * scale**2, c=_PAPER, edgecolors=INK, linewidths=1.1 * scale, zorder=3)
            axes.text(
                x, row + 0.03, letter, ha="center", va="center", fontsize=8.5 * scale, weight="bold", zorder=4
            )
        axes.text(
            x, pools + 0.25, str(sum(held)), ha="center", va="center", weight="bold", color=INK, fontsize=size
        )


def _of_paper(_: Lab) -> Snapshot:
    return Snapshot()


FIGURE = PaperFigure(
    name="fig1",
    title="The state of a system, and the tokens",
    size=(6.4, 6.2),
    of_paper=_of_paper,
    caption=_caption,
    draw=_draw,
)
