"""Systems that learn, in the fluid limit and simulated, for the claims about where and when they settle.

Paper: Secs. 4.2 to 4.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import floor, fsum

import numpy as np

from evenly.paper.experiments.lab import Lab
from evenly.paper.experiments.random_starts import random_cases
from evenly.sim import Result, Scenario, Trajectory, compare, simulate
from evenly.sim.coupling.sizes import simulate_sizes
from evenly.sim.trajectory import Ending
from evenly.theory.fluid.path import FluidPath
from evenly.theory.fluid.predict import predict_fluid
from evenly.theory.tuning import is_optimal, settle_time_bound, settled_threshold

FLUID_HORIZON = 30.0
POOLS, HORIZON = 2000, 25.0  # of simulated systems
LARGE_HORIZON, LARGE_POINTS = 10.0, 501  # of systems on the common space
STARTS = ((0, 0.6), (7, 7.0), (0, 0.0), (3, 6.5))  # threshold and tasks per pool; 0.6 is below all loads here
NOISE = 7  # deviations; no fluctuation reaches as many
EXACT = 1e-9  # error of the fluid solver
TOO_CLOSE = 0.2  # distance from the next whole load, for 2000 pools


@dataclass(frozen=True)
class Case:
    """A load, an alpha and an initial state."""

    load: float
    alpha: str
    threshold: int
    initial: float

    @property
    def floor(self) -> int:
        """floor(load)."""
        return floor(self.load)

    @property
    def lowest(self) -> int:
        """The lowest value that the threshold may settle at, by Prop. 6."""
        return settled_threshold(load=self.load, alpha=self.alpha)[0]

    @property
    def highest(self) -> int:
        """The highest value that the threshold may settle at, by Prop. 6."""
        return settled_threshold(load=self.load, alpha=self.alpha)[1]

    @property
    def optimal(self) -> bool:
        """True if Cor. 2's condition holds."""
        return is_optimal(load=self.load, alpha=self.alpha)

    @property
    def bound(self) -> float | None:
        """The paper's bound on the settling time, or None where it has none."""
        return settle_time_bound(load=self.load, alpha=self.alpha, initial_tasks=self.initial)

    @property
    def end(self) -> int:
        """Where the threshold of the fluid system settles."""
        return int(self.solved().threshold[-1])

    def solved(self, horizon: float = FLUID_HORIZON, points: int = 2) -> FluidPath:
        """Solve the fluid system."""
        return predict_fluid(
            load=self.load,
            alpha=self.alpha,
            threshold=self.threshold,
            initial_tasks=self.initial,
            horizon=horizon,
            points=points,
        )

    def scenario(self, pools: int, horizon: float, service_rate: float = 1.0) -> Scenario:
        """Return the finite system with `pools` pools."""
        return Scenario(
            pools=pools,
            load=self.load,
            alpha=self.alpha,
            threshold=self.threshold,
            initial_tasks=self.initial,
            horizon=horizon,
            service_rate=service_rate,
        )


@dataclass(frozen=True)
class Start:
    """A load, an alpha, a threshold and an initial occupancy, q(0), q(1), ..."""

    load: float
    alpha: str
    threshold: int
    occupancy: tuple[float, ...]

    @property
    def initial(self) -> float:
        """Tasks per pool at time 0."""
        return fsum(self.occupancy[1:])

    @property
    def bound(self) -> float | None:
        """The paper's bound on the settling time, or None where it has none."""
        return settle_time_bound(load=self.load, alpha=self.alpha, initial_tasks=self.initial)

    def solved(self, horizon: float, points: int = 2) -> FluidPath:
        """Solve the fluid system."""
        return predict_fluid(
            load=self.load,
            alpha=self.alpha,
            threshold=self.threshold,
            initial_occupancy=self.occupancy,
            horizon=horizon,
            points=points,
        )


def crowded(load: float, alpha: str, share: float, tasks: int) -> Start:
    """Put all initial tasks in a fraction `share` of the pools, `tasks` in each of these, with threshold 0."""
    return Start(load, alpha, 0, (1.0, *[share] * tasks))


# From u(0) = load in very few pools the settling time is log(load / (load - (1 - share) floor(load))): the full
# pools get nothing until the others have floor(load) tasks.
CONCENTRATED = (crowded(5.5, "0.93", 0.01, 550), crowded(5.5, "0.93", 0.004, 1375))
MIXED = (
    crowded(5.5, "0.93", 0.3, 30),
    crowded(5.5, "0.97", 0.5, 12),
    crowded(2.2, "0.85", 0.7, 10),
    crowded(2.2, "0.85", 0.02, 110),
    crowded(2.2, "0.85", 0.02, 120),  # u(0) is between load and alpha ceil(load): the first term of the bound is 0
)
AFTER = 1.0  # mean task times after the bound until which uneven starts are solved
MARGIN = (0.05, 0.95)  # of a random alpha between the least that Cor. 2 allows and 1
OVERLOADED = Case(5.5, "0.93", 9, 9.0)
FROM_EMPTY = Case(5.5, "0.93", 0, 0.0)


def cases(lab: Lab) -> list[Case]:
    """Combine loads, whole and fractional, with alphas and initial states."""
    loads = lab.pick((0.7, 2.2, 2.9, 5.5), (2.9, 5.5))
    alphas = lab.pick(("0.6", "0.8", "0.97"), ("0.8", "0.97"))
    starts = lab.pick(STARTS, STARTS[:2])
    whole = [Case(3.0, "0.97", *start) for start in starts]
    return whole + [Case(load, alpha, *start) for load, alpha, start in product(loads, alphas, starts)]


def solved(lab: Lab) -> list[tuple[Case, FluidPath]]:
    """Solve the fluid systems of all cases."""
    return lab.once("learning, fluid", lambda: [(case, case.solved(points=401)) for case in cases(lab)])


def bound_of(case: Case | Start) -> float:
    """Return the paper's bound on the settling time of a case that has one."""
    found = case.bound
    assert found is not None
    return found


def ends(lab: Lab) -> list[tuple[Case, int]]:
    """Return where the thresholds of all cases settle, in fluid and in simulated systems."""
    return [(case, int(path.threshold[-1])) for case, path in solved(lab)] + [
        (case, ending.threshold) for case, ending in simulated(lab)
    ]


def concentrated(lab: Lab) -> list[tuple[Start, FluidPath]]:
    """Solve the fluid systems from u(0) = load in very few pools."""
    chosen = CONCENTRATED[: lab.pick(2, 1)]
    return lab.once(
        "concentrated, fluid", lambda: [(start, start.solved(bound_of(start) + 0.2, 5)) for start in chosen]
    )


def mixed(lab: Lab) -> list[tuple[Start, FluidPath]]:
    """Solve the fluid systems from other uneven starts, chosen and random, until after the bound."""

    def work() -> list[tuple[Start, FluidPath]]:
        rng = np.random.default_rng(lab.seed_for("random starts"))
        chosen = [*MIXED, *random_starts(rng, lab.pick(60, 15))]
        return [(start, start.solved(bound_of(start) + AFTER, 101)) for start in chosen]

    return lab.once("mixed, fluid", work)


def random_starts(rng: np.random.Generator, count: int) -> list[Start]:
    """Return random starts that have a bound. Thresholds are within 3 of floor(load)."""
    found = []
    for case in random_cases(rng, 2 * count):
        if not case.load.is_integer():
            least = case.load / (floor(case.load) + 1)
            alpha = f"{least + (1 - least) * rng.uniform(*MARGIN):.9f}"
            found.append(Start(round(case.load, 6), alpha, case.threshold, case.occupancy))
    return found[:count]


def overloaded(lab: Lab) -> FluidPath:
    """Solve the fluid system from 9 tasks per pool at load 5.5, on a fine grid."""
    return lab.once("overloaded, fluid", lambda: OVERLOADED.solved(3.0, 15_001))


def settled_at(path: FluidPath) -> float:
    """Return the time at which the threshold of a fluid system settled, or 0 if it never changed."""
    return float(path.change_times[-1]) if path.change_times.size else 0.0


def last_change(run: Trajectory) -> float:
    """Return the time at which the threshold of a simulated system last changed, or 0 if it never did."""
    return float(run.change_times[-1]) if run.change_times.size else 0.0


def simulated(lab: Lab) -> list[tuple[Case, Ending]]:
    """Simulate the cases, and return each threshold at the horizon and the time since it last changed."""

    def work() -> list[tuple[Case, Ending]]:
        chosen = [case for case in cases(lab) if case.floor + 1 - case.load > TOO_CLOSE]
        scenarios = [case.scenario(POOLS, HORIZON) for case in chosen]
        results = compare(scenarios, replications=lab.pick(2, 1), seed=lab.seed_for("settling"), batches=0)
        return [(case, ending) for case, result in zip(chosen, results, strict=True) for ending in result.endings]

    return lab.once("learning, simulated", work)


def sizes(lab: Lab) -> tuple[int, ...]:
    """Return the numbers of pools to compare on one probability space."""
    return lab.pick((2000, 20_000, 200_000), (2000, 10_000))


def large_systems(lab: Lab) -> list[Trajectory]:
    """Simulate systems of these sizes from 9 tasks per pool at load 5.5, until after the bound on settling."""
    scenario, seed = OVERLOADED.scenario(1, LARGE_HORIZON), lab.seed_for("large systems")
    return lab.once(
        "large systems", lambda: simulate_sizes(scenario, pools=sizes(lab), seed=seed, points=LARGE_POINTS)
    )


def from_empty(lab: Lab) -> Result:
    """Simulate systems that start empty until all of them have settled: sixteen deviations later."""
    scenario = FROM_EMPTY.scenario(POOLS, 4.0)
    runs, seed = lab.pick(400, 60), lab.seed_for("from empty")
    return lab.once("from empty", lambda: simulate(scenario, replications=runs, seed=seed))
