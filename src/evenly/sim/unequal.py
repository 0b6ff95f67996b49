"""The classes of a system with pools of different sizes, and the tables that the kernel decides by."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from evenly.sim.kernels import sized_sessions, unequal
from evenly.sim.kernels.classes import ANY, CUT, HIGHEST, IN_TURN, ClassTable, move_cut
from evenly.sim.kernels.ledger import NO_THRESHOLD, Record
from evenly.sim.kernels.per_pool import owners
from evenly.sim.sessions import Arrivals, opened, with_room
from evenly.sim.system import System
from evenly.workload.pools import find_utility, rounded

_WAYS = {
    "threshold": CUT,
    "threshold-utility": CUT,
    "jsq": HIGHEST,
    "greedy-utility": HIGHEST,
    "weighted-least": HIGHEST,
    "random": ANY,
    "weighted-round-robin": IN_TURN,
}
_FIRST_LEVELS = 64


class Unequal:
    """The arrays of `evenly.sim.kernels.unequal`, which grow as needed."""

    arrivals: Arrivals | None = None

    def __init__(self, system: System) -> None:
        self._system = system
        self._scenario = scenario = system.scenario
        self._utility = find_utility(scenario.measure)
        self._gains = np.zeros((0, 0))  # in utility, by class and tasks
        system.rules["policy"] = _WAYS[scenario.info.name]
        classes, tasks = scenario.classes, scenario.tasks_by_class()
        first = np.cumsum([0, *(each.count for each in classes)])[:-1]
        levels = max(_FIRST_LEVELS, max(int(of_class.size) for of_class in tasks) + 8)
        at_least = np.zeros((len(classes), levels), np.int64)
        for c, of_class in enumerate(tasks):
            at_least[c, : of_class.size] = of_class
        in_turn = scenario.info.name == "weighted-round-robin"
        told_apart = in_turn or not scenario.memoryless
        of_pools = scenario.tasks_at_start() if told_apart else np.zeros(0, np.int64)
        zeros = np.zeros(len(classes), np.int64)
        self._table = ClassTable(
            pools=np.array([each.count for each in classes]),
            first=np.asarray(first, np.int64),
            size=np.array([each.size for each in classes]),
            priority=self._priorities(levels),
            at_least=at_least,
            area=np.zeros(at_least.shape),
            total=at_least[:, 1:].sum(axis=1),
            lowest=np.array([int((row == row[0]).sum()) - 1 for row in at_least]),
            highest=np.array([int(np.flatnonzero(row)[-1]) for row in at_least]),
            lower=zeros.copy(),
            upper=zeros.copy(),
            turn=np.full(len(classes), 0.5),
            served=zeros.copy(),
            tasks=of_pools,
            owner=owners(of_pools) if in_turn and scenario.memoryless else np.zeros(0, np.int32),
        )
        system.state["threshold"] = NO_THRESHOLD
        if _WAYS[scenario.info.name] == CUT:
            self._set_threshold(system.state, scenario.initial_threshold)

    @property
    def at_least(self) -> NDArray[np.int64]:
        """Number of pools of each class with at least i tasks."""
        return self._table.at_least.copy()

    @property
    def thresholds(self) -> NDArray[np.int64]:
        """The numbers of tasks below which a pool of each class is green."""
        return self._table.lower.copy()

    @property
    def tasks(self) -> NDArray[np.int64] | None:
        """Tasks of each pool, if pools are told apart."""
        return self._table.tasks.copy() if self._table.tasks.size else None

    def messages(self) -> dict[str, int]:
        """Return the messages so far, by kind. Every departure is one if the dispatcher knows all pools."""
        state = self._system.state
        known = _WAYS[self._scenario.info.name] == HIGHEST
        return self._system.messages() | {
            "other": int(state["events"]) - int(state["arrivals"]) if known else 0,
        }

    def integrals(self, time: float) -> tuple[float, NDArray[np.float64]]:
        """Return the time integrals of the utility of all pools, and of the tasks of each class."""
        counts = self._table.area + self._table.at_least * time
        if self._gains.shape != counts.shape:
            self._gains = self._by_level(self._utility.exact_marginal, counts.shape[1])
        return float((counts[:, 1:] * self._gains[:, :-1]).sum()), counts[:, 1:].sum(axis=1)

    def advance(self, until: float, budget: int) -> None:
        """Call the kernel once."""
        system = self._system
        unequal.advance(system.rules, system.state, system.book, system.streams, self._table, until, budget)

    def make_room(self) -> None:
        """Grow the arrays that are nearly full; the kernel returns before they overflow."""
        table = self._table
        levels = table.at_least.shape[1]
        if max(int(table.highest.max()), int(table.upper.max())) + 8 >= levels:
            self._grow(2 * levels)
        if table.owner.size and int(self._system.state["total"]) + 8 >= table.owner.size:
            self._table = self._table._replace(owner=np.concatenate([table.owner, np.zeros_like(table.owner)]))

    def _grow(self, levels: int) -> None:
        table = self._table
        more = ((0, 0), (0, levels - table.at_least.shape[1]))
        self._table = table._replace(
            priority=self._priorities(levels),
            at_least=np.pad(table.at_least, more),
            area=np.pad(table.area, more),
        )

    def _set_threshold(self, state: Record, index: int) -> None:
        """Put the cut at an index, without telling any pool."""
        table = self._table
        table.upper[:] = table.priority[:, 0] == table.priority[:, 0].max()
        for _ in range(index):
            move_cut(state, table, 1)
            if int(table.upper.max()) + 8 >= table.at_least.shape[1]:
                self._grow(2 * table.at_least.shape[1])
                table = self._table
        state["threshold"], state["resync"] = index, 0

    def _priorities(self, levels: int) -> NDArray[np.float64]:
        by_policy: dict[str, Callable[[float, int], float]] = {
            "greedy-utility": self._utility.marginal,
            "threshold-utility": self._utility.marginal,
            "weighted-least": lambda size, tasks: -rounded(tasks / size),
        }
        return self._by_level(by_policy.get(self._scenario.info.name, lambda _, tasks: -tasks), levels)

    def _by_level(self, function: Callable[[float, int], float], levels: int) -> NDArray[np.float64]:
        sizes = [each.size for each in self._scenario.classes]
        return np.array([[function(size, tasks) for tasks in range(levels)] for size in sizes], float)


class UnequalSessions(Unequal):
    """The same with any service law and arrival process: the arrays of `evenly.sim.kernels.sized_sessions`."""

    def __init__(self, system: System, seed: np.random.SeedSequence) -> None:
        super().__init__(system)
        self._clock = Arrivals(system, seed)
        self.arrivals = self._clock
        classes = np.repeat(np.arange(len(system.scenario.classes)), self._table.pools)
        self._open = opened(self._table.tasks, self._clock.durations_at_start(), classes)

    def advance(self, until: float, budget: int) -> None:
        """Call the kernel once."""
        self._clock.run(sized_sessions.advance, self._open, self._table, until, budget)

    def make_room(self) -> None:
        """Grow the arrays that are nearly full; the kernel returns before they overflow."""
        super().make_room()
        self._open = with_room(self._open, int(self._system.state["total"]))
