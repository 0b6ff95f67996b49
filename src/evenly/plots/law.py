"""The exact law of a small system as bars."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from evenly.plots.style import BLUE, GREEN, ORANGE, house_style

_VISIBLE = 1e-4
_COLORS = (BLUE, ORANGE, GREEN)


def draw_bars(axes: Axes, shares: NDArray[np.float64], label: str, color: str = BLUE) -> None:
    """Draw the probability of each number of tasks, or of each threshold, that can be seen."""
    seen = np.flatnonzero(shares > _VISIBLE)
    axes.bar(seen, shares[seen], color=color)
    axes.set_xlabel(label)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def draw_panels(figure: Figure, panels: Mapping[str, NDArray[np.float64]], title: str) -> None:
    """Draw one panel per distribution, side by side."""
    with house_style():
        for place, (label, shares) in enumerate(panels.items()):
            axes = figure.add_subplot(1, len(panels), place + 1)
            draw_bars(axes, shares, label, _COLORS[place])
            if place == 0:
                axes.set_ylabel("probability")
        figure.suptitle(title, fontsize=10)
