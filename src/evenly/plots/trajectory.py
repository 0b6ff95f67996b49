"""One run over time: demand, threshold and fullest pool; imbalance; pools by number of tasks.

Paper: Figs. 3, 4 and 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from evenly.plots.style import BLUE, GREEN, INK, ORANGE, RED, SKY, styled
from evenly.workload.demand import Phase

_VISIBLE = 1e-9  # smallest fraction of pools that gets a band
_NAMED = 0.08  # smallest fraction of pools that gets a label

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Levels:
    """Demand and tasks of a run at each of `times`, and the corners of the threshold's steps, if there is one."""

    times: FloatArray
    phases: Sequence[Phase]
    mean_tasks: FloatArray
    max_tasks: NDArray[np.int64]
    threshold_times: FloatArray | None = None
    threshold: NDArray[np.int64] | None = None


def draw_levels(axes: Axes, levels: Levels) -> Axes:
    """Draw demand, tasks per pool, the fullest pool and the threshold, if there is one."""
    axes.plot(
        levels.times,
        levels.max_tasks,
        color=SKY,
        linewidth=1.2,
        drawstyle="steps-post",
        label="fullest pool m(t)",
    )
    axes.plot(levels.times, levels.mean_tasks, color=ORANGE, linewidth=1.4, linestyle=":", label="tasks per pool")
    draw_demand(axes, levels.phases, levels.times)
    if levels.threshold_times is not None and levels.threshold is not None:
        draw_threshold(axes, levels.threshold_times, levels.threshold)
    axes.set_ylabel("tasks")
    axes.set_ylim(bottom=0)
    axes.legend(loc="best", ncols=2, fontsize=9, frameon=False)
    return axes


def draw_threshold(axes: Axes, times: FloatArray, values: NDArray[np.int64] | FloatArray) -> None:
    """Draw a threshold as steps."""
    axes.plot(times, values, color=GREEN, linewidth=2, drawstyle="steps-post", label="threshold")


@styled
def draw_panels(
    figure: Figure,
    levels: Levels,
    *,
    imbalance: FloatArray,
    occupancy: FloatArray,
    warmup: float,
    title: str,
) -> Figure:
    """Draw the levels, the imbalance and the pools by tasks, one above the other, with the warm-up shaded."""
    times = levels.times
    top, middle, bottom = figure.subplots(3, 1, sharex=True, height_ratios=[3, 1.4, 2])
    draw_levels(top, levels)
    middle.plot(times, imbalance, color=RED, linewidth=1)
    middle.set_ylabel("imbalance e(t)")
    middle.set_ylim(bottom=0)
    draw_occupancy(bottom, times, occupancy)
    bottom.set_xlabel("time")
    for axes in (top, middle, bottom):
        axes.axvspan(0, warmup, color="#000000", alpha=0.05, linewidth=0)
    figure.suptitle(title, fontsize=10)
    return figure


def draw_demand(axes: Axes, phases: Sequence[Phase], times: FloatArray) -> Axes:
    """Draw the demand, with a vertical step between phases even if none of the times is close."""
    horizon = times[-1]
    begun = [phase for phase in phases if phase.start < horizon]
    line: list[tuple[float, float]] = []
    for phase, (start, end) in zip(begun, pairwise([*(phase.start for phase in begun), horizon]), strict=True):
        inside = times[(times > start) & (times < end)]
        line += [(at, phase.load_at(at)) for at in (start, *inside, end)]
    axes.plot(*zip(*line, strict=True), color=INK, linewidth=1.0, linestyle="--", label="demand")
    return axes


def draw_occupancy(axes: Axes, times: FloatArray, occupancy: FloatArray) -> Axes:
    """Draw one band per number of tasks, as high as the fraction of pools with exactly that number."""
    exactly = occupancy - np.pad(occupancy[:, 1:], ((0, 0), (0, 1)))
    used = np.flatnonzero(exactly.max(axis=0) > _VISIBLE)[::-1]  # the fullest pools at the bottom
    depths = np.linspace(0.85, 0.0, used.size)
    axes.stackplot(times, exactly[:, used].T, colors=[_shade(depth) for depth in depths], linewidth=0)
    edge = 0.0
    for level in used:
        share = exactly[-1, level]
        if share > _NAMED or share == exactly[-1].max():
            place = (1.005, edge + share / 2)
            coordinates = ("axes fraction", "data")
            axes.annotate(f"{level}", place, xycoords=coordinates, va="center", fontsize=8, color=BLUE)
        edge += share
    axes.set_ylim(0, 1)
    axes.set_xlim(times[0], times[-1])
    axes.set_ylabel("pools, by tasks\n(darker: more)")
    axes.grid(visible=False)
    return axes


def _shade(depth: float) -> tuple[float, float, float]:
    """Return a color between white (0) and blue (1)."""
    return (1 - depth, 1 - 0.75 * depth, 1 - 0.4 * depth)
