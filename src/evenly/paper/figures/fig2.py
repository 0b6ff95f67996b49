"""The long-run load when the threshold is too large or too small, in theory and simulated.

Paper: Fig. 2, Exs 1 and 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, MultipleLocator

from evenly.errors import InputError
from evenly.paper.experiments.inputs import as_tuple
from evenly.paper.experiments.lab import Lab
from evenly.paper.experiments.wrong_threshold import (
    LARGE,
    SMALL,
    WrongThresholds,
    nearest_wrong,
    occupancy_rows,
    of_paper,
    simulated,
)
from evenly.paper.figures.figure import PaperFigure
from evenly.plots.style import COLORS, DASHES, INK, MARKERS
from evenly.theory.balance import FloatArray, balanced_occupancy, exactly, optimal_thresholds
from evenly.theory.equilibrium import predict_equilibrium

_VISIBLE = 1e-3  # a share of pools
_MAX_TICKS = 14
_MOST = 2 * len(COLORS)  # thresholds, half of them in each panel
_GREY = "#e4e4e4"


def equilibria(
    *,
    pools: int = 5000,
    load: float = 5.5,
    thresholds: int | Sequence[int] | None = None,
    warmup: float = 7.0,
    horizon: float = 14.0,
    replications: int = 16,
    seed: int = 1,
    figure: Figure | None = None,
) -> Figure:
    """Draw the equilibria of fixed thresholds that are too large or too small, in theory and simulated.

    The default `thresholds` are the next three above the optimum and up to three below it. Optimal thresholds are
    rejected, as they balance the load. A panel without thresholds is left out.

    Paper: Fig. 2, Exs 1 and 2.
    """
    setup = WrongThresholds(
        pools=pools,
        load=load,
        thresholds=nearest_wrong(load) if thresholds is None else as_tuple("thresholds", thresholds, _MOST),
        warmup=warmup,
        horizon=horizon,
        replications=replications,
    )
    if max(len(setup.large), len(setup.small)) > len(COLORS):
        raise InputError(f"thresholds must be at most {len(COLORS)} above the optimum and {len(COLORS)} below it.")
    return FIGURE.plot(setup, seed=seed, figure=figure)


def _caption(lab: Lab, setup: WrongThresholds) -> str:
    load = f"{setup.load:g}"
    sides = [name for name, used in (("1", setup.large), ("2", setup.small)) if used]
    examples = "Examples 1 (left) and 2 (right)" if len(sides) == 2 else f"Example {sides[0]}"
    ours = (
        " The paper does not say which thresholds its figure shows; 6, 7, 8 and 2, 3, 4 are our choice."
        if setup.thresholds == (*LARGE, *SMALL)
        else ""
    )
    return (
        f"Share of pools with exactly i tasks at load {load} in the long run. Lines: the equilibrium solutions "
        f"of {examples} for infinitely many pools. Markers: time averages of simulated "
        f"systems, {setup.pools:,} pools from {load} tasks per pool, time {setup.warmup:g} to {setup.horizon:g}, "
        f"{setup.replications} replications, seed {lab.seed}. Grey bars: the balanced load q*, "
        f"{_balance(setup.load)} tasks.{ours}"
    )


def _balance(load: float) -> str:
    """Describe the balanced load: the share of pools with each number of tasks."""
    low = floor(load)
    if load == low:
        return f"all pools with {low}"
    if load - low == 0.5:
        return f"half the pools with {low} and half with {low + 1}"
    return f"{low + 1 - load:.3g} of the pools with {low} and {load - low:.3g} with {low + 1}"


def _draw(lab: Lab, setup: WrongThresholds, figure: Figure) -> None:
    runs = simulated(lab, setup)
    best = optimal_thresholds(setup.load)
    sides = (
        (setup.large, f"thresholds above {best[-1]}: too large"),
        (setup.small, f"thresholds below {best[0]}: too small"),
    )
    used = [(thresholds, title) for thresholds, title in sides if thresholds]
    panels = figure.subplots(1, len(used), sharey=True, squeeze=False)[0]
    for axes, (thresholds, title) in zip(panels, used, strict=True):
        span = _span(setup.load, thresholds)
        # A time average ends at the fullest pool seen; the picture needs all levels of the span.
        found = {
            threshold: exactly(occupancy_rows(runs[threshold], span[1] + 2).mean(axis=0))
            for threshold in thresholds
        }
        _draw_panel(axes, setup.load, found, span)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("tasks in a pool")
    highest = max(line.get_ydata().max() for axes in panels for line in axes.lines if line.get_ydata().size)
    if highest > panels[0].get_ylim()[1]:
        panels[0].set_ylim(top=1.05 * highest)
    panels[0].set_ylabel("share of pools")
    figure.legend(handles=_key(), loc="outside lower center", ncols=3, fontsize=9)


def _span(load: float, thresholds: Sequence[int]) -> tuple[int, int]:
    """Return the first and the last level to draw: those with a visible share of pools."""
    laws = [predict_equilibrium(load=load, threshold=threshold) for threshold in thresholds]
    seen = [np.flatnonzero(law.pools_with_exactly >= _VISIBLE) for law in laws]
    low, high = min(int(levels[0]) for levels in seen), max(int(levels[-1]) for levels in seen)
    if laws[0].kind == "small":
        return min(thresholds), max(high, ceil(load))
    return min(low, floor(load)), min(high, max(thresholds)) + 1


def _draw_panel(axes: Axes, load: float, found: dict[int, FloatArray], span: tuple[int, int]) -> None:
    levels = np.arange(span[0], span[1] + 1)
    axes.bar(levels, exactly(balanced_occupancy(load, span[1] + 2))[levels], 0.8, color=_GREY)
    for place, (threshold, shares) in enumerate(found.items()):
        theory = np.pad(predict_equilibrium(load=load, threshold=threshold).pools_with_exactly, (0, span[1] + 1))[
            levels
        ]
        color, dash, mark = COLORS[place], DASHES[place], MARKERS[place]
        axes.plot(levels, theory, color=color, linestyle=dash)
        axes.plot(levels, shares[levels], mark, color=color, markerfacecolor="none", markersize=7)
        label = f"threshold {threshold}"  # of the line and the marker together
        axes.plot([], [], color=color, linestyle=dash, marker=mark, markerfacecolor="none", label=label)
    axes.legend(fontsize=9)
    axes.set_xlim(span[0] - 0.6, span[1] + 0.6)
    axes.set_ylim(bottom=0)
    few = levels.size <= _MAX_TICKS
    axes.xaxis.set_major_locator(MultipleLocator(1) if few else MaxNLocator(integer=True))
    axes.grid(visible=False, axis="x")


def _key() -> list[Line2D]:
    return [
        Line2D([], [], color=INK, label="theory"),
        Line2D([], [], color=INK, marker="o", markerfacecolor="none", linestyle="none", label="simulated"),
        Line2D([], [], color=_GREY, linewidth=8, label="balanced, q*"),
    ]


FIGURE = PaperFigure(
    name="fig2",
    title="Equilibria of thresholds that are not optimal",
    size=(7.0, 4.2),
    of_paper=of_paper,
    caption=_caption,
    draw=_draw,
)
