"""The resources that tasks get under several policies.

Paper: Fig. 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from evenly.plots.names import scenario_name
from evenly.plots.style import COLORS, DASHES, MARKERS, picture
from evenly.sim import Result

_VISIBLE = 5e-4


def draw(results: Sequence[Result], path: Path) -> None:
    """Share of tasks that share their pool with so many (themselves included), a line a policy."""
    with picture(path, 8.0, 5.2) as figure:
        draw_on(figure, results)
        scenario = results[0].scenario
        span = f"time {scenario.warmup:g} to {scenario.horizon:g}"
        figure.suptitle(f"{scenario.pools:,} pools, load {scenario.load_at_start:g}, {span}", fontsize=10)


def draw_on(figure: Figure, results: Sequence[Result]) -> None:
    """The lines, axes and legend, on an empty figure."""
    axes = figure.add_subplot()
    low, high = _range(results)
    _draw_lines(axes, results, np.arange(low, high + 1))
    axes.set_ylim(bottom=0)
    axes.set_xlim(low - 0.5, high + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("tasks in the pool, the task itself included")
    axes.set_ylabel("share of tasks")
    ticks = [level for level in axes.get_xticks() if low <= level <= high and level >= 1]
    top = axes.secondary_xaxis("top")
    top.set_xticks(ticks, [f"1/{level:.0f}" for level in ticks])
    top.set_xlabel("share of the pool's resources that a task gets")
    figure.legend(loc="outside lower center", ncols=2, fontsize=9)


def _draw_lines(axes: Axes, results: Sequence[Result], levels: NDArray[np.int64]) -> None:
    for place, result in enumerate(results):
        color = COLORS[place % len(COLORS)]
        shares = np.pad(result.averages.task_share, (0, int(levels[-1]) + 1))[levels]
        axes.plot(
            levels,
            shares,
            markevery=np.flatnonzero(shares >= _VISIBLE).tolist(),
            label=_label(result),
            color=color,
            marker=MARKERS[place % len(MARKERS)],
            linestyle=DASHES[place % len(DASHES)],
            # Open markers are larger: two policies that do the same stay visible.
            markersize=9 if place % 2 else 5,
            markerfacecolor="none" if place % 2 else color,
        )


def _range(results: Sequence[Result]) -> tuple[int, int]:
    """The levels where something can be seen."""
    seen = [np.flatnonzero(result.averages.task_share >= _VISIBLE) for result in results]
    lows, highs = [int(s[0]) for s in seen if s.size], [int(s[-1]) for s in seen if s.size]
    return min(lows, default=0), max(highs, default=1)


def _label(result: Result) -> str:
    scenario = result.scenario
    name = scenario_name(scenario)
    if not scenario.steady:  # there is no one ceiling of the load
        return f"{name}: spread {result.averages.spread:.2f}"
    ceiling = math.ceil(scenario.load_at_start)
    above = 100 * result.share_above(ceiling)
    return f"{name}: spread {result.averages.spread:.2f}, {above:.2g} % above {ceiling}"
