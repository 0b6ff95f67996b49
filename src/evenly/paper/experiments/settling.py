"""The time until the threshold settles, from an empty and from an overloaded system.

Paper: Sec. 5.1, Fig. 4; Prop. 7.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, sqrt

import numpy as np
from numpy.typing import NDArray

from evenly.inputs import whole_number
from evenly.paper.experiments.inputs import check_events, checked_alpha, checked_load, checked_time, keep
from evenly.paper.experiments.lab import Lab
from evenly.sim import Result, Scenario, Trajectory, simulate
from evenly.sim.limits import MAX_POOLS
from evenly.theory.fluid.inputs import MAX_LEVELS, fluid_alpha
from evenly.theory.fluid.path import FluidPath
from evenly.theory.fluid.predict import predict_fluid
from evenly.theory.tuning import Alpha, settle_time_bound

LOAD, ALPHA, POOLS = 5.5, "0.93", 500
EMPTY, FULL = 0, 9  # tasks in each pool, and the threshold, at time 0
HORIZON = 6.0  # the threshold has settled by then, and leaves again once in 15,000 mean task times
MAX_START, MAX_RUNS, MAX_TIME = 1000, 1000, 1000


@dataclass(frozen=True, kw_only=True)
class SettlingRuns:
    """Parameters: one system starts empty, the other with `initial_tasks` tasks in each pool as its threshold.

    The default horizon is 7, or as much later as it takes to show the bounds.
    """

    pools: int = POOLS
    load: float = LOAD
    alpha: Alpha = ALPHA
    initial_tasks: int = FULL
    horizon: float | None = None
    replications: int = 9

    def __post_init__(self) -> None:
        keep(
            self,
            pools=whole_number("pools", self.pools, 1, MAX_POOLS),
            load=checked_load(self.load, MAX_LEVELS),
            alpha=checked_alpha(self.alpha),
            initial_tasks=whole_number("initial_tasks", self.initial_tasks, 0, MAX_START),
            replications=whole_number("replications", self.replications, 1, MAX_RUNS),
        )
        fluid_alpha(self.alpha)
        if self.horizon is not None:
            keep(self, horizon=checked_time("horizon", self.horizon, MAX_TIME))
        check_events(self.pools, max(self.load, self.initial_tasks), 2 * self.replications * self.end)
        self.scenario(self.initial_tasks)

    @property
    def starts(self) -> tuple[int, int]:
        """Tasks in each pool at time 0, which is also the threshold: 0, and `initial_tasks`."""
        return EMPTY, self.initial_tasks

    @property
    def end(self) -> float:
        """The horizon: as given, or late enough to show the bounds."""
        if self.horizon is not None:
            return self.horizon
        return float(max(7, *(ceil(1.1 * (self.bound(start) or 0.0)) for start in self.starts)))

    def bound(self, start: int) -> float | None:
        """Return the paper's bound on the settling time, or None where the paper has none.

        Paper: Prop. 7, eq. (15).
        """
        return settle_time_bound(load=self.load, alpha=self.alpha, initial_tasks=start)

    def scenario(self, start: int, horizon: float | None = None) -> Scenario:
        """Return the system from one of the starts."""
        return Scenario(
            pools=self.pools,
            load=self.load,
            alpha=self.alpha,
            threshold=start,
            initial_tasks=start,
            horizon=self.end if horizon is None else horizon,
        )


PAPER = SettlingRuns()


def of_paper(_: Lab) -> SettlingRuns:
    """Return the parameters of Fig. 4."""
    return PAPER


def shown_runs(lab: Lab, setup: SettlingRuns, start: int) -> tuple[Trajectory, ...]:
    """Simulate the runs in the picture from one of the starts."""

    def work() -> tuple[Trajectory, ...]:
        found = simulate(setup.scenario(start), replications=setup.replications, seed=lab.seed, points=2)
        return found.trajectories

    return lab.once(("settling", setup, start), work)


def limit(lab: Lab, setup: SettlingRuns, start: int) -> FluidPath:
    """Solve the fluid system from the same start."""
    return lab.once(
        ("settling, fluid", setup, start),
        lambda: predict_fluid(
            load=setup.load,
            alpha=setup.alpha,
            threshold=start,
            initial_tasks=float(start),
            horizon=setup.end,
            points=141,
        ),
    )


def many_runs(lab: Lab, start: int) -> Result:
    """Simulate the paper's system many times from one of the starts."""
    return lab.once(
        ("settling, many runs", start),
        lambda: simulate(
            PAPER.scenario(start, HORIZON),
            replications=lab.pick(1200, 100),
            seed=lab.seed_for(f"settling {start}"),
        ),
    )


def runs_from_empty(lab: Lab, pools: int, replications: int) -> Result:
    """Simulate the paper's system with another number of pools from empty; shorter, as large systems vary less."""
    return lab.once(
        ("settling, other sizes", pools, replications),
        lambda: simulate(
            SettlingRuns(pools=pools).scenario(EMPTY, 3.2),
            replications=replications,
            seed=lab.seed_for(f"settling of {pools}"),
        ),
    )


def settle_times(result: Result) -> NDArray[np.float64]:
    """Return the time at which the threshold last changed, in each run."""
    return np.array([ending.since for ending in result.endings])


def scatter(pools: int, load: float, start: float, time: float) -> float:
    """Return by how much time the tasks per pool cross a level early or late: their deviation over their speed.

    Each initial task is left with probability exp(-t), and the number of new ones is Poisson. The mean approaches
    the load like exp(-t).
    """
    left = exp(-time)
    return sqrt((start * left + load) * (1 - left) / pools) / (abs(start - load) * left)
