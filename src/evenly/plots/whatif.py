"""Policies on the same sessions over time: the fullest server, and the spread over servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
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


@styled
def draw_timeline(
    figure: Figure, lines: Sequence[Line], *, begin: float, warmup: float, limit: int | None, title: str
) -> Figure:
    """Draw one line per policy, with the warm-up shaded and the limit dashed."""
    unit, name = time_unit(float(lines[0].times[-1]) - begin)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    for place, line in enumerate(lines):
        look = {"color": COLORS[place % len(COLORS)], "linestyle": DASHES[place % len(DASHES)], "linewidth": 1.3}
        for axes, values in ((top, line.fullest), (bottom, line.spread)):
            axes.plot((line.times - begin) / unit, values, label=line.label, **look)
    top.plot((lines[-1].times - begin) / unit, lines[-1].mean, color=INK, linewidth=0.9, label="mean over servers")
    if limit is not None:
        top.axhline(limit, color=INK, linewidth=0.9, linestyle=":")
        top.annotate(f"limit {limit}", (1, limit), xycoords=("axes fraction", "data"), ha="right", va="bottom")
    for axes in (top, bottom):
        axes.axvspan(0, (warmup - begin) / unit, color="#000000", alpha=0.05, linewidth=0)
        axes.set_ylim(bottom=0)
    top.set_ylabel("sessions on the\nfullest server")
    bottom.set_ylabel("spread over servers")
    bottom.set_xlabel(f"{name} since the log's beginning")
    top.legend(loc="best", ncols=2, fontsize=9)
    figure.suptitle(title, fontsize=10)
    return figure
