"""A diffusion limit: paths from the balanced state, with the stationary density beside them.

Paper: Thms 3 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from evenly.plots.style import BLUE, COLORS, INK, house_style

_BAND = 1.96  # standard deviations that cover 95 % of a normal distribution
_MAX_PATHS = 8  # more cannot be told apart

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Fluctuation:
    """One coordinate of a limit: paths, what is known of it at each time, and its stationary density.

    `deviation`, the standard deviation of a normal distribution at each time, is drawn as a band. The stationary
    `mean` and `quantile` are drawn as lines. A density without a bound is drawn up to `widest`.
    """

    label: str
    paths: Floats  # one row per path
    limits: tuple[float, float]
    values: Floats
    density: Floats
    deviation: Floats | None = None
    mean: float | None = None
    quantile: float | None = None
    widest: float | None = None


def draw_fluctuation(axes: Axes, times: Floats, shown: Fluctuation) -> None:
    """Draw the paths of one coordinate, with its band or its stationary mean and quantile."""
    if shown.deviation is not None:
        reach = _BAND * shown.deviation
        axes.fill_between(times, -reach, reach, color=BLUE, alpha=0.15, linewidth=0, label="95 % at each time")
    _draw_paths(axes, times, shown.paths)
    if shown.mean is not None and shown.quantile is not None:
        axes.axhline(shown.mean, color=BLUE, linewidth=1, linestyle=":", label="stationary mean")
        axes.axhline(shown.quantile, color=BLUE, linewidth=1, linestyle="--", label="stationary 95 % quantile")
    axes.set_ylabel(shown.label)
    axes.set_ylim(*shown.limits)


def finish_fluctuation(axes: Axes) -> None:
    """Label the time axis and add the legend."""
    axes.set_xlabel("time, in mean task times")
    axes.legend(loc="upper left", fontsize=9)


def draw_panels(figure: Figure, times: Floats, rows: Sequence[Fluctuation], title: str) -> None:
    """Draw one row per coordinate: its paths, and its density beside them."""
    with house_style():
        panels = figure.subplots(len(rows), 2, sharey="row", sharex="col", width_ratios=[4, 1], squeeze=False)
        for (axes, law), shown in zip(panels, rows, strict=True):
            draw_fluctuation(axes, times, shown)
            _draw_density(law, shown.values, shown.density)
        for law, shown in zip(panels[:, 1], rows, strict=True):
            if shown.widest is not None:
                law.set_xlim(0, shown.widest)
        panels[0, 0].legend(loc="upper left", ncols=len(rows), fontsize=9)
        panels[-1, 0].set_xlabel("time, in mean task times")
        panels[-1, 1].set_xlabel("stationary\ndensity")
        figure.suptitle(title, fontsize=10)
        figure.align_ylabels()
        figure.set_layout_engine("constrained", wspace=0.08)


def _draw_paths(axes: Axes, times: Floats, paths: Floats) -> None:
    """Draw the first few paths. One of them stands for all in the legend."""
    shown = paths[:_MAX_PATHS]
    label = "a path drawn at random" if len(paths) == 1 else f"{len(shown)} paths drawn at random"
    for place, (row, color) in enumerate(zip(shown, COLORS, strict=False)):
        axes.plot(times, row, color=color, linewidth=0.8, label=None if place else label)
    axes.set_xlim(times[0], times[-1])


def _draw_density(axes: Axes, values: Floats, density: Floats) -> None:
    axes.plot(density, values, color=INK, linewidth=1.2)
    axes.fill_betweenx(values, 0, density, color=BLUE, alpha=0.15, linewidth=0)
    axes.set_xlim(left=0)
