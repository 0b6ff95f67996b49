"""The threshold under a varying demand: jumps, swift small waves, slow large ones.

The paper does not print its demand; this one fits its text.

Paper: Sec. 5.3, Fig. 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from evenly.inputs import whole_number
from evenly.paper.experiments.inputs import check_events, checked_alpha, checked_time, keep
from evenly.paper.experiments.lab import Lab
from evenly.sim import Result, Scenario, Trajectory, simulate
from evenly.sim.limits import MAX_POOLS
from evenly.theory.fluid.inputs import MAX_HORIZON, MAX_TURNS, check_turns, fluid_alpha
from evenly.theory.fluid.path import FluidPath
from evenly.theory.fluid.predict import predict_fluid
from evenly.theory.tuning import Alpha
from evenly.workload.demand import Phase

POOLS, ALPHA, LOAD_MAX = 500, "0.91", 10
BEFORE = 3  # tasks in each pool at time 0, and the threshold
JUMPS = {0.0: 5.5, 20.0: 9.5, 30.0: 3.5}  # time: demand from then on
SWIFT, SLOW = (2.0, 15.0), (33.0, 45.0)  # intervals with waves, whole periods long
HORIZON = 50.0
SCHEDULE = "0:5.5,2:5.5~0.4/1,15:5.5,20:9.5,30:3.5,33:3.5~1.2/6,45:3.5"
SNAPSHOTS = 126  # every 0.4: five different points of a swift wave, and the exact times of the jumps
MAX_START = 1000
MAX_PHASES = MAX_TURNS
_SAME = 1e-6  # smaller differences between loads are rounding


@dataclass(frozen=True, kw_only=True)
class VaryingDemand:
    """Parameters: a system that starts with `initial_tasks` tasks in each pool, which is also its threshold."""

    pools: int = POOLS
    schedule: str | tuple[Phase, ...] = SCHEDULE
    alpha: Alpha = ALPHA
    initial_tasks: int = BEFORE
    horizon: float = HORIZON

    def __post_init__(self) -> None:
        keep(
            self,
            pools=whole_number("pools", self.pools, 1, MAX_POOLS),
            alpha=checked_alpha(self.alpha),
            initial_tasks=whole_number("initial_tasks", self.initial_tasks, 0, MAX_START),
            horizon=checked_time("horizon", self.horizon, MAX_HORIZON),
        )
        fluid_alpha(self.alpha)
        check_turns(self.phases, self.horizon)
        check_events(self.pools, max(self.peak, self.initial_tasks), self.horizon)

    @property
    def scenario(self) -> Scenario:
        """The system to simulate."""
        return Scenario(
            pools=self.pools,
            schedule=self.schedule,
            alpha=self.alpha,
            threshold=self.initial_tasks,
            initial_tasks=self.initial_tasks,
            horizon=self.horizon,
        )

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The demand, phase by phase."""
        return self.scenario.phases

    @property
    def spans(self) -> list[tuple[Phase, float, float]]:
        """The phases that begin before the horizon, each with its start and end."""
        begun = [phase for phase in self.phases if phase.start < self.horizon]
        edges = pairwise([*(phase.start for phase in begun), self.horizon])
        return [(phase, start, end) for phase, (start, end) in zip(begun, edges, strict=True)]

    @property
    def jumps(self) -> list[float]:
        """The times at which the demand jumps. At time 0 it jumps unless it equals the initial tasks per pool."""
        before, times = float(self.initial_tasks), []
        for phase, start, end in self.spans:
            if abs(phase.load_at(start) - before) > _SAME:
                times.append(start)
            before = phase.load_at(end)
        return times

    @property
    def peak(self) -> float:
        """The highest demand."""
        return max(phase.load + phase.amplitude for phase, _, _ in self.spans)


PAPER = VaryingDemand()


def of_paper(_: Lab) -> VaryingDemand:
    """Return the parameters of Fig. 6."""
    return PAPER


def shown_run(lab: Lab, setup: VaryingDemand) -> Result:
    """Simulate the run in the picture."""
    return lab.once(("varying demand", setup), lambda: simulate(setup.scenario, seed=lab.seed, points=501))


def limit(lab: Lab, setup: VaryingDemand) -> FluidPath:
    """Solve the fluid system under the same demand."""
    return lab.once(
        ("varying demand, fluid", setup),
        lambda: predict_fluid(
            schedule=setup.schedule,
            alpha=setup.alpha,
            threshold=setup.initial_tasks,
            initial_tasks=float(setup.initial_tasks),
            horizon=setup.horizon,
            points=251,
        ),
    )


def runs(lab: Lab) -> tuple[Trajectory, ...]:
    """Simulate many independent runs of the paper's system, with snapshots and every change of the threshold."""
    return lab.once(
        "varying demand, many runs",
        lambda: (
            simulate(
                PAPER.scenario, replications=lab.pick(64, 10), seed=lab.seed_for("fig6"), points=SNAPSHOTS
            ).trajectories
        ),
    )


def time_at(
    change_times: NDArray[np.float64], changed_to: NDArray[np.int64], first: int, span: tuple[float, float]
) -> dict[int, float]:
    """Return the share of a time span that a threshold spends at each value, from its changes."""
    start, end = span
    inside = (change_times > start) & (change_times < end)
    before = changed_to[change_times <= start]
    values = [int(before[-1]) if before.size else first, *changed_to[inside].tolist()]
    edges = [start, *change_times[inside].tolist(), end]
    shares: dict[int, float] = {}
    for value, (since, until) in zip(values, pairwise(edges), strict=True):
        shares[value] = shares.get(value, 0.0) + (until - since) / (end - start)
    return shares
