"""Systems that learn, in the fluid limit and simulated, for the claims about where and when they settle.

Paper: Secs. 4.2 to 4.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import floor

from evenly.paper.experiments.lab import Lab
from evenly.sim import Scenario, Trajectory, compare
from evenly.sim.coupling.sizes import simulate_sizes
from evenly.sim.trajectory import Ending
from evenly.theory.fluid.path import FluidPath
from evenly.theory.fluid.predict import predict_fluid
from evenly.theory.tuning import settle_time_bound

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
        """The lowest value that the threshold may settle at: floor(load), or load - 1 if the load is whole."""
        return self.floor - int(self.load == self.floor)

    @property
    def highest(self) -> Fraction:
        """load / alpha, as a fraction."""
        return Fraction(str(self.load)) / Fraction(self.alpha)

    @property
    def optimal(self) -> bool:
        """True if alpha > load / (floor(load) + 1), decided on fractions."""
        return Fraction(str(self.load)) / (self.floor + 1) < Fraction(self.alpha)

    @property
    def bound(self) -> float | None:
        """The paper's bound on the settling time, or None where it has none."""
        return settle_time_bound(load=self.load, alpha=self.alpha, initial_tasks=self.initial)

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
