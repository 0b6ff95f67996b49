"""A fluid solution over time: demand, mass and threshold; imbalance; how the pools are filled."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from evenly.plots.style import GREEN, ORANGE, RED, picture
from evenly.plots.trajectory import draw_demand, draw_occupancy
from evenly.theory.fluid.path import FluidPath
from evenly.workload.demand import Phase


def draw(path: FluidPath, phases: Sequence[Phase], title: str, file: Path) -> None:
    """Draw a fluid solution in the manner of a simulated run."""
    with picture(file, 8.0, 7.0) as figure:
        levels, imbalance, occupancy = figure.subplots(3, 1, sharex=True, height_ratios=[3, 1.4, 2])
        _draw_levels(levels, path, phases)
        imbalance.plot(path.times, path.imbalance, color=RED, linewidth=1.2)
        imbalance.set_ylabel("imbalance e(t)")
        imbalance.set_ylim(bottom=0)
        draw_occupancy(occupancy, path.times, path.occupancy)
        occupancy.set_xlabel("time, in mean task times")
        figure.suptitle(title, fontsize=10)


def _draw_levels(axes: Axes, path: FluidPath, phases: Sequence[Phase]) -> None:
    draw_demand(axes, phases, path.times)
    axes.plot(path.times, path.total_mass, color=ORANGE, linewidth=1.6, linestyle=":", label="tasks per pool")
    later = path.update_times > 0  # the first threshold drawn is the one after the changes made at once
    times = np.concatenate([[0.0], path.update_times[later], [path.times[-1]]])
    values = np.concatenate([path.threshold[:1], path.update_thresholds[later], path.threshold[-1:]])
    axes.plot(times, values, color=GREEN, linewidth=2, drawstyle="steps-post", label="threshold")
    axes.set_ylabel("tasks")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(loc="best", fontsize=9)
