"""Policies on the same sessions over time: the fullest server, and the spread over servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from evenly.plots.style import COLORS, DASHES, INK, styled

_UNITS = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))
_SPANS = 3.0  # of a unit that the picture covers at least

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """One policy: where the parts of the replay end, and the averages over each."""

    label: str
    times: FloatArray
    fullest: FloatArray
    spread: FloatArray
    mean: FloatArray


def time_unit(seconds: float) -> tuple[float, str]:
    """Return the unit for an axis of this length."""
    return next((unit for unit in _UNITS if seconds >= _SPANS * unit[0]), _UNITS[-1])


@dataclass(frozen=True, kw_only=True)
class Span:
    """Where the warm-up and the replay end, in seconds since the log's beginning, and perhaps a limit."""

    warmup: float
    until: float
    limit: int | None


def draw_fullest(axes: Axes, lines: Sequence[Line], span: Span) -> Axes:
    """Draw the sessions on the fullest server, and the mean over servers, with the limit dotted."""
    _draw(axes, lines, span, [line.fullest for line in lines])
    unit, name = time_unit(span.until)
    mean = lines[-1].mean
    axes.plot(lines[-1].times / unit, mean, color=INK, linewidth=0.9, label="mean over servers")
    if span.limit is not None:
        axes.axhline(span.limit, color=INK, linewidth=0.9, linestyle=":")
        place = (1, span.limit)
        axes.annotate(f"limit {span.limit}", place, xycoords=("axes fraction", "data"), ha="right", va="bottom")
    axes.set_ylabel("sessions on the\nfullest server")
    axes.set_xlabel(f"{name} since the log's beginning")
    axes.legend(loc="best", ncols=2, fontsize=9, frameon=False)
    return axes


@styled
def draw_timeline(figure: Figure, lines: Sequence[Line], span: Span, *, title: str) -> Figure:
    """Draw the fullest server and the spread, one above the other."""
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    draw_fullest(top, lines, span)
    _draw(bottom, lines, span, [line.spread for line in lines])
    bottom.set_ylabel("spread over servers")
    bottom.set_xlabel(top.get_xlabel())
    top.set_xlabel("")
    figure.suptitle(title, fontsize=10)
    return figure


def _draw(axes: Axes, lines: Sequence[Line], span: Span, values: Sequence[FloatArray]) -> None:
    """Draw one line per policy, with the warm-up shaded."""
    unit, _ = time_unit(span.until)
    for place, (line, heights) in enumerate(zip(lines, values, strict=True)):
        axes.plot(
            line.times / unit,
            heights,
            label=line.label,
            color=COLORS[place % len(COLORS)],
            linestyle=DASHES[place % len(DASHES)],
            linewidth=1.3,
        )
    axes.axvspan(0, span.warmup / unit, color="#000000", alpha=0.05, linewidth=0)
    axes.set_ylim(bottom=0)
