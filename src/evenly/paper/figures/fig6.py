"""The threshold under a varying demand: jumps, swift small waves, slow large ones.

Paper: Sec. 5.3, Fig. 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evenly.paper.experiments.inputs import as_tuple
from evenly.paper.experiments.lab import Lab
from evenly.paper.experiments.varying_demand import (
    MAX_PHASES,
    SCHEDULE,
    SLOW,
    VaryingDemand,
    limit,
    of_paper,
    shown_run,
)
from evenly.paper.figures.figure import PaperFigure
from evenly.plots.style import INK, RED
from evenly.theory.inputs import exact_alpha
from evenly.theory.tuning import Alpha
from evenly.workload.demand import Phase

_SWIFT = 3.0  # mean task times; shorter waves are over before the threshold follows


def varying_demand(
    *,
    pools: int = 500,
    schedule: str | Sequence[Phase] = SCHEDULE,
    alpha: Alpha = "0.91",
    initial_tasks: int = 3,
    horizon: float = 50.0,
    seed: int = 1,
    figure: Figure | None = None,
) -> Figure:
    """Draw the threshold, the fullest pool and the imbalance under a varying demand.

    A `schedule` lists the load from each time on, as in "0:5.5,20:10,30:3"; "33:8~2/6" swings by 2 around 8 with
    period 6. The system starts with `initial_tasks` tasks in each pool and the same threshold.

    Paper: Fig. 6.
    """
    setup = VaryingDemand(
        pools=pools,
        schedule=schedule if isinstance(schedule, str) else as_tuple("schedule", schedule, MAX_PHASES),
        alpha=alpha,
        initial_tasks=initial_tasks,
        horizon=horizon,
    )
    return FIGURE.plot(setup, seed=seed, figure=figure)


def _draw(lab: Lab, setup: VaryingDemand, figure: Figure) -> None:
    path, shown = limit(lab, setup), shown_run(lab, setup)
    run = shown.trajectories[0]
    levels, imbalance = figure.subplots(2, 1, sharex=True, height_ratios=[2.2, 1])
    run.plot(ax=levels)
    levels.set_xlabel("")
    levels.set_ylim(0, max(1.25 * ceil(setup.peak), run.max_tasks.max() + 0.5))
    imbalance.plot(run.times, run.imbalance, color=RED, linewidth=1.1, label="simulated")
    imbalance.plot(path.times, path.imbalance, color=INK, linewidth=1.0, linestyle="--", label="fluid")
    imbalance.set_ylim(bottom=0)
    imbalance.set_ylabel("imbalance e(t)")
    imbalance.legend(loc="upper left", bbox_to_anchor=(0.02, 1.0), ncols=2, fontsize=9)
    imbalance.set_xlabel("time, in mean task times")
    imbalance.set_xlim(0, setup.horizon)
    _mark_phases(setup, levels, imbalance)


def _mark_phases(setup: VaryingDemand, levels: Axes, imbalance: Axes) -> None:
    """Shade the intervals with waves, and mark the jumps."""
    for phase, start, end in setup.spans:
        if phase.amplitude:
            for axes in (levels, imbalance):
                axes.axvspan(start, end, color="#000000", alpha=0.05, linewidth=0)
            levels.annotate(_wave(phase), ((start + end) / 2, 0.3), ha="center", fontsize=9, color=INK)
    for time in setup.jumps:
        for axes in (levels, imbalance):
            axes.axvline(time, color=INK, linewidth=0.8, linestyle=":")


def _wave(phase: Phase) -> str:
    """Name the wave in the paper's words. Small waves do not change the optimal threshold."""
    small = floor(phase.load - phase.amplitude) == floor(phase.load + phase.amplitude)
    return f"{'swift' if phase.period < _SWIFT else 'slow'}, {'small' if small else 'large'}"


def _caption(lab: Lab, setup: VaryingDemand) -> str:
    start = setup.initial_tasks
    alpha = exact_alpha(setup.alpha)
    largest = ceil(alpha / (1 - alpha)) - 1  # eq. (13): alpha must exceed load / (load + 1)
    made = f", made for loads up to {largest}" if largest else ""
    return (
        f"The threshold policy under a varying demand, with {setup.pools} pools and alpha {setup.alpha}{made}. "
        f"{_about_the_demand(setup)} "
        f"Each pool has {start} tasks at time 0, and the threshold is "
        f"{start}. Below: the distance e(t) from the balanced occupancy, in the same run and in the fluid "
        f"system. One run, time 0 to {setup.horizon:g}, seed {lab.seed}."
    )


def _about_the_demand(setup: VaryingDemand) -> str:
    if setup.schedule == SCHEDULE and setup.horizon >= SLOW[1]:
        return (
            "The paper does not print its demand; ours fits its text: it jumps from "
            f"{setup.initial_tasks} to 5.5 at time 0, to 9.5 at 20 and to 3.5 at 30; "
            "in [2, 15] it swings by 0.4 with period 1, so the "
            "optimal threshold, the floor of the demand, stays at 5; in [33, 45] it swings by 1.2 with period 6, "
            "so the optimum goes through 2, 3 and 4."
        )
    phases = [
        f"{phase.load:g}"
        + (f" swinging by {phase.amplitude:g} with period {phase.period:g}" if phase.amplitude else "")
        + f" from time {start:g}"
        for phase, start, _ in setup.spans
    ]
    return f"The demand is {', '.join(phases)}; the optimal threshold is its floor."


FIGURE = PaperFigure(
    name="fig6",
    title="The threshold policy under a highly variable demand",
    size=(6.8, 5.4),
    of_paper=of_paper,
    caption=_caption,
    draw=_draw,
)
