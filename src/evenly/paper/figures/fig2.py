"""Where the load settles when the threshold is too large or too small: theory, and simulated systems.

Paper: Fig. 2, Exs 1 and 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MultipleLocator

from evenly.paper.experiments.lab import Lab
from evenly.paper.figure import PaperFigure
from evenly.plots.style import COLORS, DASHES, INK, MARKERS
from evenly.sim import Result, Scenario, compare
from evenly.theory.balance import FloatArray, balanced_occupancy, exactly
from evenly.theory.equilibrium import equilibrium

LOAD = 5.5
LARGE, SMALL = (6, 7, 8), (2, 3, 4)  # the paper does not print which ones it draws
REPLICATIONS = 16
WARMUP = 7.0  # the start is forgotten at rate 1: exp(-7) of it is left
_PANELS = ((LARGE, "thresholds above 5: too large", (0, 9)), (SMALL, "thresholds below 5: too small", (2, 13)))


class _Size(TypedDict):
    pools: int
    horizon: float


def _size(lab: Lab) -> _Size:
    return lab.pick(_Size(pools=5000, horizon=14.0), _Size(pools=800, horizon=10.0))


def settled(lab: Lab, load: float, thresholds: Sequence[int]) -> list[Result]:
    """Long runs of a large system with each of these fixed thresholds, from a balanced state."""
    scenarios = [
        Scenario(load=load, threshold=threshold, initial=load, warmup=WARMUP, **_size(lab))
        for threshold in thresholds
    ]
    return compare(scenarios, replications=REPLICATIONS, seed=lab.seed, steady_state=True)


def simulated(lab: Lab) -> dict[int, Result]:
    """The runs behind the figure, by threshold."""
    thresholds = (*LARGE, *SMALL)
    return lab.once("fig2", lambda: dict(zip(thresholds, settled(lab, LOAD, thresholds), strict=True)))


def occupancy_rows(result: Result, levels: int = 0) -> FloatArray:
    """Time-average share of pools with at least i tasks: a row a replication, at least `levels` columns."""
    size = max([levels, *(sample.at_least.size for sample in result.samples)])
    rows = [np.pad(sample.at_least / sample.time, (0, size - sample.at_least.size)) for sample in result.samples]
    return np.asarray(rows) / result.scenario.pools


def bias(result: Result) -> float:
    """How far the mean over finitely many pools may be from the limit: terms of order 1 / pools, with room."""
    return 5 / result.scenario.pools


def _caption(lab: Lab) -> str:
    size = _size(lab)
    return (
        f"Share of pools with exactly i tasks at load {LOAD:g} in the long run. Lines: the equilibrium solutions "
        "of Examples 1 (left) and 2 (right) for infinitely many pools. Markers: time averages of simulated "
        f"systems, {size['pools']:,} pools from {LOAD:g} tasks per pool, time {WARMUP:g} to {size['horizon']:g}, "
        f"{REPLICATIONS} replications, seed {lab.seed}. Grey bars: the balanced load q*, half the pools with 5 "
        "and half with 6 tasks. The paper does not say which thresholds its plots show; 6, 7, 8 and 2, 3, 4 are "
        "our choice."
    )


def _draw(lab: Lab, figure: Figure) -> None:
    runs = simulated(lab)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (thresholds, title, span) in zip(panels, _PANELS, strict=True):
        _draw_panel(axes, [(threshold, runs[threshold]) for threshold in thresholds], span)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("tasks in a pool")
    panels[0].set_ylabel("share of pools")
    figure.legend(handles=_key(), loc="outside lower center", ncols=3, fontsize=9)


def _draw_panel(axes: Axes, runs: Sequence[tuple[int, Result]], span: tuple[int, int]) -> None:
    levels = np.arange(span[0], span[1] + 1)
    axes.bar(levels, exactly(balanced_occupancy(LOAD, span[1] + 2))[levels], 0.8, color="#e4e4e4")
    for place, (threshold, result) in enumerate(runs):
        theory = np.pad(equilibrium(LOAD, threshold).pools_with_exactly, (0, span[1] + 1))[levels]
        found = exactly(occupancy_rows(result, span[1] + 2).mean(axis=0))[levels]
        color, dash, mark = COLORS[place], DASHES[place], MARKERS[place]
        axes.plot(levels, theory, color=color, linestyle=dash)
        axes.plot(levels, found, mark, color=color, markerfacecolor="none", markersize=7)
        label = f"threshold {threshold}"  # of the line and the marker together
        axes.plot([], [], color=color, linestyle=dash, marker=mark, markerfacecolor="none", label=label)
    axes.legend(fontsize=9)
    axes.set_xlim(span[0] - 0.6, span[1] + 0.6)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MultipleLocator(1))
    axes.grid(visible=False, axis="x")


def _key() -> list[Line2D]:
    return [
        Line2D([], [], color=INK, label="theory"),
        Line2D([], [], color=INK, marker="o", markerfacecolor="none", linestyle="none", label="simulated"),
        Line2D([], [], color="#e4e4e4", linewidth=8, label="balanced, q*"),
    ]


FIGURE = PaperFigure(
    name="fig2",
    title="Equilibria of thresholds that are not optimal",
    size=(7.0, 4.2),
    caption=_caption,
    draw=_draw,
)
