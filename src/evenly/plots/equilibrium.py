"""An equilibrium as bars, next to the balanced state.

Paper: Fig. 2.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, MultipleLocator
from numpy.typing import NDArray

from evenly.plots.bars import Bars
from evenly.plots.style import BLUE, ORANGE, house_style

_VISIBLE = 2e-3  # lowest bar shown, as a fraction of the highest
_MAX_BARS = 50  # more cannot be told apart
_MAX_TICKS = 20  # more cannot all be labeled
_THINNEST = 1 / 200  # width of a balanced bar, as a fraction of the picture
_TALLEST = 5.0  # balanced bars are cut at this multiple of the highest other bar

Floats = NDArray[np.float64]


def draw_shares(axes: Axes, shares: Floats, balanced: Floats, name: str) -> None:
    """Draw the share of pools with each number of tasks, here and under balance. Both arrays begin at 0 tasks."""
    seen = np.flatnonzero((shares > _VISIBLE * shares.max()) | (balanced > 0))
    levels = np.arange(seen[0], seen[-1] + 1)
    _draw_bars(axes, levels, shares[levels], balanced[levels], name)
    few = levels.size <= _MAX_TICKS
    axes.xaxis.set_major_locator(MultipleLocator(1) if few else MaxNLocator(integer=True))
    axes.set_xlabel("tasks in a pool")
    axes.set_ylabel("share of pools")
    axes.grid(visible=False, axis="x")


def draw_panels(figure: Figure, shares: Floats, balanced: Floats, name: str, title: str) -> None:
    """Draw the shares with the legend below them, so that it covers no bar."""
    with house_style():
        draw_shares(figure.add_subplot(), shares, balanced, name)
        figure.legend(loc="outside lower center", ncols=2)
        figure.suptitle(title, fontsize=10)


def _draw_bars(axes: Axes, levels: NDArray[np.int64], shares: Floats, balanced: Floats, name: str) -> None:
    """Draw bars, or an area if there are too many, with narrow balanced bars in front.

    A balanced load uses at most two levels. Its bars are cut where they would dwarf the others.
    """
    apart = len(levels) <= _MAX_BARS
    cut = balanced.max() > _TALLEST * shares.max()
    bars = Bars(axes)
    bars.draw(levels, shares, 0.8 if apart else 1.0, color=BLUE, label=name)
    filled = np.flatnonzero(balanced)
    where = ", ".join(f"{balanced[at]:.3g} at {levels[at]}" for at in filled)
    label = f"balanced (cut off: {where})" if cut else "balanced"
    width = 0.3 if apart else max(1.0, _THINNEST * len(levels))
    if not bars.has(label):  # two equilibria may share a balanced load
        bars.draw(levels[filled], balanced[filled], width, color=ORANGE, label=label)
    if cut and not bars.later:
        axes.set_ylim(0.0, _TALLEST * shares.max())
