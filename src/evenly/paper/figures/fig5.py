"""The resources that tasks get under four policies, on the same arrivals and departures.

Paper: Sec. 5.2, Fig. 5.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from evenly.paper.experiments.lab import Lab
from evenly.paper.figure import PaperFigure
from evenly.plots import shares
from evenly.sim import Result, Scenario, compare, with_policies
from evenly.sim.tally import averages

LOAD, POOLS, ALPHA = 10.5, 500, "0.96"
POLICIES = ("random", "power-of-d", "jsq", "threshold")
WARMUP = 20.0
BATCHES = 32
_LEVELS = 64  # more tasks than any pool has


def results(lab: Lab) -> dict[str, Result]:
    """A long run of each policy, from empty pools, in batches long enough to be independent."""

    def work() -> dict[str, Result]:
        length = lab.pick(100.0, 10.0)
        scenario = Scenario(pools=POOLS, load=LOAD, alpha=ALPHA, warmup=WARMUP, horizon=WARMUP + BATCHES * length)
        runs = compare(with_policies(scenario, POLICIES), seed=lab.seed, batches=BATCHES, steady_state=True)
        return dict(zip(POLICIES, runs, strict=True))

    return lab.once("fig5", work)


def task_shares(result: Result) -> NDArray[np.float64]:
    """Share of tasks by the number of tasks in their pool, a row a batch."""
    rows = [averages(window, result.scenario.pools).task_share for window in result.samples]
    return np.array([np.pad(row, (0, _LEVELS - row.size)) for row in rows])


def _caption(lab: Lab) -> str:
    horizon = results(lab)["jsq"].scenario.horizon
    return (
        f"Share of tasks that are in a pool with so many tasks, for load {LOAD} and {POOLS} pools, weighted by "
        "task and by time; a task gets one part in that number of its pool's resources. The four policies see "
        f"the same arrivals and departures from an empty system, time {WARMUP:g} to {horizon:g}, seed "
        f"{lab.seed}. The paper runs the threshold policy at the optimal threshold; here it learns it, with "
        f"alpha {ALPHA}, from threshold 0 during the warm-up. Spread is the standard deviation of tasks over "
        "pools, averaged over time. The lines of JSQ and of the threshold policy lie on each other."
    )


def _draw(lab: Lab, figure: Figure) -> None:
    shares.draw_on(figure, list(results(lab).values()))


FIGURE = PaperFigure(
    name="fig5",
    title="Resources that tasks receive under four policies",
    size=(7.6, 5.0),
    caption=_caption,
    draw=_draw,
)
