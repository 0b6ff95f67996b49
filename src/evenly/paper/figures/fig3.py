"""The learned threshold over time in a small and a larger system.

Paper: Sec. 5.1, Fig. 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evenly.paper.experiments.inputs import as_tuple
from evenly.paper.experiments.lab import Lab
from evenly.paper.experiments.learned_threshold import (
    REPLICATIONS,
    WARMUP,
    LearnedThreshold,
    in_the_long_run,
    of_paper,
    shown_run,
    threshold_steps,
)
from evenly.paper.figures.figure import PaperFigure
from evenly.paper.figures.ticks import whole_ticks
from evenly.plots.style import GREEN, INK, ORANGE
from evenly.theory.balance import optimal_thresholds
from evenly.theory.tuning import Alpha

_NAMED = 5e-4  # the figure prints shares of time from this one on
_MAX_PANELS = 6


def oscillation(
    *,
    pools: int | Sequence[int] = (100, 400),
    load: float = 2.9,
    alpha: Alpha = "0.97",
    horizon: float = 25.0,
    long_run: float | None = None,
    seed: int = 1,
    figure: Figure | None = None,
) -> Figure:
    """Draw the learned threshold over time, one panel per number of pools, with its shares of time.

    The shares are measured over `long_run` mean task times (default: 60,000, or fewer if these would take more
    than 1.5e8 events). All systems start balanced and at threshold floor(load). There can be up to 6 panels.

    Paper: Fig. 3.
    """
    sizes = as_tuple("pools", pools, _MAX_PANELS)
    setup = LearnedThreshold(pools=sizes, load=load, alpha=alpha, horizon=horizon, long_run=long_run)
    return FIGURE.plot(setup, seed=seed, figure=figure, size=(6.8, 1.1 + 1.6 * len(sizes)))


def _draw(lab: Lab, setup: LearnedThreshold, figure: Figure) -> None:
    panels = figure.subplots(len(setup.pools), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    ranges = []
    for axes, pools in zip(panels, setup.pools, strict=True):
        ranges.append(_draw_run(axes, lab, setup, pools))
        axes.set_title(f"n = {pools} pools", fontsize=10, loc="left")
        axes.set_ylabel("tasks")
    lows, highs = zip(*ranges, strict=True)
    best = optimal_thresholds(setup.load)
    low, high = max(min(*lows, floor(setup.load) - 1), 0), max(*highs, floor(setup.load) + 1, *best)
    panels[0].set_ylim(low - 0.3, high + 0.7)
    whole_ticks(panels[0], low, high)
    panels[-1].set_xlabel("time, in mean task times")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9)


def _draw_run(axes: Axes, lab: Lab, setup: LearnedThreshold, pools: int) -> tuple[int, int]:
    """Draw one system, and return the range of the values drawn."""
    run = shown_run(lab, setup, pools)
    best = optimal_thresholds(setup.load)
    name = "floor(load), the optimum" if len(best) == 1 else f"the optima, {' and '.join(map(str, best))}"
    for threshold in best:
        optimum = axes.axhline(threshold, color=INK, linewidth=1, linestyle="--", label=name)
        optimum.set_zorder(3)  # in front of the threshold
        name = "_"  # one entry in the legend for all of them
    per_pool = run.occupancy[:, 1:].sum(axis=1)
    axes.plot(run.times, per_pool, color=ORANGE, linewidth=1.2, linestyle=":", label="tasks per pool")
    times, values = threshold_steps(run)
    axes.plot(times, values, color=GREEN, linewidth=1.2, drawstyle="steps-post", label="threshold")
    shares = in_the_long_run(lab, setup, pools).threshold_share
    named = {threshold: share for threshold, share in shares.items() if share >= _NAMED}
    for threshold, share in named.items():
        axes.annotate(
            f"{100 * share:.1f} %",
            (1.01, threshold),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=9,
            color=GREEN,
        )
    axes.set_xlim(0, setup.horizon)
    drawn = [*values.tolist(), *named, floor(per_pool.min()), ceil(per_pool.max() - 0.7)]
    return min(drawn), max(drawn)


def _caption(lab: Lab, setup: LearnedThreshold) -> str:
    top, *others = setup.pools
    sizes = f"{top} pools"
    if others:
        sizes += " (top)" + "".join(f", {size}" for size in others[:-1]) + f" and {others[-1]} (bottom)"
    start = {1: "It starts", 2: "Both start"}.get(len(setup.pools), "All start")
    times = dict.fromkeys(f"{in_the_long_run(lab, setup, pools).window.time:,.0f}" for pools in setup.pools)
    best = optimal_thresholds(setup.load)
    optima = "" if len(best) == 1 else f"Both {' and '.join(map(str, best))} are optimal. "
    return (
        f"The learned threshold over time for load {setup.load} and alpha {setup.alpha}, with {sizes}. {start} at "
        f"threshold {floor(setup.load)} with {setup.load} tasks per pool, spread evenly; "
        f"time 0 to {setup.horizon:g}, one run each, seed {lab.seed}. It rises when the tasks per pool approach "
        f"{floor(setup.load) + 1}. {optima}The "
        "percentages on the right are the shares of time at each threshold in the long run, from simulations of "
        f"{' and '.join(times)} mean task times in {REPLICATIONS} independent parts, each after a warm-up of "
        f"{WARMUP:g}."
    )


FIGURE = PaperFigure(
    name="fig3",
    title="The threshold fluctuates with few pools, and less with more",
    size=(6.8, 4.3),
    of_paper=of_paper,
    caption=_caption,
    draw=_draw,
)
