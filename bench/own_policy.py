"""Policies in Python: how fast they are simulated, next to a policy that does nothing and to the kernel."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.measure import Figure, Rows
from evenly.core import Choose, JoinShortestQueue
from evenly.sim import Scenario
from evenly.sim.simulation import Simulation

POOLS, LOAD = 500, 5.5
GOAL = 0.3  # million events/s


class Nothing:
    """The bound: takes the pools in turn, and keeps no counts."""

    def __init__(self) -> None:
        self._next = -1

    def join(self, pool: int, tasks: int) -> None:
        """Do nothing."""

    def leave(self, pool: int) -> None:
        """Do nothing."""

    def arrive(self, choose: Choose) -> int:
        """Return the next pool."""
        self._next = (self._next + 1) % POOLS
        return self._next

    def depart(self, pool: int) -> None:
        """Do nothing."""


class TwoWithMemory:
    """The guide's example: the least loaded of two random pools and the best pool of the last time."""

    def __init__(self) -> None:
        self.tasks: dict[int, int] = {}
        self.pools: list[int] = []
        self.memory: list[int] = []

    def join(self, pool: int, tasks: int) -> None:
        """Add a pool."""
        self.tasks[pool], self.pools = tasks, [*self.pools, pool]

    def leave(self, pool: int) -> None:
        """Remove a pool."""
        self.pools, self.memory = [other for other in self.pools if other != pool], []

    def arrive(self, choose: Choose) -> int | None:
        """Place a task."""
        if not self.pools:
            return None
        seen = [choose(self.pools), choose(self.pools), *self.memory]
        self.tasks[pool := min(seen, key=self.tasks.__getitem__)] += 1
        self.memory = [min(seen, key=self.tasks.__getitem__)]
        return pool

    def depart(self, pool: int) -> None:
        """Finish a task."""
        self.tasks[pool] -= 1


def rate(
    policy: str | type[Any], horizon: float, capacity: int | None = None, service: str = "exponential"
) -> float:
    """Return the events per second of processor time of a policy, in millions, from a balanced start."""
    scenario = Scenario(
        policy=policy,
        pools=POOLS,
        load=LOAD,
        capacity=capacity,
        service=service,
        initial_tasks=LOAD,
        horizon=1e6,
    )
    simulation = Simulation(scenario, np.random.SeedSequence(1))
    simulation.advance(1.0)
    before = int(simulation.state["events"])
    started = time.thread_time()
    simulation.advance(1.0 + horizon)
    return (int(simulation.state["events"]) - before) / (time.thread_time() - started) / 1e6


def own_policy(rounds: int, scale: float) -> Iterator[Figure]:
    """Measure policies in Python on the same events."""
    horizon = 10.0 * scale
    rows = Rows(
        rounds,
        lambda: rate(TwoWithMemory, horizon),
        lambda: rate(JoinShortestQueue, horizon),
        lambda: rate(TwoWithMemory, horizon, 6),
        lambda: rate(Nothing, horizon),
        lambda: rate("jsq", horizon * 10),
        lambda: rate(TwoWithMemory, horizon, service="lognormal:cv=4"),
        lambda: rate(TwoWithMemory, horizon, 6, service="lognormal:cv=4"),
    )
    unit = "million events/s"
    yield Figure("the guide's power of two with memory", rows.median(0), unit, GOAL)
    yield Figure("a copy of JSQ in Python", rows.median(1), unit, GOAL)
    yield Figure("power of two with memory, capacity 6", rows.median(2), unit, GOAL)
    yield Figure("power of two with memory, lognormal:cv=4", rows.median(5), unit, GOAL)
    yield Figure("power of two with memory, lognormal:cv=4, capacity 6", rows.median(6), unit, GOAL)
    yield Figure("bound: a policy that does nothing", rows.median(3), unit)
    yield Figure("power of two with memory / the bound", rows.ratio(0, 3), "times")
    yield Figure("JSQ in the kernel", rows.median(4), unit)
