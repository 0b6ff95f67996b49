"""The state of a system as a diagram: a row a pool, a black circle a task, and the dispatcher's tokens.

Paper: Fig. 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evenly.core import ThresholdPolicy
from evenly.paper.experiments.lab import Lab
from evenly.paper.figure import PaperFigure
from evenly.plots.style import BLUE, INK
from evenly.sim import Scenario
from evenly.sim.reference import ReferenceSimulation

POOLS, LOAD, THRESHOLD = 12, 5.5, 5
_WARMUP = 5.0
_LONGEST = 20_000  # events to look through for a varied state; one in some hundred is
_PAPER, _SHADE, _PALE = "#ffffff", "#e8eef4", "#b8b8b8"


@dataclass(frozen=True)
class Diagram:
    """A state: tasks of the pools in increasing order, and whether each has a green and a yellow token."""

    time: float
    tasks: tuple[int, ...]
    green: tuple[bool, ...]
    yellow: tuple[bool, ...]

    @property
    def pools_at_least(self) -> list[int]:
        """Number of pools with at least i tasks, up to the maximum."""
        return [sum(count >= level for count in self.tasks) for level in range(self.tasks[-1] + 1)]


def diagram(lab: Lab) -> Diagram:
    """The first state after the warm-up in which every case of the policy can be seen."""
    return lab.once("fig1", lambda: _look_for_variety(lab.seed))


def varied(tasks: list[int], threshold: int) -> bool:
    """Two pools each below the threshold, at it and one above it, one with still more, and five numbers in all."""
    gaps = [count - threshold for count in tasks]
    each_twice = min(sum(gap < 0 for gap in gaps), gaps.count(0), gaps.count(1)) >= 2
    return each_twice and max(gaps) >= 2 and len(set(gaps)) >= 5


def _look_for_variety(seed: int) -> Diagram:
    scenario = Scenario(pools=POOLS, load=LOAD, threshold=THRESHOLD, initial=LOAD)
    simulation = ReferenceSimulation(scenario, np.random.SeedSequence(seed))
    while simulation.time < _WARMUP:
        simulation.step()
    for _ in range(_LONGEST):
        if varied(simulation.tasks(), THRESHOLD):
            break
        simulation.step()
    dispatcher = cast(ThresholdPolicy, simulation.policy).dispatcher
    tasks = simulation.tasks()
    order = sorted(range(POOLS), key=tasks.__getitem__)
    return Diagram(
        time=simulation.time,
        tasks=tuple(tasks[pool] for pool in order),
        green=tuple(pool in dispatcher.green for pool in order),
        yellow=tuple(pool in dispatcher.yellow for pool in order),
    )


def _caption(lab: Lab) -> str:
    return (
        f"A simulated state: {POOLS} pools at load {LOAD:g} under the threshold {THRESHOLD}, at time "
        f"{diagram(lab).time:.2f} of a run from {LOAD:g} tasks per pool (seed {lab.seed}): the first state after "
        f"time {_WARMUP:g} with two pools each below the threshold, at it and one above it, one still fuller, "
        "and five different numbers of tasks. Rows are pools, black circles tasks, white circles free servers, "
        "of which there is no end. Q(i) counts the tasks in column i, that is the pools with at least i tasks. "
        "On the right are the tokens that the dispatcher holds, their numbers below: green (G) for pools below "
        "the threshold, yellow (Y) for pools at or below it."
    )


def _draw(lab: Lab, figure: Figure) -> None:
    state = diagram(lab)
    columns = max(state.tasks) + 2
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.set_xlim(-0.6, columns + 4.6)
    axes.set_ylim(POOLS + 1.5, -1.9)
    _draw_threshold(axes)
    _draw_tasks(axes, state, columns)
    _draw_tokens(axes, state, columns + 2.2)


def _draw_threshold(axes: Axes) -> None:
    """The columns up to the threshold on a shade, the next one in a dashed frame."""
    top, bottom = -0.6, POOLS - 0.4
    axes.fill_between([0.5, THRESHOLD + 0.5], top, bottom, color=_SHADE, linewidth=0)
    right = THRESHOLD + 1.5
    axes.plot([THRESHOLD + 0.5, right, right, THRESHOLD + 0.5], [top, top, bottom, bottom], "--", color=BLUE)
    axes.plot([THRESHOLD + 0.5] * 2, [top, bottom], color=BLUE, linewidth=2.0)
    axes.text(
        (THRESHOLD + 1) / 2, -0.95, f"up to the threshold, {THRESHOLD}", ha="center", va="bottom", color=BLUE
    )
    axes.text(THRESHOLD + 1, -0.95, "one\nabove", ha="center", va="bottom", color=BLUE, linespacing=0.95)


def _draw_tasks(axes: Axes, state: Diagram, columns: int) -> None:
    for row, count in enumerate(state.tasks):
        levels = np.arange(1, columns + 1)
        faces = [INK if level <= count else _PAPER for level in levels]
        edges = [INK if level <= count else _PALE for level in levels]
        axes.scatter(levels, [row] * columns, s=130, c=faces, edgecolors=edges, linewidths=1.1, zorder=3)
        axes.text(columns + 0.85, row, "…", ha="center", va="center", color=_PALE)
    counts = state.pools_at_least
    axes.text(0.35, POOLS + 0.25, "Q(i)", ha="right", va="center", color=INK)
    axes.text(0.35, POOLS + 1.0, "i", ha="right", va="center", color=INK, style="italic")
    for level in range(1, columns + 1):
        here = counts[level] if level < len(counts) else 0
        axes.text(level, POOLS + 0.25, str(here), ha="center", va="center", color=INK, weight="bold")
        axes.text(level, POOLS + 1.0, str(level), ha="center", va="center", color=INK, style="italic")


def _draw_tokens(axes: Axes, state: Diagram, left: float) -> None:
    axes.text(
        left + 0.5, -0.95, "tokens at the\ndispatcher", ha="center", va="bottom", color=INK, linespacing=0.95
    )
    for place, (letter, held) in enumerate((("G", state.green), ("Y", state.yellow))):
        for row in np.flatnonzero(held).tolist():
            axes.scatter([left + place], [row], s=170, c=_PAPER, edgecolors=INK, linewidths=1.1, zorder=3)
            axes.text(
                left + place, row + 0.03, letter, ha="center", va="center", fontsize=8.5, weight="bold", zorder=4
            )
        axes.text(left + place, POOLS + 0.25, str(sum(held)), ha="center", va="center", weight="bold", color=INK)


FIGURE = PaperFigure(
    name="fig1", title="The state of a system, and the tokens", size=(6.4, 6.2), caption=_caption, draw=_draw
)
