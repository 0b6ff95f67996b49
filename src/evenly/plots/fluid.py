"""A fluid solution over time: demand, mass and threshold; imbalance; how the pools are filled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from evenly.plots.style import GREEN, INK, ORANGE, RED, picture
from evenly.plots.trajectory import draw_occupancy
from evenly.theory.fluid import FluidPath


def draw(path: FluidPath, file: Path) -> None:
    """Draw a fluid solution in the manner of a simulated run."""
    with picture(file, 8.0, 7.0) as figure:
        levels, imbalance, occupancy = figure.subplots(3, 1, sharex=True, height_ratios=[3, 1.4, 2])
        _draw_levels(levels, path)
        imbalance.plot(path.times, path.imbalance, color=RED, linewidth=1.2)
        imbalance.set_ylabel("imbalance e(t)")
        imbalance.set_ylim(bottom=0)
        draw_occupancy(occupancy, path.times, path.occupancy)
        occupancy.set_xlabel("time, in mean task times")
        figure.suptitle("fluid limit: infinitely many pools", fontsize=10)


def _draw_levels(axes: Axes, path: FluidPath) -> None:
    axes.plot(path.times, path.demand, color=INK, linewidth=1.0, linestyle="--", label="demand")
    axes.plot(path.times, path.total_mass, color=ORANGE, linewidth=1.6, linestyle=":", label="tasks per pool")
    times = np.concatenate([[0.0], path.update_times, [path.times[-1]]])
    moved = path.update_times.size and path.update_times[0] > 0
    first = path.threshold[0] if moved or not path.update_times.size else path.update_thresholds[0]
    values = np.concatenate([[first], path.update_thresholds, [path.threshold[-1]]])
    axes.plot(times, values, color=GREEN, linewidth=2, drawstyle="steps-post", label="threshold")
    axes.set_ylabel("tasks")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(loc="best", fontsize=9)
