"""Long runs of large systems under fixed thresholds that are not optimal.

Paper: Sec. 3.2, Exs 1 and 2; Fig. 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenly.errors import InputError
from evenly.inputs import number_from, whole_number
from evenly.paper.experiments.inputs import (
    check_events,
    checked_load,
    checked_time,
    different_whole_numbers,
    keep,
)
from evenly.paper.experiments.lab import Lab
from evenly.sim import Result, Scenario, compare
from evenly.sim.limits import MAX_POOLS
from evenly.theory.balance import FloatArray, optimal_thresholds
from evenly.theory.equilibrium import threshold_kind
from evenly.theory.inputs import MAX_LOAD, MAX_THRESHOLD

LOAD = 5.5
LARGE, SMALL = (6, 7, 8), (2, 3, 4)  # our choice: the paper does not print those in its figure
MAX_REPLICATIONS = 1000
MAX_TIME = 10**7  # mean task times


@dataclass(frozen=True, kw_only=True)
class WrongThresholds:
    """Parameters: one system per threshold, from a balanced state.

    The initial state is forgotten at rate 1: a fraction exp(-warmup) of it is left when the averages begin.
    """

    pools: int = 5000
    load: float = LOAD
    thresholds: tuple[int, ...] = (*LARGE, *SMALL)
    warmup: float = 7.0
    horizon: float = 14.0
    replications: int = 16

    def __post_init__(self) -> None:
        keep(
            self,
            pools=whole_number("pools", self.pools, 1, MAX_POOLS),
            load=checked_load(self.load, MAX_LOAD),
            thresholds=different_whole_numbers("thresholds", self.thresholds, 0, MAX_THRESHOLD),
            warmup=number_from("warmup", self.warmup, 0, MAX_TIME),
            horizon=checked_time("horizon", self.horizon, MAX_TIME),
            replications=whole_number("replications", self.replications, 1, MAX_REPLICATIONS),
        )
        check_events(self.pools, self.load, len(self.thresholds) * self.replications * self.horizon)
        for threshold in self.thresholds:
            self.scenario(threshold)
            if threshold_kind(self.load, threshold) == "balanced":
                raise InputError(
                    f"thresholds must not contain {threshold}, which is optimal for load {self.load:g}: it "
                    "balances the load."
                )

    @property
    def large(self) -> tuple[int, ...]:
        """The thresholds above the optimum."""
        return tuple(value for value in self.thresholds if threshold_kind(self.load, value) == "large")

    @property
    def small(self) -> tuple[int, ...]:
        """The thresholds below the optimum."""
        return tuple(value for value in self.thresholds if threshold_kind(self.load, value) == "small")

    def scenario(self, threshold: int) -> Scenario:
        """Return the system with this threshold."""
        return Scenario(
            pools=self.pools,
            load=self.load,
            threshold=threshold,
            initial_tasks=self.load,
            warmup=self.warmup,
            horizon=self.horizon,
        )


def nearest_wrong(load: float) -> tuple[int, ...]:
    """Return the next three thresholds above the optimum, then up to three below it."""
    best = optimal_thresholds(checked_load(load, MAX_LOAD))
    return (*range(best[-1] + 1, best[-1] + 4), *range(max(best[0] - 3, 0), best[0]))


def of_paper(lab: Lab) -> WrongThresholds:
    """Return the parameters of Fig. 2."""
    return WrongThresholds(pools=lab.pick(5000, 800), horizon=lab.pick(14.0, 10.0))


def simulated(lab: Lab, setup: WrongThresholds) -> dict[int, Result]:
    """Simulate each threshold on the same arrivals and departures."""

    def work() -> dict[int, Result]:
        scenarios = [setup.scenario(threshold) for threshold in setup.thresholds]
        runs = compare(scenarios, replications=setup.replications, seed=lab.seed, mean_holding_times=True)
        return dict(zip(setup.thresholds, runs, strict=True))

    return lab.once(("wrong thresholds", setup), work)


def occupancy_rows(result: Result, levels: int = 0) -> FloatArray:
    """Return the time-average share of pools with at least i tasks: one row per replication.

    The rows have at least `levels` columns.
    """
    size = max([levels, *(sample.at_least.size for sample in result.windows)])
    rows = [np.pad(sample.at_least / sample.time, (0, size - sample.at_least.size)) for sample in result.windows]
    return np.asarray(rows) / result.scenario.pools


def bias(result: Result) -> float:
    """Bound the distance between the mean of a finite system and the limit. It is of order 1 / pools."""
    return 5 / result.scenario.pools
