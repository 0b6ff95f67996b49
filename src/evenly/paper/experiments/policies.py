"""The resources that tasks receive under several policies, on the same arrivals and departures.

Paper: Sec. 5.2, Fig. 5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenly.errors import InputError
from evenly.inputs import number_from, shown, whole_number
from evenly.paper.experiments.inputs import check_events, checked_alpha, checked_load, checked_time, keep
from evenly.paper.experiments.lab import Lab
from evenly.policies import COMPARED
from evenly.sim import Result, Scenario, compare, with_policies
from evenly.sim.limits import MAX_NAMED_POOLS
from evenly.sim.tally import averages
from evenly.theory.inputs import MAX_LOAD
from evenly.theory.tuning import Alpha

LOAD, POOLS, ALPHA = 10.5, 500, "0.96"
WARMUP = 20.0
BATCHES = 32
MAX_TIME = 10**7  # mean task times
_LEVELS = 64  # more than the tasks of any pool in the paper's system


@dataclass(frozen=True, kw_only=True)
class PolicyRuns:
    """Parameters: one long run per policy from empty pools. The threshold policy learns with `alpha`."""

    policies: tuple[str, ...] = COMPARED
    pools: int = POOLS
    load: float = LOAD
    alpha: Alpha = ALPHA
    horizon: float = WARMUP + BATCHES * 100.0
    warmup: float = WARMUP

    def __post_init__(self) -> None:
        known = all(isinstance(policy, str) and policy in COMPARED for policy in self.policies)
        if not self.policies or not known or len(set(self.policies)) < len(self.policies):
            raise InputError(
                f"policies must be different ones of {', '.join(COMPARED)}, not {shown(list(self.policies))}."
            )
        keep(
            self,
            policies=tuple(map(str, self.policies)),
            pools=whole_number("pools", self.pools, 1, MAX_NAMED_POOLS),
            load=checked_load(self.load, MAX_LOAD),
            alpha=checked_alpha(self.alpha),
            horizon=checked_time("horizon", self.horizon, MAX_TIME),
            warmup=number_from("warmup", self.warmup, 0, MAX_TIME),
        )
        check_events(self.pools, self.load, len(self.policies) * self.horizon)
        _ = self.scenarios  # checks that the warm-up ends before the horizon

    @property
    def scenarios(self) -> list[Scenario]:
        """The same system under each policy."""
        scenario = Scenario(
            pools=self.pools, load=self.load, alpha=self.alpha, warmup=self.warmup, horizon=self.horizon
        )
        return with_policies(scenario, self.policies)


def of_paper(lab: Lab) -> PolicyRuns:
    """Return the parameters of Fig. 5."""
    return PolicyRuns(horizon=WARMUP + BATCHES * lab.pick(100.0, 10.0))


def results(lab: Lab, setup: PolicyRuns) -> dict[str, Result]:
    """Simulate each policy. At the paper's length, batches are long enough to be independent."""

    def work() -> dict[str, Result]:
        runs = compare(setup.scenarios, seed=lab.seed, batches=BATCHES, mean_holding_times=True)
        return dict(zip(setup.policies, runs, strict=True))

    return lab.once(("policies", setup), work)


def task_shares(result: Result) -> NDArray[np.float64]:
    """Return the share of tasks by the number of tasks in their pool, one row per batch."""
    rows = [averages(window, result.scenario.pools).task_share for window in result.windows]
    return np.array([np.pad(row, (0, _LEVELS - row.size)) for row in rows])
