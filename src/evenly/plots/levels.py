"""Pools by their number of tasks, as bars."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from evenly.plots.bars import Bars
from evenly.plots.style import BLUE, RED

_VISIBLE = 5e-4  # smallest share of pools shown
_HEADROOM = 1.25  # of the highest bar, so that the legend fits above it


def draw_levels(axes: Axes, pools_with_exactly: NDArray[np.float64], *, max_tasks: float, label: str) -> Axes:
    """Draw the share of pools with 0, 1, 2, ... tasks, and mark the mean of the fullest pool."""
    seen = np.flatnonzero(pools_with_exactly >= _VISIBLE)
    levels = np.arange(seen[0], seen[-1] + 1) if seen.size else np.arange(1)
    bars = Bars(axes)
    taken = bars.draw(levels, pools_with_exactly[levels], color=BLUE, label=label)
    name = f"fullest pool, mean {max_tasks:.2f}"
    axes.axvline(max_tasks, color=taken if bars.later else RED, linewidth=1.2, linestyle="--", label=name)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("tasks in a pool")
    axes.set_ylabel("share of pools")
    axes.grid(visible=False, axis="x")
    bars.set_top(_HEADROOM * float(pools_with_exactly.max()))
    axes.legend(loc="upper left", fontsize=9, frameon=False)
    return axes
