"""The threshold under a demand that varies: jumps, swift small waves, slow large ones.

The paper does not print its demand; this one does what its text says.

Paper: Sec. 5.3, Fig. 6.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from evenly.paper.experiments.lab import Lab
from evenly.paper.figure import PaperFigure
from evenly.plots.style import INK, RED
from evenly.plots.trajectory import draw_levels
from evenly.sim import Result, Scenario, Trajectory, simulate
from evenly.theory.fluid.path import FluidPath, fluid

POOLS, ALPHA, LOAD_MAX = 500, "0.91", 10
BEFORE = 3  # tasks in each pool at time 0, and the threshold
JUMPS = {0.0: 5.5, 20.0: 9.5, 30.0: 3.5}  # the demand from these times on
SWIFT, SLOW = (2.0, 15.0), (33.0, 45.0)  # stretches with waves, of whole periods
HORIZON = 50.0
SCHEDULE = "0:5.5,2:5.5~0.4/1,15:5.5,20:9.5,30:3.5,33:3.5~1.2/6,45:3.5"
SNAPSHOTS = 126  # every 0.4, which meets a swift wave at five places and the jumps exactly


def scenario() -> Scenario:
    """The system of the picture."""
    return Scenario(pools=POOLS, schedule=SCHEDULE, alpha=ALPHA, threshold=BEFORE, initial=BEFORE, horizon=HORIZON)


def runs(lab: Lab) -> list[Trajectory]:
    """Independent runs, with snapshots and every change of the threshold."""
    return lab.once(
        "fig6 runs",
        lambda: (
            simulate(
                scenario(), replications=lab.pick(64, 10), seed=lab.seed_for("fig6"), points=SNAPSHOTS
            ).trajectories
        ),
    )


def limit(lab: Lab) -> FluidPath:
    """The fluid system under the same demand."""
    return lab.once(
        "fig6 fluid",
        lambda: fluid(
            schedule=SCHEDULE, alpha=ALPHA, threshold=BEFORE, initial=float(BEFORE), horizon=HORIZON, points=251
        ),
    )


def time_at(
    change_times: NDArray[np.float64], changed_to: NDArray[np.int64], first: int, span: tuple[float, float]
) -> dict[int, float]:
    """Share of a span of time that a threshold spends at each value, from its changes."""
    start, end = span
    inside = (change_times > start) & (change_times < end)
    before = changed_to[change_times <= start]
    values = [int(before[-1]) if before.size else first, *changed_to[inside].tolist()]
    edges = [start, *change_times[inside].tolist(), end]
    shares: dict[int, float] = {}
    for value, (since, until) in zip(values, pairwise(edges), strict=True):
        shares[value] = shares.get(value, 0.0) + (until - since) / (end - start)
    return shares


def _draw(lab: Lab, figure: Figure) -> None:
    levels, imbalance = figure.subplots(2, 1, sharex=True, height_ratios=[2.2, 1])
    shown: Result = lab.once("fig6", lambda: simulate(scenario(), seed=lab.seed, points=501))
    run = shown.trajectories[0]
    draw_levels(levels, shown, run)
    levels.set_ylim(0, 12.5)
    imbalance.plot(run.times, run.imbalance, color=RED, linewidth=1.1, label="simulated")
    path = limit(lab)
    imbalance.plot(path.times, path.imbalance, color=INK, linewidth=1.0, linestyle="--", label="fluid")
    imbalance.set_ylim(bottom=0)
    imbalance.set_ylabel("imbalance e(t)")
    imbalance.legend(loc="upper left", bbox_to_anchor=(0.02, 1.0), ncols=2, fontsize=9)
    imbalance.set_xlabel("time, in mean task times")
    imbalance.set_xlim(0, HORIZON)
    _mark_phases(levels, imbalance)


def _mark_phases(levels: Axes, imbalance: Axes) -> None:
    """What the text names: two stretches with waves, and the jumps."""
    for span, name in ((SWIFT, "swift, small"), (SLOW, "slow, large")):
        for axes in (levels, imbalance):
            axes.axvspan(*span, color="#000000", alpha=0.05, linewidth=0)
        levels.annotate(name, (sum(span) / 2, 0.3), ha="center", fontsize=9, color=INK)
    for time in JUMPS:
        for axes in (levels, imbalance):
            axes.axvline(time, color=INK, linewidth=0.8, linestyle=":")


def _caption(lab: Lab) -> str:
    return (
        f"The threshold policy under a varying demand, with {POOLS} pools and alpha {ALPHA}, made for loads up to "
        f"{LOAD_MAX}. The paper does not print its demand; this one fits its text: it jumps from {BEFORE} to 5.5 "
        "at time 0, to 9.5 at 20 and to 3.5 at 30; in [2, 15] it swings by 0.4 with period 1, so that the optimal "
        "threshold, floor of the demand, stays at 5; in [33, 45] it swings by 1.2 with period 6, so that the "
        f"optimum goes through 2, 3 and 4. Each pool holds {BEFORE} tasks at time 0, and the threshold is "
        f"{BEFORE}. Below: the distance e(t) from the balanced occupancy, in the same run and in the fluid "
        f"system. One run, time 0 to {HORIZON:g}, seed {lab.seed}."
    )


FIGURE = PaperFigure(
    name="fig6",
    title="The threshold policy under a highly variable demand",
    size=(6.8, 5.4),
    caption=_caption,
    draw=_draw,
)
