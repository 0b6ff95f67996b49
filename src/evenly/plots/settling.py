"""The thresholds at which learning can settle, for loads around a given one."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from evenly.plots.style import GREEN, INK, ORANGE, RED


def draw_range(
    axes: Axes,
    loads: NDArray[np.float64],
    lowest: NDArray[np.int64],
    highest: NDArray[np.int64],
    optimum: NDArray[np.int64],
    load: float,
    settles: tuple[int, int],
) -> None:
    """Draw the thresholds at which learning can settle against the load, and mark one load."""
    low, high = settles
    name = f"{low}" if low == high else f"{low} to {high}"
    axes.fill_between(
        loads, lowest, highest, color=ORANGE, alpha=0.3, linewidth=0, label="thresholds it can settle at"
    )
    axes.plot(loads, highest, color=ORANGE, linewidth=1.2)
    axes.plot(loads, lowest, color=ORANGE, linewidth=1.2)
    axes.plot(loads, optimum, color=GREEN, linewidth=2, linestyle="--", label="optimum: floor(load)")
    axes.axvline(load, color=INK, linewidth=1, linestyle=":")
    axes.plot([load] * len({*settles}), sorted({*settles}), "o", color=RED, label=f"load {load:g}: {name}")
    axes.set_xlim(loads[0], loads[-1])
    axes.set_ylim(int(lowest[0]) - 0.5, int(highest[-1]) + 0.5)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("load, in tasks per pool")
    axes.set_ylabel("settled threshold")
    axes.legend(loc="upper left", fontsize=9)
