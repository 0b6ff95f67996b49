"""The learned threshold over time, in a small and a larger system: the runs behind Fig. 3, and the picture.

Paper: Sec. 5.1, Fig. 3.
"""

from __future__ import annotations

from math import floor

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from evenly.paper.experiments.lab import Lab
from evenly.paper.figure import PaperFigure
from evenly.plots.style import GREEN, INK, ORANGE
from evenly.sim import Result, Scenario, simulate
from evenly.theory.stability.predict import Stability, predict_stability

LOAD, ALPHA, SIZES = 2.9, "0.97", (100, 400)
SHOWN = 25.0  # time in the picture
POINTS = 201
WARMUP = 5.0  # from the balanced state; then the variance of the number of tasks is off by exp(-10)
REPLICATIONS = 32
_NAMED = 5e-4  # a share of the time that the picture tells


def scenario(
    pools: int, load: float, alpha: str, horizon: float, warmup: float = 0.0, initial: float | None = None
) -> Scenario:
    """Learning from the optimum, out of the balanced state unless said otherwise."""
    return Scenario(
        pools=pools,
        load=load,
        alpha=alpha,
        threshold=floor(load),
        initial=load if initial is None else initial,
        horizon=horizon,
        warmup=warmup,
    )


def long_run(lab: Lab, pools: int, load: float, alpha: str, time: float) -> Result:
    """The long run of a learned threshold, `time` in all, in independent parts."""

    def work() -> Result:
        run = scenario(pools, load, alpha, WARMUP + time / REPLICATIONS, WARMUP)
        seed = lab.seed_for(f"long run {pools} {load} {alpha}")
        return simulate(run, replications=REPLICATIONS, seed=seed, steady_state=True)

    return lab.once(f"long run {pools} {load} {alpha}", work)


def of_figure(lab: Lab, pools: int) -> Result:
    """The long run of one of the systems in the picture."""
    return long_run(lab, pools, LOAD, ALPHA, lab.pick(60_000.0, 4_800.0))


def prediction(lab: Lab, pools: int, load: float, alpha: str) -> Stability:
    """What the theory says of such a long run."""
    return lab.once(
        f"stability {pools} {load} {alpha}", lambda: predict_stability(pools=pools, load=load, alpha=alpha)
    )


def share_at(result: Result, *thresholds: int) -> NDArray[np.float64]:
    """Share of the time at these thresholds, in each independent part."""
    return np.array([window.threshold_time[list(thresholds)].sum() / window.time for window in result.samples])


def share_elsewhere(result: Result, *thresholds: int) -> NDArray[np.float64]:
    """Share of the time at any other threshold than these, in each independent part."""
    return np.array(
        [np.delete(window.threshold_time, list(thresholds)).sum() / window.time for window in result.samples]
    )


def share_above(result: Result, threshold: int) -> NDArray[np.float64]:
    """Share of the time above a threshold, in each independent part."""
    return np.array([window.threshold_time[threshold + 1 :].sum() / window.time for window in result.samples])


def excursion_rate(result: Result) -> NDArray[np.float64]:
    """Excursions in a mean task time, in each part; each is two changes where the threshold has two values."""
    return np.array([window.changes / (2 * window.time) for window in result.samples])


def ratio_samples(above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64]:
    """Samples whose mean is the ratio of the means, with the error that this has in first order."""
    ratio = above.mean() / below.mean()
    return np.asarray(ratio + (above - ratio * below) / below.mean())


def _shown_run(lab: Lab, pools: int) -> Result:
    run = scenario(pools, LOAD, ALPHA, SHOWN)
    return lab.once(f"fig3 {pools}", lambda: simulate(run, seed=lab.seed, points=POINTS))


def _draw(lab: Lab, figure: Figure) -> None:
    panels = figure.subplots(len(SIZES), 1, sharex=True, sharey=True)
    for axes, pools in zip(panels, SIZES, strict=True):
        _draw_run(axes, _shown_run(lab, pools), of_figure(lab, pools))
        axes.set_title(f"n = {pools} pools", fontsize=10, loc="left")
        axes.set_ylabel("tasks")
    panels[-1].set_xlabel("time, in mean task times")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9)


def _draw_run(axes: Axes, shown: Result, long: Result) -> None:
    run = shown.trajectories[0]
    optimum = axes.axhline(floor(LOAD), color=INK, linewidth=1, linestyle="--", label="floor(load), the optimum")
    optimum.set_zorder(3)  # in front of the threshold
    per_pool = run.occupancy[:, 1:].sum(axis=1)
    axes.plot(run.times, per_pool, color=ORANGE, linewidth=1.2, linestyle=":", label="tasks per pool")
    times = np.concatenate([[0.0], run.change_times, [SHOWN]])
    values = np.concatenate([run.threshold[:1], run.change_thresholds, run.threshold[-1:]])
    axes.plot(times, values, color=GREEN, linewidth=1.2, drawstyle="steps-post", label="threshold")
    for threshold, share in long.averages.threshold_time_at.items():
        if share >= _NAMED:
            axes.annotate(
                f"{100 * share:.1f} %",
                (1.01, threshold),
                xycoords=("axes fraction", "data"),
                va="center",
                fontsize=9,
                color=GREEN,
            )
    axes.set_xlim(0, SHOWN)
    axes.set_ylim(0.7, 3.7)
    axes.set_yticks([1, 2, 3])


def _caption(lab: Lab) -> str:
    time = of_figure(lab, SIZES[0]).window.time
    return (
        f"The learned threshold over time for load {LOAD} and alpha {ALPHA}, with {SIZES[0]} pools (top) and "
        f"{SIZES[1]} (bottom). Both start at threshold {floor(LOAD)} with {LOAD} tasks per pool, spread evenly; "
        f"time 0 to {SHOWN:g}, one run each, seed {lab.seed}. It rises when the tasks per pool come near 3. The "
        "percentages on the right are the shares of time at each threshold in the long run, from simulations of "
        f"{time:,.0f} mean task times in {REPLICATIONS} independent parts, each after a warm-up of {WARMUP:g}."
    )


FIGURE = PaperFigure(
    name="fig3",
    title="The threshold fluctuates with few pools, and hardly with more",
    size=(6.8, 4.3),
    caption=_caption,
    draw=_draw,
)
