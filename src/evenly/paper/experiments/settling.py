"""The time until the threshold settles, from an empty and from an overloaded system.

Paper: Sec. 5.1, Fig. 4; Prop. 7.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, sqrt

import numpy as np
from numpy.typing import NDArray

from evenly.paper.experiments.lab import Lab
from evenly.sim import Result, Scenario, Trajectory, simulate
from evenly.sim.scenario import whole_number
from evenly.theory.fluid.inputs import fluid_alpha
from evenly.theory.fluid.path import FluidPath
from evenly.theory.fluid.predict import predict_fluid
from evenly.theory.inputs import positive_load, positive_number
from evenly.theory.tuning import Alpha, settle_time_bound

LOAD, ALPHA, POOLS = 5.5, "0.93", 500
EMPTY, FULL = 0, 9  # tasks in each pool, and the threshold, at time 0
HORIZON = 6.0  # by then it has settled, and leaves again once in 15,000 mean task times
MAX_START, MAX_RUNS, MAX_TIME = 1000, 1000, 1000


@dataclass(frozen=True, kw_only=True)
class SettlingRuns:
    """Parameters: systems that start empty, and with `initial_tasks` tasks in each pool and that threshold.

    The default horizon is 7, or later if that is needed to show the bounds.
    """

    pools: int = POOLS
    load: float = LOAD
    alpha: Alpha = ALPHA
    initial_tasks: int = FULL
    horizon: float | None = None
    replications: int = 9

    def __post_init__(self) -> None:
        positive_load(self.load)
        fluid_alpha(self.alpha)
        whole_number("initial_tasks", self.initial_tasks, 0, MAX_START)
        whole_number("replications", self.replications, 1, MAX_RUNS)
        if self.horizon is not None:
            positive_number("horizon", self.horizon, MAX_TIME)
        self.scenario(self.initial_tasks)

    @property
    def starts(self) -> tuple[int, int]:
        """Tasks in each pool at time 0, and the threshold: empty, and `initial_tasks`."""
        return EMPTY, self.initial_tasks

    @property
    def end(self) -> float:
        """The horizon, as given or late enough."""
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
    """Simulate the runs to be shown from a start."""

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
    """Simulate the paper's system from a start many times."""
    return lab.once(
        ("settling, many runs", start),
        lambda: simulate(
            PAPER.scenario(start, HORIZON),
            replications=lab.pick(1200, 100),
            seed=lab.seed_for(f"settling {start}"),
        ),
    )


def runs_from_empty(lab: Lab, pools: int, replications: int) -> Result:
    """Simulate the paper's system with another number of pools, from empty; shorter, as it varies little."""
    return lab.once(
        ("settling, other sizes", pools, replications),
        lambda: simulate(
            SettlingRuns(pools=pools).scenario(EMPTY, 3.2),
            replications=replications,
            seed=lab.seed_for(f"settling of {pools}"),
        ),
    )


def settle_times(result: Result) -> NDArray[np.float64]:
    """Return the time of the last change of the threshold, in each run."""
    return np.array([ending.since for ending in result.endings])


def scatter(pools: int, load: float, start: float, time: float) -> float:
    """Return by how much time the tasks per pool are early or late: their deviation over their speed.

    Of the first tasks a fraction exp(-t) is left, each with that probability; the new ones are Poisson. The mean
    goes to the load like exp(-t).
    """
    left = exp(-time)
    return sqrt((start * left + load) * (1 - left) / pools) / (abs(start - load) * left)
