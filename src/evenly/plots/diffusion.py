"""A diffusion limit: paths from the balanced state, and beside them the law of the long run.

Paper: Thms 3 and 4.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evenly.plots.style import BLUE, COLORS, INK, picture
from evenly.theory.balance import FloatArray
from evenly.theory.diffusion.whole_law import stationary_summary

_BAND = 1.96  # deviations that hold 95 % of a normal law
_MOST_PATHS = 8  # that can be told apart


def draw(facts: dict[str, Any], path: Path) -> None:
    """Draw what `evenly diffusion --json` prints."""
    if facts["limit"] == "reflected":
        _draw_reflected(facts, path)
    else:
        _draw_smooth(facts, path)


def _draw_smooth(facts: dict[str, Any], path: Path) -> None:
    load, low = facts["load"], facts["threshold"]
    times, deviation = np.array(facts["times"]), np.sqrt(facts["variance"])
    with picture(path, 8.0, 3.8) as figure:
        axes, law = figure.subplots(1, 2, sharey=True, width_ratios=[4, 1])
        axes.fill_between(
            times,
            -_BAND * deviation,
            _BAND * deviation,
            color=BLUE,
            alpha=0.15,
            linewidth=0,
            label="95 % at each time",
        )
        _draw_paths(axes, times, np.array(facts["sample_paths"]["total"]))
        axes.set_xlabel("time, in mean task times")
        axes.set_ylabel(f"pools with {low + 1} or more tasks,\nless {load - low:.4g} n, in units of √n")
        axes.legend(loc="upper left", fontsize=9)
        reach = 4 * np.sqrt(load)
        values = np.linspace(-reach, reach, 401)
        _draw_density(law, values, np.exp(-(values**2) / (2 * load)) / np.sqrt(2 * np.pi * load))
        axes.set_ylim(-reach, reach)
        _finish(figure, facts)


def _draw_reflected(facts: dict[str, Any], path: Path) -> None:
    load, times = facts["threshold"], np.array(facts["times"])
    summary = stationary_summary(load)
    marginals = {"below": summary.below, "above": summary.above}
    labels = {"below": f"tasks missing below {load}", "above": f"pools with more than {load}"}
    with picture(path, 8.0, 5.6) as figure:
        rows = figure.subplots(2, 2, sharey="row", sharex="col", width_ratios=[4, 1])
        for (axes, law), (name, marginal) in zip(rows, marginals.items(), strict=True):
            _draw_paths(axes, times, np.array(facts["sample_paths"][name]))
            axes.axhline(marginal.mean, color=BLUE, linewidth=1, linestyle=":", label="mean of the long run")
            axes.axhline(
                marginal.quantile(0.95), color=BLUE, linewidth=1, linestyle="--", label="its 95 % quantile"
            )
            axes.set_ylabel(f"{labels[name]},\nin units of √n")
            values = np.geomspace(1e-4, 1.0, 400) * marginal.values[-1]
            _draw_density(law, values, marginal.density(values))
            axes.set_ylim(0, 4 * np.sqrt(load))
        # Near 0 the density of `above` has no bound, and with a great load that of `below` is high.
        rows[0, 1].set_xlim(0, min(1.05 * float(summary.below.density(0.0)), 2.5 / np.sqrt(load)))
        rows[0, 0].legend(loc="upper left", ncols=2, fontsize=9)
        rows[1, 0].set_xlabel("time, in mean task times")
        rows[0, 1].set_xlabel("")
        _finish(figure, facts)


def _draw_paths(axes: Axes, times: FloatArray, paths: FloatArray) -> None:
    """The first few paths, of which one stands for all in the legend."""
    shown = paths[:_MOST_PATHS]
    label = "a path drawn at random" if len(paths) == 1 else f"{len(shown)} paths drawn at random"
    for place, (row, color) in enumerate(zip(shown, COLORS, strict=False)):
        axes.plot(times, row, color=color, linewidth=0.8, label=None if place else label)
    axes.set_xlim(times[0], times[-1])


def _draw_density(axes: Axes, values: FloatArray, density: FloatArray) -> None:
    axes.plot(density, values, color=INK, linewidth=1.2)
    axes.fill_betweenx(values, 0, density, color=BLUE, alpha=0.15, linewidth=0)
    axes.set_xlim(left=0)
    axes.set_xlabel("density,\nlong run")


def _finish(figure: Figure, facts: dict[str, Any]) -> None:
    name = "reflected limit" if facts["limit"] == "reflected" else "Ornstein-Uhlenbeck limit"
    figure.suptitle(f"load {facts['load']:.12g}, n pools: {name}", fontsize=10)
    figure.align_ylabels()
    figure.set_layout_engine("constrained", wspace=0.08)
