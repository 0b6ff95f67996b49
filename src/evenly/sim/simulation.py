"""One replication, advanced from stop to stop; between stops a kernel does the work.

Events do not depend on the stops: the next event is drawn before a stop and kept across it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenly.core import RoundRobin
from evenly.sim.kernels import aggregate, per_pool
from evenly.sim.kernels.changes import record
from evenly.sim.kernels.integrals import settle
from evenly.sim.kernels.ledger import (
    NO_LIMIT,
    NO_THRESHOLD,
    RULES,
    STATE,
    PolicyCode,
    Record,
    balance,
    copied,
    grown,
    new_book,
)
from evenly.sim.kernels.per_pool import grown_pool_table, new_pool_table
from evenly.sim.kernels.rng import new_streams
from evenly.sim.network import Network
from evenly.sim.own_run import OwnRun
from evenly.sim.scenario import MAX_LEVELS, Scenario
from evenly.sim.sessions import Sessions
from evenly.sim.tally import Tally
from evenly.sim.unequal import Unequal
from evenly.workload.demand import Phase

_CODES = {
    **{code.name.lower().replace("_", "-"): code for code in PolicyCode},
    "jiq": PolicyCode.JBT,  # with threshold 1
}
_SECONDS_PER_CALL = 0.05  # so that a run can be stopped soon
_FIRST_EVENTS = 1000
_WAVE_STEPS = 50_000  # levels to go through in a first call
_MAX_EVENTS = 2_000_000
_PATH_BUFFER = 4096
_BLAS_LEVELS = 10_000  # beyond it, BLAS starts threads, which on busy cores wait for each other
MAX_PATH = 10**6

Tick = Callable[[float], None]


class Simulation:
    """One simulated system. `keep_path` records every change of the threshold."""

    def __init__(
        self,
        scenario: Scenario,
        seed: np.random.SeedSequence,
        *,
        mean_holding: bool = False,
        keep_path: bool = False,
    ) -> None:
        self.scenario = scenario
        self._code = PolicyCode.OWN if scenario.info.own else _CODES.get(scenario.info.name)
        self._streams = new_streams(seed, mean_holding=mean_holding)
        self._rules = np.zeros(1, RULES)[0]
        self._state = np.zeros(1, STATE)[0]
        self._path: list[tuple[NDArray[np.float64], NDArray[np.int64]]] = []
        self._path_length = 0
        self._set_rules(mean_holding)
        self._unequal = None
        counts = scenario.at_least_at_start()
        learns = scenario.rule is not None or scenario.info.own
        self._book = new_book(counts, scenario.levels, _PATH_BUFFER if keep_path and learns else 0)
        self._set_state(counts)
        self._table = None
        self._network = None
        self._own = None
        self._sessions = None
        if scenario.info.own:
            self._own = OwnRun(scenario, self._streams)
            self._state["threshold"] = self._own.threshold
            self._make_room()
        elif scenario.sized:
            self._unequal = Unequal(scenario, self._rules, self._state)
        elif scenario.networked:
            self._network = Network(scenario, seed)
        elif not scenario.memoryless:
            self._sessions = Sessions(scenario, seed, self._streams, self._rules, self._state)
        elif not scenario.aggregate:
            assert self._code is not None
            self._table, self._state["tokens"] = new_pool_table(
                scenario.tasks_at_start(),
                self._code,
                threshold=int(self._rules["below"]),
                capacity=int(self._rules["capacity"]),
            )
        self._ranks = np.zeros(scenario.sampled if self._code == PolicyCode.POWER_OF_D else 0, np.int64)
        self._later_phases = list(scenario.phases)
        self._begin_phase(self._later_phases.pop(0))

    @property
    def time(self) -> float:
        """The current simulated time."""
        return float(self._state["time"])

    @property
    def state(self) -> Record:
        """The record of `evenly.sim.kernels.ledger.STATE`; read-only."""
        return self._state

    @property
    def at_least(self) -> NDArray[np.int64]:
        """Number of pools with at least i tasks, up to the maximum."""
        return self._book.at_least[: int(self._state["max_level"]) + 1].copy()

    @property
    def tasks(self) -> NDArray[np.int64] | None:
        """Tasks of each pool; None if the policy needs only the number of pools at each level."""
        if self._unequal is not None:
            return self._unequal.tasks
        if self._network is not None:
            return self._network.tasks
        if self._own is not None:
            return self._own.tasks.copy()
        if self._sessions is not None:
            return self._sessions.tasks
        return None if self._table is None else self._table.tasks.copy()

    @property
    def unequal(self) -> Unequal | None:
        """The classes of pools; None if pools have no sizes."""
        return self._unequal

    @property
    def network(self) -> Network | None:
        """What is on the way, and what the dispatcher knows; None if messages take no time."""
        return self._network

    @property
    def imbalance(self) -> float:
        """Distance between the occupancy and the balanced one for the demand right now.

        Paper: e(t) in Sec. 5.3.
        """
        load = self.scenario.demand(self.time)
        counts = self.at_least
        counts = np.pad(counts, (0, max(0, math.floor(load) + 2 - counts.size)))
        balanced = np.clip(load + 1 - np.arange(counts.size), 0, 1)
        gaps = counts / self.scenario.pools - balanced
        if gaps.size <= _BLAS_LEVELS:
            return float(np.linalg.norm(gaps))
        return math.sqrt(np.square(gaps).sum())

    @property
    def path(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Times and values of the threshold's changes."""
        self._keep_path()
        times, values = zip(*self._path, strict=True) if self._path else ((), ())
        return np.concatenate([*times, np.zeros(0)]), np.concatenate([*values, np.zeros(0, np.int64)])

    def advance(self, until: float, tick: Tick | None = None, max_events: int | None = None) -> None:
        """Simulate up to a time, or for a number of events.

        `tick` is called with the current time at intervals.
        """
        last = None if max_events is None else int(self._state["events"]) + max_events
        while self.time < until:
            stop = min(until, self._later_phases[0].start if self._later_phases else math.inf)
            left = self._budget if last is None else min(self._budget, last - int(self._state["events"]))
            if left == 0:
                return
            self._run_kernel(stop, left)
            if self._later_phases and self.time == self._later_phases[0].start:
                self._begin_phase(self._later_phases.pop(0))
            self._make_room()
            if tick is not None:
                tick(self.time)

    def tally(self) -> Tally:
        """Return the records so far."""
        state, book = self._state.copy(), copied(self._book)  # a tally must not change the run
        settle(self._rules, state, book)
        arrivals = int(state["arrivals"])
        unequal = self._unequal
        utility, class_tasks = (0.0, np.zeros(0)) if unequal is None else unequal.integrals(self.time)
        return Tally(
            time=self.time,
            at_least=book.area + book.at_least * self.time,
            max_time=book.max_time,
            threshold_time=book.threshold_time,
            gap=float(state["gap_area"]),
            spread=float(state["spread_area"]),
            events=int(state["events"]),
            arrivals=arrivals,
            lost_tasks=int(state["lost"]),
            without_token=int(state["without_token"]),
            **self._messages(),
            change_count=int(state["changes"]),
            utility=utility,
            class_tasks=class_tasks,
        )

    def _messages(self) -> dict[str, int]:
        """Return the messages so far, by kind."""
        if self._own is not None:
            return self._own.messages()
        return {
            **{kind: int(self._state[kind]) for kind in ("green", "yellow", "resync")},
            "acknowledgements": self._acknowledgements(),
            "other": self._other_messages(),
        }

    def _other_messages(self) -> int:
        """Return the messages of policies without tokens, and those of pools that turn a task away."""
        arrivals, network = int(self._state["arrivals"]), self._network
        if self._unequal is not None:
            return self._unequal.other_messages(self._state)
        refusals = 0 if network is None else network.refusals
        if self._code == PolicyCode.JSQ:
            return int(self._state["events"]) - arrivals + refusals
        if self._code == PolicyCode.POWER_OF_D:
            return 2 * self.scenario.sampled * arrivals
        if self._code == PolicyCode.THRESHOLD:
            return refusals
        return 0 if network is None else network.reports

    def _acknowledgements(self) -> int:
        """Return the answers to threshold changes that brought no token: without a network, all pools answer."""
        if self._network is not None:
            return self._network.acknowledgements
        told = int(self._state["changes"]) * self.scenario.pools if self._unequal is None else self._unequal.told
        return told - int(self._state["resync"])

    def _set_rules(self, mean_holding: bool) -> None:
        scenario, rules = self.scenario, self._rules
        rules["policy"] = -1 if self._code is None else self._code
        rules["pools"] = scenario.pools
        rules["capacity"] = NO_LIMIT if scenario.capacity is None else scenario.capacity
        rules["below"] = 1 if scenario.policy == "jiq" else scenario.initial_threshold
        rules["highest"] = NO_LIMIT if scenario.capacity is None else scenario.capacity - 1
        if scenario.rule is not None:
            rules["learning"] = 1
            rules["fall_at"] = scenario.rule.fall_at(scenario.pools)
        rules["mean_holding"] = mean_holding
        rules["service_rate"] = scenario.service_rate

    def _set_state(self, counts: NDArray[np.int64]) -> None:
        state = self._state
        levels = np.arange(counts.size)
        state["total"] = counts[1:].sum()
        state["squares"] = (2 * levels - 1)[1:] @ counts[1:]
        state["max_level"] = counts.size - 1
        state["threshold"] = (
            self.scenario.initial_threshold if self._code == PolicyCode.THRESHOLD else NO_THRESHOLD
        )

    def _begin_phase(self, phase: Phase) -> None:
        """Start a phase, and rescale the remaining time to the next event."""
        state, rules = self._state, self._rules
        self._budget = self._first_events(phase)
        first = self.time == 0
        if not first:
            settle(rules, state, self._book)
            if self._sessions is not None:
                self._sessions.end_phase(rules, state)
        left, rate = float(self._streams.holding[state["position"]]), float(state["rate"])
        if not first and rate > 0:
            left = (float(state["next_time"]) - self.time) * rate
        rules["load"], rules["amplitude"] = phase.load, phase.amplitude
        rules["period"], rules["start"] = phase.period, phase.start
        rules["frequency"] = 2.0 * math.pi / phase.period
        peak = self.scenario.pools * self.scenario.service_rate * (phase.load + phase.amplitude)
        rate = peak + int(state["total"]) * self.scenario.service_rate
        state["rate"] = rate
        state["next_time"] = self.time + left / rate if rate > 0 else math.inf
        if self._sessions is not None:
            self._sessions.begin_phase(rules, state)
        state["gap"] = balance(self._book, self.scenario.pools, phase.load)
        state["load"] = phase.load

    def _first_events(self, phase: Phase) -> int:
        """Return the budget of the first call of a kernel. An event under a swift wave goes through all levels."""
        if not phase.amplitude:
            return _FIRST_EVENTS
        return max(1, min(_FIRST_EVENTS, _WAVE_STEPS // self._book.at_least.size))

    def _run_kernel(self, until: float, budget: int) -> None:
        """Call a kernel once, and set the budget of the next call by the time that this one takes."""
        started = perf_counter()
        if self._own is not None:
            self._run_own(self._own, until, budget)
        elif self._unequal is not None:
            self._unequal.advance(self._rules, self._state, self._book, self._streams, until, budget)
        elif self._network is not None:
            self._network.advance(self._rules, self._state, self._book, self._streams, until, budget)
        elif self._sessions is not None:
            self._sessions.advance(self._rules, self._state, self._book, self._streams, until, budget)
        elif self._table is None:
            aggregate.advance(self._rules, self._state, self._book, self._streams, self._ranks, until, budget)
        else:
            per_pool.advance(self._rules, self._state, self._book, self._streams, self._table, until, budget)
        seconds = perf_counter() - started
        if seconds > _SECONDS_PER_CALL:
            self._budget = max(self._budget // 2, 1)
        elif budget == self._budget and seconds < _SECONDS_PER_CALL / 4:
            self._budget = min(2 * self._budget, _MAX_EVENTS)

    def _run_own(self, own: OwnRun, until: float, budget: int) -> None:
        """Let the user's policy decide a batch of events, and record them."""
        changes = own.play(self._rules, self._state, until, budget)
        self._make_room(int(changes.thresholds.max(initial=0)))
        done, size = 0, changes.times.size
        while (done := record(self._rules, self._state, self._book, own.tasks, changes, done)) < size:
            self._make_room()
        if self._state["next_time"] > until and size < budget:
            self._state["time"] = until

    def _make_room(self, level: int = 0) -> None:
        """Grow the arrays that are nearly full; the kernels return before they overflow. Have room for a level."""
        state = self._state
        while max(state["max_level"], state["threshold"], level) + 8 >= self._book.at_least.size:
            if self._book.at_least.size > 4 * MAX_LEVELS:
                raise MemoryError(f"more than {4 * MAX_LEVELS} tasks in a pool")
            self._book = grown(self._book)
        if self._unequal is not None:
            self._unequal.make_room(state)
        elif self._network is not None:
            self._network.make_room(state)
        elif self._sessions is not None:
            self._sessions.make_room(state)
        elif self._table is not None and state["total"] + 8 >= self._table.owner.size:
            self._table = grown_pool_table(self._table)
        if state["path_length"] > 0:
            self._keep_path()

    def _keep_path(self) -> None:
        """Move the path out of the kernel's buffer; only the first million changes are kept."""
        length = int(self._state["path_length"])
        if length and self._path_length < MAX_PATH:
            self._path.append((self._book.path_time[:length].copy(), self._book.path_value[:length].copy()))
            self._path_length += length
        self._state["path_length"] = 0


def stops(horizon: float, *more: Iterable[float]) -> list[float]:
    """Return all times at which a run must stop, in order, the horizon last."""
    return sorted({horizon, *(time for times in more for time in times if 0 < time < horizon)})


def compile_kernels(scenarios: Iterable[Scenario]) -> None:
    """Compile the kernels that the scenarios need, or load them from disk, so that no run is charged for it."""
    for scenario in scenarios:
        _compile(*_smallest(scenario))


def _smallest(scenario: Scenario) -> tuple[Any, str]:
    """Return policy and service of a small system that needs the same kernel."""
    if scenario.info.own:
        return RoundRobin, "exponential"
    if scenario.sized:
        return "greedy-utility", "exponential"
    if not scenario.memoryless:
        return "jsq", "deterministic"
    if scenario.networked:
        return "stale-reports", "exponential"
    return ("jsq" if scenario.aggregate else "round-robin"), "exponential"


def compile_all_kernels() -> None:
    """Compile the kernels of all policies, or load them from disk: workers that are forked later have them."""
    for policy in ("jsq", "round-robin", "stale-reports", "greedy-utility", RoundRobin):
        _compile(policy)
    _compile("jsq", "deterministic")


@cache
def _compile(policy: str | type[Any], service: str = "exponential") -> None:
    """Run the policy's kernel once, on the smallest system; any class will do for policies of the user's own."""
    simulation = Simulation(Scenario(policy=policy, pools=1, load=1.0, service=service), np.random.SeedSequence(0))
    simulation.advance(1.0, max_events=1)
    simulation.tally()
