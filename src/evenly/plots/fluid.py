"""A fluid solution over time: demand, mass and threshold; imbalance; pools by number of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from evenly.plots.style import ORANGE, RED, house_style
from evenly.plots.trajectory import draw_demand, draw_occupancy, draw_threshold
from evenly.workload.demand import Phase

Floats = NDArray[np.float64]
TIME = "time, in mean task times"


@dataclass(frozen=True, kw_only=True)
class FluidLines:
    """The parts of a fluid solution that are drawn. The threshold has its start, each change and its end."""

    times: Floats
    phases: Sequence[Phase]
    total_mass: Floats
    threshold_times: Floats
    thresholds: Floats
    imbalance: Floats
    occupancy: Floats


def draw_levels(axes: Axes, lines: FluidLines) -> None:
    """Draw demand, tasks per pool and the threshold."""
    draw_demand(axes, lines.phases, lines.times)
    axes.plot(lines.times, lines.total_mass, color=ORANGE, linewidth=1.6, linestyle=":", label="tasks per pool")
    draw_threshold(axes, lines.threshold_times, lines.thresholds)
    axes.set_ylabel("tasks")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(loc="best", fontsize=9)


def draw_panels(figure: Figure, lines: FluidLines, title: str) -> None:
    """Draw a fluid solution in the same layout as a simulated run."""
    with house_style():
        levels, imbalance, occupancy = figure.subplots(3, 1, sharex=True, height_ratios=[3, 1.4, 2])
        draw_levels(levels, lines)
        imbalance.plot(lines.times, lines.imbalance, color=RED, linewidth=1.2)
        imbalance.set_ylabel("imbalance e(t)")
        imbalance.set_ylim(bottom=0)
        draw_occupancy(occupancy, lines.times, lines.occupancy)
        occupancy.set_xlabel(TIME)
        figure.suptitle(title, fontsize=10)


def draw_filling(axes: Axes, times: Floats, occupancy: Floats) -> None:
    """Draw the pools by number of tasks over time, one band per number."""
    draw_occupancy(axes, times, occupancy)
    axes.set_xlabel(TIME)
