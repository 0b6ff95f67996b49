"""Bars of one or several results on the same axes: the first is filled, later ones are outlines over it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer
from numpy.typing import NDArray

from evenly.plots.style import COLORS

_OUTLINE = 1.6  # points


class Bars:
    """The bars of one result. `later` is True if the axes had bars before this object was made."""

    def __init__(self, axes: Axes) -> None:
        self._axes = axes
        self.later = any(isinstance(drawn, BarContainer) for drawn in axes.containers)

    def draw(
        self,
        places: Sequence[int] | NDArray[np.int64],
        heights: Sequence[float] | NDArray[np.float64],
        width: float = 0.8,
        *,
        color: str,
        label: str,
    ) -> str:
        """Draw bars in `color`, or as outlines in the next free color, and return the color used."""
        if not self.later:
            self._axes.bar(places, heights, width, color=color, label=label)
            return color
        free = _next_color(self._axes)
        self._axes.bar(places, heights, width, fill=False, edgecolor=free, linewidth=_OUTLINE, label=label)
        return free

    def set_top(self, top: float) -> None:
        """End the vertical axis at `top`, or higher if earlier bars need it."""
        self._axes.set_ylim(0, max(top, self._axes.get_ylim()[1]) if self.later else top)

    def has(self, label: str) -> bool:
        """Return True if something on the axes has this label already."""
        return label in self._axes.get_legend_handles_labels()[1]


def title_once(axes: Axes, title: str) -> None:
    """Set the title, unless the axes have one already, from the caller or an earlier result."""
    if not axes.get_title():
        axes.set_title(title, fontsize=10)


def _next_color(axes: Axes) -> str:
    """Return the first unused color after that of the last bars."""
    used = [_color(drawn) for drawn in axes.containers if isinstance(drawn, BarContainer) and drawn.patches]
    palette = [to_hex(color) for color in COLORS]
    start = palette.index(used[-1]) + 1 if used and used[-1] in palette else 0
    turned = [*COLORS[start:], *COLORS[:start]]
    return next((color for color in turned if to_hex(color) not in used), turned[0])


def _color(bars: BarContainer) -> str:
    patch = bars.patches[0]
    return to_hex(patch.get_facecolor() if patch.get_fill() else patch.get_edgecolor())
