"""One run over time: demand, threshold and fullest pool; imbalance; how the pools are filled.

Paper: Figs. 3, 4 and 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from evenly.plots.names import scenario_name
from evenly.plots.style import BLUE, GREEN, INK, ORANGE, RED, SKY, picture
from evenly.sim import Result, Trajectory
from evenly.workload.demand import Phase

_VISIBLE = 1e-9  # a fraction of pools
_NAMED = 0.08  # a fraction of pools, too


def draw(result: Result, path: Path) -> None:
    """Draw the first replication."""
    run, scenario = result.trajectories[0], result.scenario
    with picture(path, 8.0, 7.2) as figure:
        levels, imbalance, occupancy = figure.subplots(3, 1, sharex=True, height_ratios=[3, 1.4, 2])
        draw_levels(levels, result, run)
        imbalance.plot(run.times, run.imbalance, color=RED, linewidth=1)
        imbalance.set_ylabel("imbalance e(t)")
        imbalance.set_ylim(bottom=0)
        draw_occupancy(occupancy, run.times, run.occupancy)
        occupancy.set_xlabel("time")
        for axes in (levels, imbalance, occupancy):
            axes.axvspan(0, scenario.warmup, color="#000000", alpha=0.05, linewidth=0)
        figure.suptitle(f"{scenario_name(scenario)}, {scenario.pools:,} pools", fontsize=10)


def draw_levels(axes: Axes, result: Result, run: Trajectory) -> None:
    """Demand, tasks per pool, the fullest pool and the threshold, if there is one."""
    axes.plot(
        run.times, run.max_tasks, color=SKY, linewidth=1.2, drawstyle="steps-post", label="fullest pool m(t)"
    )
    per_pool = run.occupancy[:, 1:].sum(axis=1)
    axes.plot(run.times, per_pool, color=ORANGE, linewidth=1.4, linestyle=":", label="tasks per pool")
    draw_demand(axes, result.scenario.phases, run.times)
    if run.threshold[0] >= 0:
        times = np.concatenate([[0.0], run.change_times, [result.scenario.horizon]])
        values = np.concatenate([[run.threshold[0]], run.change_thresholds, [run.threshold[-1]]])
        axes.plot(times, values, color=GREEN, linewidth=2, drawstyle="steps-post", label="threshold")
    axes.set_ylabel("tasks")
    axes.set_ylim(bottom=0)
    axes.legend(loc="best", ncols=2, fontsize=9)


def draw_demand(axes: Axes, phases: Sequence[Phase], times: NDArray[np.float64]) -> None:
    """The demand, upright where one phase follows another, whatever the times in between."""
    horizon = times[-1]
    begun = [phase for phase in phases if phase.start < horizon]
    line: list[tuple[float, float]] = []
    for phase, (start, end) in zip(begun, pairwise([*(phase.start for phase in begun), horizon]), strict=True):
        inside = times[(times > start) & (times < end)]
        line += [(at, phase.load_at(at)) for at in (start, *inside, end)]
    axes.plot(*zip(*line, strict=True), color=INK, linewidth=1.0, linestyle="--", label="demand")


def draw_occupancy(axes: Axes, times: NDArray[np.float64], occupancy: NDArray[np.float64]) -> None:
    """A band for each number of tasks, as wide as the fraction of pools that have so many."""
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


def _shade(depth: float) -> tuple[float, float, float]:
    """White to blue."""
    return (1 - depth, 1 - 0.75 * depth, 1 - 0.4 * depth)
