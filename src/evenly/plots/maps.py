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
from matplotlib.ticker import MaxNLocator, NullLocator
from numpy.typing import NDArray

from evenly.plots.style import BLUE, GREEN, INK, MARKERS, ORANGE, PURPLE, RED, SKY, styled

Numbers = NDArray[np.float64]

FINE = 5  # values along both axes from which on a map has places in proportion, and contours
_COLORS = (BLUE, RED, GREEN, ORANGE, PURPLE, SKY, INK, "#999999")
MOST_LINES = len(_COLORS)
_LOG_RATIO = 30.0  # between the ends of an axis that is then logarithmic
_DWARF = 30.0  # times the median: a value that makes a scale logarithmic
_DECADES = 1e5  # the most that a logarithmic scale shows
_CERTAIN = 4.0  # half-widths that values differ by at least, if more than chance makes them differ
_FLAT = 1e-9  # steps of a prediction that are rounding errors
_LEVELS = 5  # contour lines, about
_STEPS = 12  # of a prediction in whole numbers
_NAMED = 6  # contour lines in the legend
_APART = 0.09  # of an axis that lies between two ticks
_CELLS = 12  # along both axes, up to which there is room for numbers
_DIGITS = 6  # of a tick
_LONG = 40  # letters of all ticks together, which overlap then
_DARK = 0.6  # of the colors, up to which text is white


@dataclass(frozen=True)
class Panel:
    """What one panel shows: a map, or a line per row. `values` and `widths` have a row per y and a column per x.

    `y` has the names of the lines, or the places of the rows of a map.
    """

    title: str
    value: str
    x: Sequence[Any]
    x_label: str
    y: Sequence[Any]
    y_label: str
    values: Numbers
    widths: Numbers | None
    scale: Scale
    fluid: Fluid | None
    is_map: bool


@dataclass(frozen=True)
class Scale:
    """The range of the colors, which all panels of a value share.

    It is logarithmic if a few values dwarf all others. `certain` says that more than chance makes them differ; if
    not, the range is that of chance, so that noise looks plain.
    """

    low: float
    high: float
    log: bool
    certain: bool

    @classmethod
    def of(cls, values: Numbers, widths: Numbers) -> Scale:
        """Return the scale of some values with the half-widths of their intervals; NaN is left out."""
        known = values[np.isfinite(values)]
        positive = known[known > 0]
        if not len(known):
            return cls(0.0, 1.0, log=False, certain=False)
        low, high = float(known.min()), float(known.max())
        told = widths[np.isfinite(widths)]
        chance = _CERTAIN * float(np.median(told)) if len(told) else 0.0
        certain = len(told) > 0 and high - low > chance
        if low >= 0 and len(positive) and high > _DWARF * float(np.median(positive)):
            return cls(max(float(positive.min()), high / _DECADES), high, log=True, certain=certain)
        more = max(chance - (high - low), 0.0) / 2
        return cls(low - more, high + more, log=False, certain=certain)


@dataclass(frozen=True)
class Fluid:
    """A prediction, with a row per y and a column per x: it may be finer than the values, which are costly."""

    x: Sequence[Any]
    y: Sequence[Any]
    values: Numbers


def size(panels: int, rows: int) -> tuple[float, float]:
    """Return the width and height in inches of a figure with this many panels, in rows of one value each."""
    across = _columns(panels, rows)
    down = math.ceil(panels / across)
    return 1.0 + 4.6 * across, 0.6 + 3.4 * down


def _columns(panels: int, rows: int) -> int:
    if panels > rows:
        return min(panels // rows, 4)
    return 2 if panels == 4 else min(panels, 3)


@styled
def draw_panels(figure: Figure, panels: Sequence[Panel], *, rows: int) -> Figure:
    """Draw the panels on the figure, `rows` rows of them or as many as fit."""
    across = _columns(len(panels), rows)
    down = math.ceil(len(panels) / across)
    for place, panel in enumerate(panels):
        draw_panel(figure.add_subplot(down, across, place + 1), panel)
    return figure


def draw_panel(axes: Axes, panel: Panel) -> Axes:
    """Draw a panel on the axes."""
    (_draw_map if panel.is_map else _draw_lines)(axes, panel)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label if panel.is_map else panel.value)
    axes.set_title(panel.title, fontsize=10, loc="left")
    return axes


def _draw_map(axes: Axes, panel: Panel) -> None:
    """Draw a heat map: with contours of the prediction if the grid is fine, and with numbers if they fit."""
    fine = min(len(panel.x), len(panel.y)) >= FINE
    x, log_x = _positions(panel.x) if fine else (np.arange(len(panel.x), dtype=float), False)
    y, log_y = _positions(panel.y) if fine else (np.arange(len(panel.y), dtype=float), False)
    order_x, order_y = np.argsort(x), np.argsort(y)
    scale = panel.scale
    values = np.ma.masked_invalid(panel.values[np.ix_(order_y, order_x)])
    norm = LogNorm(scale.low, scale.high, clip=True) if scale.log else Normalize(scale.low, scale.high)
    edges = _edges(x[order_x], log_x), _edges(y[order_y], log_y)
    mesh = axes.pcolormesh(*edges, values, cmap="viridis", norm=norm, rasterized=True)
    axes.set_facecolor("#bbbbbb")  # points that are missing
    axes.grid(False)
    axes.figure.colorbar(mesh, ax=axes, pad=0.02)
    _ticks(axes, "x", panel.x, x, log_x)
    _ticks(axes, "y", panel.y, y, log_y)
    if fine and scale.certain and panel.fluid is not None and _is_resolved(panel.fluid.values, values.shape):
        _draw_contours(axes, panel.fluid, scale.low, scale.high)
    elif max(values.shape) <= _CELLS:
        _write_numbers(axes, x[order_x], y[order_y], values, norm)


def _is_resolved(prediction: Numbers, cells: tuple[int, ...]) -> bool:
    """Return True if the prediction turns at most once in `FINE` cells; else its contours would be hatching."""
    for lines, count in zip((prediction.T, prediction), cells, strict=True):
        for line in lines:
            steps = np.diff(line[~np.isnan(line)])
            signs = np.sign(steps[np.abs(steps) > _FLAT])
            if FINE * np.count_nonzero(np.diff(signs)) > count:
                return False
    return True


def _write_numbers(axes: Axes, x: Numbers, y: Numbers, values: Any, norm: Normalize) -> None:  # noqa: ANN401
    for row, column in zip(*np.nonzero(~np.ma.getmaskarray(values)), strict=True):
        value = float(values[row, column])
        axes.text(
            x[column],
            y[row],
            f"{value:.3g}",
            ha="center",
            va="center",
            fontsize=8,
            color="white" if float(norm(value)) < _DARK else INK,
        )


def _draw_contours(axes: Axes, fluid: Fluid, low: float, high: float) -> None:
    """Draw lines of equal prediction, at round numbers in the range of the colors."""
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
    """Draw a line with error bars per row, and its prediction as a dashed line of the same color.

    Over names, there are points instead of lines, and short bars for predictions.
    """
    x, log = _positions(panel.x)
    order = np.argsort(x)
    joined = _is_numeric(panel.x)  # there is nothing between two names
    predicted: Any = {"linestyle": "--"} if joined else {"linestyle": "none", "marker": "_", "markersize": 14}
    shown: list[Any] = []
    for place, name in enumerate(panel.y):
        half = None if panel.widths is None else panel.widths[place][order]
        color, marker = _COLORS[place % len(_COLORS)], MARKERS[place % len(MARKERS)]
        bars = axes.errorbar(
            x[order],
            panel.values[place][order],
            yerr=None if half is None or np.isnan(half).all() else half,
            color=color,
            marker=marker,
            markersize=4,
            linestyle="-" if joined else "none",
            linewidth=1.4,
            elinewidth=1.0,
            capsize=2.5,
            label=name,
        )
        shown += [bars] if name else []
        if panel.fluid is not None:
            axes.plot(_positions(panel.fluid.x)[0], panel.fluid.values[place], color=color, **predicted)
    if panel.fluid is not None:
        shown += axes.plot([], [], color=INK, label="fluid limit", **predicted)
    if shown:  # beside the lines, whose error bars it would hide
        axes.legend(handles=shown, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
    _ticks(axes, "x", panel.x, x, log)


def _positions(given: Sequence[Any]) -> tuple[Numbers, bool]:
    """Return where the values are on an axis, and whether that is logarithmic. Names are 0, 1, 2, ..."""
    if not _is_numeric(given):
        return np.arange(len(given), dtype=float), False
    numbers = np.array([float(value) for value in given])
    return numbers, is_logarithmic(float(numbers.min()), float(numbers.max()))


def is_logarithmic(low: float, high: float) -> bool:
    """Return True if an axis with these ends is logarithmic."""
    return low > 0 and high / low > _LOG_RATIO


def _short(value: Any) -> str:  # noqa: ANN401
    """Return a value for a tick: a long number to three digits."""
    if not _is_numeric([value]):
        return str(value)
    text = f"{value:g}"
    return text if len(text) <= _DIGITS else f"{value:.3g}"


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


def _ticks(axes: Axes, which: str, given: Sequence[Any], places: Numbers, log: bool) -> None:
    """Put ticks at the values of the sweep: at all of them, or where there is room."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    if log:
        (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    along = np.log(places) if log else places
    least = _APART * float(along.max() - along.min())
    chosen: list[int] = []
    for place in np.argsort(along).tolist():
        if not chosen or along[place] - along[chosen[-1]] >= least:
            chosen.append(place)
    names = [_short(given[place]) for place in chosen]
    axis.set_ticks(places[chosen], names, color=INK)
    if which == "x" and sum(map(len, names)) > _LONG:
        for label in axes.get_xticklabels():
            label.set(rotation=25, ha="right")
    axis.set_minor_locator(NullLocator())
