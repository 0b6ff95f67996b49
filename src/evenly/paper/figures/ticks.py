"""Ticks that several figures share."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

_MOST = 12


def whole_ticks(axes: Axes, low: int, high: int) -> None:
    """Put y ticks at the whole numbers from `low` to `high`, or at some of them if there are many."""
    if high - low < _MOST:
        axes.set_yticks(range(low, high + 1))
    else:
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
