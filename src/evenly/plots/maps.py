"""Maps of a value over two options, and lines over one: a panel for each value and facet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from evenly.plots.style import BLUE, INK, ORANGE, styled

Numbers = NDArray[np.float64]

_LOG_RATIO = 30.0  # between the ends of an axis that is then logarithmic
_DWARF = 30.0  # times the median: a value that makes a scale logarithmic
_DECADES = 1e5  # the most that a logarithmic scale shows
_LEVELS = 5  # contour lines, about
_STEPS = 12  # of a prediction in whole numbers
_NAMED = 6  # contour lines in the legend
_TICKS = 8


@dataclass(frozen=True)
class Panel:
    """What one panel shows. `values` and `widths` have a row per y and a column per x, or one row only."""

    title: str
    x: Sequence[Any]
    y: Sequence[Any] | None
    values: Numbers
    widths: Numbers | None
    scale: Scale
    fluid: Fluid | None


@dataclass(frozen=True)
class Scale:
    """The range of the colors, which all panels of a value share. It is logarithmic if a few values dwarf all."""

    low: float
    high: float
    log: bool

    @classmethod
    def of(cls, values: Numbers) -> Scale:
        """Return the scale of some values; NaN is left out."""
        known = values[np.isfinite(values)]
        positive = known[known > 0]
        if not len(known):
            return cls(0.0, 1.0, log=False)
        low, high = float(known.min()), float(known.max())
        if low >= 0 and len(positive) and high > _DWARF * float(np.median(positive)):
            return cls(max(float(positive.min()), high / _DECADES), high, log=True)
        return cls(low, high, log=False)


@dataclass(frozen=True)
class Fluid:
    """A prediction, at `x` and, in a map, at `y`: it may be finer than the values, which are costly."""

    x: Sequence[Any]
    y: Sequence[Any] | None
    values: Numbers


def size(panels: int, rows: int, *, lines: bool) -> tuple[float, float]:
    """Return the width and height in inches of a figure with this many panels, in rows of one value each."""
    across = _columns(panels, rows)
    down = math.ceil(panels / across)
    return 1.0 + (4.6 if lines else 4.4) * across, 0.6 + 3.4 * down


def _columns(panels: int, rows: int) -> int:
    if panels > rows:
        return min(panels // rows, 4)
    return 2 if panels == 4 else min(panels, 3)


@styled
def draw_maps(figure: Figure, panels: Sequence[Panel], *, rows: int, x_label: str, y_label: str) -> None:
    """Draw the panels, `rows` rows of them or as many as fit."""
    across = _columns(len(panels), rows)
    down = math.ceil(len(panels) / across)
    for place, panel in enumerate(panels):
        axes = figure.add_subplot(down, across, place + 1)
        if panel.y is None:
            _draw_lines(axes, panel)
        else:
            _draw_map(figure, axes, panel)
            axes.set_ylabel(y_label)
        axes.set_xlabel(x_label)
        axes.set_title(panel.title, fontsize=10, loc="left")


def _draw_map(figure: Figure, axes: Axes, panel: Panel) -> None:
    assert panel.y is not None
    x, log_x = _positions(panel.x)
    y, log_y = _positions(panel.y)
    order_x, order_y = np.argsort(x), np.argsort(y)
    x, y = x[order_x], y[order_y]
    scale = panel.scale
    values = np.ma.masked_invalid(panel.values[np.ix_(order_y, order_x)])
    norm = LogNorm(scale.low, scale.high, clip=True) if scale.log else Normalize(scale.low, scale.high)
    mesh = axes.pcolormesh(_edges(x, log_x), _edges(y, log_y), values, cmap="viridis", norm=norm, rasterized=True)
    axes.set_facecolor("#bbbbbb")  # points that are missing
    axes.grid(False)
    figure.colorbar(mesh, ax=axes, pad=0.02)
    if panel.fluid is not None and len(x) > 1 and len(y) > 1:
        _draw_contours(axes, panel.fluid, scale.low, scale.high)
    _ticks(axes, "x", panel.x, log_x)
    _ticks(axes, "y", panel.y, log_y)


def _draw_contours(axes: Axes, fluid: Fluid, low: float, high: float) -> None:
    """Draw lines of equal prediction, at round numbers in the range of the colors."""
    assert fluid.y is not None
    x, y = _positions(fluid.x)[0], _positions(fluid.y)[0]
    found = np.unique(fluid.values[~np.isnan(fluid.values)])
    if len(found) <= _STEPS and np.array_equal(found, np.round(found)):
        levels = found[1:] - 0.5  # a prediction in whole steps: lines between them
    else:
        levels = np.array([level for level in MaxNLocator(_LEVELS).tick_values(low, high) if low < level < high])
    levels = levels[(levels > found.min(initial=math.inf)) & (levels < found.max(initial=-math.inf))]
    if not len(levels):
        return
    axes.contour(x, y, np.ma.masked_invalid(fluid.values), levels=levels, colors="white", linewidths=0.9)
    where = ", ".join(f"{level:.4g}" for level in levels[:_NAMED]) + (", ..." if len(levels) > _NAMED else "")
    axes.plot([], [], color="white", linewidth=0.9, label=f"fluid limit: {where}")
    legend = axes.legend(loc="upper right", fontsize=7, frameon=True, facecolor="#555555", edgecolor="none")
    for text in legend.get_texts():
        text.set_color("white")


def _draw_lines(axes: Axes, panel: Panel) -> None:
    x, log = _positions(panel.x)
    order = np.argsort(x)
    axes.plot(x[order], panel.values[order], color=BLUE, marker="o", markersize=3)
    if panel.widths is not None:
        half = np.nan_to_num(panel.widths[order])
        axes.fill_between(x[order], panel.values[order] - half, panel.values[order] + half, color=BLUE, alpha=0.25)
    if panel.fluid is not None:
        axes.plot(
            _positions(panel.fluid.x)[0], panel.fluid.values, color=ORANGE, linestyle="--", label="fluid limit"
        )
        axes.legend(loc="best", fontsize=8)
    _ticks(axes, "x", panel.x, log)


def _positions(given: Sequence[Any]) -> tuple[Numbers, bool]:
    """Return where the values are on an axis, and whether that is logarithmic. Names are 0, 1, 2, ..."""
    if not _is_numeric(given):
        return np.arange(len(given), dtype=float), False
    numbers = np.array([float(value) for value in given])
    return numbers, is_logarithmic(float(numbers.min()), float(numbers.max()))


def is_logarithmic(low: float, high: float) -> bool:
    """Return True if an axis with these ends is logarithmic."""
    return low > 0 and high / low > _LOG_RATIO


def _is_numeric(given: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in given)


def _edges(centers: Numbers, log: bool) -> Numbers:
    """Return the borders of the cells around sorted centers."""
    at = np.log(centers) if log else centers
    if len(at) == 1:
        edges = np.array([at[0] - 0.5, at[0] + 0.5])
    else:
        middle = (at[1:] + at[:-1]) / 2
        edges = np.concatenate(([2 * at[0] - middle[0]], middle, [2 * at[-1] - middle[-1]]))
    return np.exp(edges) if log else edges


def _ticks(axes: Axes, which: str, given: Sequence[Any], log: bool) -> None:
    axis = axes.xaxis if which == "x" else axes.yaxis
    if log:
        (axes.set_xscale if which == "x" else axes.set_yscale)("log")
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    elif not _is_numeric(given):
        step = math.ceil(len(given) / _TICKS)
        axis.set_ticks(range(0, len(given), step), [str(value) for value in given[::step]], color=INK)
