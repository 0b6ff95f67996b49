"""One state of a small system, with the tokens that its dispatcher holds.

Paper: Sec. 2, Fig. 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import cast

import numpy as np

from evenly.core import ThresholdPolicy
from evenly.inputs import whole_number
from evenly.paper.experiments.inputs import checked_load, keep
from evenly.paper.experiments.lab import Lab
from evenly.sim import Scenario
from evenly.sim.reference import ReferenceSimulation

WARMUP = 5.0
MAX_POOLS, MAX_LOAD, MAX_THRESHOLD = 40, 20, 30  # a picture shows every pool and every task
_LONGEST = 20_000  # events to search for a varied state; with the paper's parameters, one in a few hundred is


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """Parameters: a system that starts from `load` tasks per pool. The default threshold is floor(load)."""

    pools: int = 12
    load: float = 5.5
    threshold: int | None = None

    def __post_init__(self) -> None:
        pools = whole_number("pools", self.pools, 1, MAX_POOLS)
        keep(self, pools=pools, load=checked_load(self.load, MAX_LOAD))
        if self.threshold is not None:
            keep(self, threshold=whole_number("threshold", self.threshold, 0, MAX_THRESHOLD))

    @property
    def scenario(self) -> Scenario:
        """The system to simulate."""
        return Scenario(pools=self.pools, load=self.load, threshold=self.threshold, initial_tasks=self.load)

    @property
    def level(self) -> int:
        """The threshold, as given or floor(load)."""
        return floor(self.load) if self.threshold is None else self.threshold


@dataclass(frozen=True, kw_only=True)
class State:
    """The pools' tasks in increasing order, and whether the dispatcher holds a green and a yellow token of each.

    `time` is when the state was taken. `varied` is True if it shows every case of the policy.
    """

    time: float
    tasks: tuple[int, ...]
    green: tuple[bool, ...]
    yellow: tuple[bool, ...]
    varied: bool

    @property
    def pools_at_least(self) -> list[int]:
        """Number of pools with at least i tasks, up to the maximum."""
        return [sum(count >= level for count in self.tasks) for level in range(self.tasks[-1] + 1)]


def state(lab: Lab, setup: Snapshot) -> State:
    """Return the first state after the warm-up that shows every case of the policy.

    If 20,000 events bring no such state, as with a threshold of 0, return the first state after the warm-up.
    """
    return lab.once(("snapshot", setup), lambda: _find(setup, lab.seed))


def varied(tasks: list[int], threshold: int) -> bool:
    """Check for two pools each below, at and one above the threshold, a fuller one, and five different counts."""
    gaps = [count - threshold for count in tasks]
    each_twice = min(sum(gap < 0 for gap in gaps), gaps.count(0), gaps.count(1)) >= 2
    return each_twice and max(gaps) >= 2 and len(set(gaps)) >= 5


def _find(setup: Snapshot, seed: int) -> State:
    simulation = ReferenceSimulation(setup.scenario, np.random.SeedSequence(seed))
    while simulation.time < WARMUP:
        simulation.step()
    first = _state(simulation, setup)
    for _ in range(_LONGEST):
        if varied(simulation.tasks(), setup.level):
            return _state(simulation, setup)
        simulation.step()
    return first


def _state(simulation: ReferenceSimulation, setup: Snapshot) -> State:
    dispatcher = cast(ThresholdPolicy, simulation.policy).dispatcher
    tasks = simulation.tasks()
    order = sorted(range(setup.pools), key=tasks.__getitem__)
    return State(
        time=simulation.time,
        tasks=tuple(tasks[pool] for pool in order),
        green=tuple(pool in dispatcher.green for pool in order),
        yellow=tuple(pool in dispatcher.yellow for pool in order),
        varied=varied(tasks, setup.level),
    )
