"""The share of a pool's resources that tasks get under several policies.

Paper: Fig. 5.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from evenly.plots.style import COLORS, DASHES, MARKERS, styled

_VISIBLE = 5e-4

Line = tuple[str, NDArray[np.float64]]  # a label, and the share of tasks in pools with 0, 1, 2, ... tasks


def draw_shares(axes: Axes, lines: Sequence[Line]) -> Axes:
    """Draw the share of tasks against the number of tasks in their pool, one line per policy, without a legend."""
    low, high = _range(lines)
    _draw_lines(axes, lines, np.arange(low, high + 1))
    axes.set_ylim(bottom=0)
    axes.set_xlim(low - 0.5, high + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("tasks in the pool, the task itself included")
    axes.set_ylabel("share of tasks")
    ticks = [level for level in axes.get_xticks() if low <= level <= high and level >= 1]
    top = axes.secondary_xaxis("top")
    top.set_xticks(ticks, [f"1/{level:.0f}" for level in ticks])
    top.set_xlabel("share of the pool's resources that a task gets")
    return axes


@styled
def draw_panels(figure: Figure, lines: Sequence[Line], *, title: str = "") -> Figure:
    """Draw the lines on an empty figure, with the legend below them and the title, if any, above."""
    draw_shares(figure.add_subplot(), lines)
    figure.legend(loc="outside lower center", ncols=2, fontsize=9)
    if title:
        figure.suptitle(title, fontsize=10)
    return figure


def _draw_lines(axes: Axes, lines: Sequence[Line], levels: NDArray[np.int64]) -> None:
    for place, (label, task_share) in enumerate(lines):
        color = COLORS[place % len(COLORS)]
        shares = np.pad(task_share, (0, int(levels[-1]) + 1))[levels]
        axes.plot(
            levels,
            shares,
            markevery=np.flatnonzero(shares >= _VISIBLE).tolist(),
            label=label,
            color=color,
            marker=MARKERS[place % len(MARKERS)],
            linestyle=DASHES[place % len(DASHES)],
            # Open markers are larger, so that two coinciding lines both stay visible.
            markersize=9 if place % 2 else 5,
            markerfacecolor="none" if place % 2 else color,
        )


def _range(lines: Sequence[Line]) -> tuple[int, int]:
    """Return the lowest and the highest level where a share is large enough to see."""
    seen = [np.flatnonzero(shares >= _VISIBLE) for _, shares in lines]
    lows, highs = [int(s[0]) for s in seen if s.size], [int(s[-1]) for s in seen if s.size]
    return min(lows, default=0), max(highs, default=1)
