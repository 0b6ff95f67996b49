"""Which kernel simulates a system, with the arrays that it needs besides those of every system."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from evenly.sim.kernels import aggregate, per_pool, window
from evenly.sim.kernels.ledger import PolicyCode, Record
from evenly.sim.kernels.per_pool import grown_pool_table, new_pool_table
from evenly.sim.kernels.writeup import new_log
from evenly.sim.network import Network
from evenly.sim.own_events import MemorylessEvents, SessionEvents
from evenly.sim.own_run import OwnRun
from evenly.sim.scenario import Scenario
from evenly.sim.sessions import Sessions
from evenly.sim.system import System
from evenly.sim.unequal import Unequal, UnequalSessions


class Arrivals(Protocol):
    """What sets the time of the next arrival when the demand changes."""

    def end_phase(self, rules: Record, state: Record) -> None:
        """Take note of the time, before the demand changes."""
        ...

    def begin_phase(self, rules: Record, state: Record) -> None:
        """Set the time of the next arrival for the demand that is in force now."""
        ...


class Engine(Protocol):
    """A kernel and its arrays, which grow as needed."""

    @property
    def tasks(self) -> NDArray[np.int64] | None:
        """Tasks of each pool; None if the kernel knows only the number of pools at each level."""
        ...

    @property
    def arrivals(self) -> Arrivals | None:
        """What sets the next arrival; None if service is exponential and arrivals are Poisson."""
        ...

    def advance(self, until: float, budget: int) -> None:
        """Simulate up to a time, for at most `budget` events and while the arrays have room."""
        ...

    def make_room(self) -> None:
        """Grow the arrays that are nearly full; the kernel returns before they overflow."""
        ...

    def messages(self) -> dict[str, int]:
        """Return the messages so far, by kind."""
        ...


def new_engine(system: System, seed: np.random.SeedSequence) -> Engine:
    """Return what simulates the system. It may draw further random numbers from the seed."""
    scenario = system.scenario
    if scenario.info.own:
        memoryless = scenario.memoryless and not system.given.starts.size
        return OwnRun(system, MemorylessEvents(system) if memoryless else SessionEvents(system, seed))
    if scenario.sized:
        return Unequal(system) if scenario.memoryless else UnequalSessions(system, seed)
    if scenario.networked:
        return Network(system, seed)
    if not scenario.memoryless or system.given.starts.size:
        return Sessions(system, seed)
    return Levels(system) if scenario.aggregate else Pools(system)


def uses_window(scenario: Scenario) -> bool:
    """Return whether the window simulates the system while the load is constant and levels are few.

    Clients who return do so anywhere, which the window does not know.
    """
    alike = scenario.aggregate and not scenario.sized and not scenario.sticky
    return alike and scenario.info.name == "threshold"


class Levels:
    """The aggregate kernel, with a window for the threshold policy."""

    tasks = None
    arrivals = None

    def __init__(self, system: System) -> None:
        self._system = system
        self._ranks = np.zeros(system.scenario.sampled if system.code == PolicyCode.POWER_OF_D else 0, np.int64)
        self._log = new_log() if uses_window(system.scenario) else None

    def advance(self, until: float, budget: int) -> None:
        """Call the kernel once."""
        system = self._system
        arrays = (system.rules, system.state, system.book, system.streams, self._ranks)
        if self._log is not None and system.rules["amplitude"] == 0.0 and not system.book.tree.size:
            window.advance(*arrays, self._log, until, budget)
        else:
            aggregate.advance(*arrays, until, budget)

    def make_room(self) -> None:
        """Do nothing: all that grows is in the book."""

    def messages(self) -> dict[str, int]:
        """Return the messages so far, by kind."""
        return self._system.messages()


class Pools:
    """The per-pool kernel."""

    arrivals = None

    def __init__(self, system: System) -> None:
        self._system = system
        rules = system.rules
        self._table, system.state["tokens"] = new_pool_table(
            system.scenario.tasks_at_start(),
            PolicyCode(int(rules["policy"])),
            threshold=int(rules["below"]),
            capacity=int(rules["capacity"]),
        )

    @property
    def tasks(self) -> NDArray[np.int64]:
        """Tasks of each pool."""
        return self._table.tasks.copy()

    def advance(self, until: float, budget: int) -> None:
        """Call the kernel once."""
        system = self._system
        per_pool.advance(system.rules, system.state, system.book, system.streams, self._table, until, budget)

    def make_room(self) -> None:
        """Make room for more tasks."""
        if self._system.state["total"] + 8 >= self._table.owner.size:
            self._table = grown_pool_table(self._table)

    def messages(self) -> dict[str, int]:
        """Return the messages so far, by kind."""
        return self._system.messages()
