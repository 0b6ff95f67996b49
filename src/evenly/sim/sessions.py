"""The open sessions of a system with any service law and arrival process."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenly.sim.kernels import sessions
from evenly.sim.kernels.clock import CLOCK, set_pace, start_clock, stop_clock
from evenly.sim.kernels.draws import Drawn, Draws, Method, draw_many, new_draws
from evenly.sim.kernels.given import next_start
from evenly.sim.kernels.heap import POOL_BITS
from evenly.sim.kernels.ledger import PolicyCode, Record
from evenly.sim.kernels.per_pool import new_pool_table
from evenly.sim.kernels.sessions import Open
from evenly.sim.scenario import Scenario
from evenly.sim.system import System
from evenly.workload.service import Recipe

_ROOM = 1024  # sessions, besides an eighth of those at time 0
SERVICE_KEY, GAPS_KEY = 2, 3  # of the random numbers; those of delays have key 1

Floats = NDArray[np.float64]


def service_draws(scenario: Scenario, seed: np.random.SeedSequence) -> Draws:
    """Return the service times of a replication's tasks, with mean 1: those of time 0 first, pool by pool."""
    law = scenario.service_law
    values = np.array(law.values or (1.0,))
    return _draws(seed, SERVICE_KEY, law.recipe, values / (law.own_mean or 1.0))


def gap_draws(scenario: Scenario, seed: np.random.SeedSequence) -> Draws:
    """Return the gaps between a replication's arrivals, with mean 1."""
    process = scenario.arrival_process
    gaps = np.diff(np.array(process.times or (0.0, 1.0)))
    return _draws(seed, GAPS_KEY, process.gaps, gaps / gaps.mean())


def _draws(seed: np.random.SeedSequence, key: int, recipe: Recipe, values: Floats) -> Draws:
    return new_draws(seed, key, Method[recipe.method.upper()], np.array(recipe.numbers), values)


class Arrivals:
    """The clock of the arrivals, and what is drawn of each task: its service time, and the gap to the next."""

    def __init__(self, system: System, seed: np.random.SeedSequence) -> None:
        self._system, scenario = system, system.scenario
        self._given = system.given
        self.drawn = Drawn(service_draws(scenario, seed), gap_draws(scenario, seed))
        self.clock = np.zeros(1, CLOCK)[0]
        self.clock["serial"] = system.state["total"]
        self._begin(system)

    def _begin(self, system: System) -> None:
        """Set the clock. A burst may be under way at time 0, with the probability of any time."""
        clock, burst = self.clock, system.scenario.arrival_process.burst
        first = np.zeros(1)
        draw_many(self.drawn.gaps, first)
        clock["left"], clock["factor"], clock["next_switch"] = first[0], 1.0, math.inf
        if burst is not None and not self._given.starts.size:
            rate = system.scenario.service_rate
            clock["calm_factor"], clock["burst_factor"] = burst.factors
            clock["calm_length"], clock["burst_length"] = (each / rate for each in burst.lengths)
            clock["burst"] = int(system.streams.events[0] < burst.share)
            set_pace(system.state, system.streams, clock)

    def run(self, kernel: Callable[..., None], open_: Open, table: NamedTuple, until: float, budget: int) -> None:
        """Call a kernel of sessions once."""
        system = self._system
        kernel(
            system.rules,
            system.state,
            system.book,
            system.streams,
            open_,
            self.drawn,
            table,
            self.clock,
            until,
            budget,
        )

    def end_phase(self, rules: Record, state: Record) -> None:
        """Read the clock, before the demand changes."""
        if not self._given.starts.size:
            stop_clock(rules, self.clock, float(state["time"]))

    def begin_phase(self, rules: Record, state: Record) -> None:
        """Set the time of the next arrival for the demand that is in force now."""
        if self._given.starts.size:
            state["next_time"] = next_start(self._given, int(self.clock["serial"]))
        else:
            start_clock(rules, state, self.clock)

    def durations_at_start(self) -> Floats:
        """Return how long the tasks of time 0 take, pool by pool: as given, else drawn."""
        total = int(self._system.state["total"])
        if self._given.starts.size:
            return self._given.durations[:total]
        found = np.zeros(total)
        draw_many(self.drawn.service, found)
        return found * (1.0 / self._system.scenario.service_rate)


class Sessions:
    """The arrays of `evenly.sim.kernels.sessions`, which grow as needed.

    Tasks at time 0 get service times like all others: their past is not known.
    """

    def __init__(self, system: System, seed: np.random.SeedSequence) -> None:
        self._system, scenario, rules = system, system.scenario, system.rules
        self.arrivals = Arrivals(system, seed)
        tasks = scenario.tasks_at_start()
        policy = PolicyCode(int(rules["policy"]))
        table, system.state["tokens"] = new_pool_table(
            tasks, policy, threshold=int(rules["below"]), capacity=int(rules["capacity"])
        )
        self._table = table._replace(owner=np.zeros(0, np.int32))  # the heap knows the pool of each session
        sampled = scenario.sampled if policy == PolicyCode.POWER_OF_D else 0
        self._open = opened(tasks, self.arrivals.durations_at_start(), np.zeros_like(tasks), sampled)

    @property
    def tasks(self) -> NDArray[np.int64]:
        """Tasks of each pool."""
        return self._table.tasks.copy()

    def advance(self, until: float, budget: int) -> None:
        """Call the kernel once."""
        system, arrivals = self._system, self.arrivals
        sessions.advance(
            system.rules,
            system.state,
            system.book,
            system.streams,
            self._open,
            arrivals.drawn,
            self._table,
            arrivals.clock,
            system.given,
            system.watch,
            until,
            budget,
        )

    def make_room(self) -> None:
        """Grow the heap if it is nearly full; the kernel returns before it overflows."""
        self._open = with_room(self._open, int(self._system.state["total"]))

    def messages(self) -> dict[str, int]:
        """Return the messages so far, by kind."""
        return self._system.messages()


def opened(tasks: NDArray[np.int64], ends: Floats, classes: NDArray[np.int64], sampled: int = 0) -> Open:
    """Return the sessions of time 0, listed pool by pool, and the pools by class, the fullest of each first."""
    total = ends.size
    first = np.argsort(ends, kind="stable")  # what is sorted is a heap
    room = total + max(_ROOM, total // 8)
    due, numbers = np.zeros(room), np.zeros(room, np.int64)
    due[:total] = ends[first]
    numbers[:total] = (first << POOL_BITS) | np.repeat(np.arange(tasks.size), tasks)[first]
    order = np.lexsort((-tasks, classes)).astype(np.int32)
    place = np.zeros_like(order)
    place[order] = np.arange(order.size)
    return Open(due, numbers, order, place, np.zeros(sampled, np.int64))


def with_room(open_: Open, total: int) -> Open:
    """Return the same, with a heap of twice the size if it is nearly full."""
    if total + 8 < open_.due.size:
        return open_
    due, numbers = open_.due, open_.sessions
    return open_._replace(
        due=np.append(due, np.zeros_like(due)), sessions=np.append(numbers, np.zeros_like(numbers))
    )
