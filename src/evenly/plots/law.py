"""The exact stationary distribution of a small system as bars."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from evenly.plots.bars import Bars
from evenly.plots.style import BLUE, GREEN, ORANGE, house_style

_VISIBLE = 1e-4
_COLORS = (BLUE, ORANGE, GREEN)


def draw_bars(axes: Axes, shares: NDArray[np.float64], what: str, *, name: str, color: str = BLUE) -> None:
    """Draw the probability of each number of tasks, or of each threshold, where it is large enough to see.

    One distribution needs no legend. Drawing a second one over it adds a legend.
    """
    seen = np.flatnonzero(shares > _VISIBLE)
    bars = Bars(axes)
    bars.draw(seen, shares[seen], color=color, label=name)
    axes.set_xlabel(what)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if bars.later:
        axes.legend(loc="best", fontsize=9)


def draw_panels(figure: Figure, panels: Mapping[str, NDArray[np.float64]], title: str) -> None:
    """Draw one panel per distribution, side by side."""
    with house_style():
        for place, (label, shares) in enumerate(panels.items()):
            axes = figure.add_subplot(1, len(panels), place + 1)
            draw_bars(axes, shares, label, name=title, color=_COLORS[place])
            if place == 0:
                axes.set_ylabel("probability")
        figure.suptitle(title, fontsize=10)
