"""One replication, advanced from stop to stop; between stops a kernel does the work.

Events do not depend on the stops: the next event is drawn before a stop and kept across it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from evenly.sim.engine import new_engine
from evenly.sim.given import GivenSessions
from evenly.sim.kernels.given import settle_watch
from evenly.sim.kernels.integrals import settle
from evenly.sim.kernels.ledger import Record, balance, copied
from evenly.sim.network import Network
from evenly.sim.records import ALL, Records
from evenly.sim.scenario import Scenario
from evenly.sim.system import Path, System
from evenly.sim.tally import Tally
from evenly.sim.unequal import Unequal
from evenly.workload.demand import Phase

_SECONDS_PER_CALL = 0.05  # so that a run can be stopped soon
_FIRST_EVENTS = 1000
_WAVE_STEPS = 50_000  # levels to go through in a first call
_MAX_EVENTS = 2_000_000
_BLAS_LEVELS = 10_000  # beyond it, BLAS starts threads, which on busy cores wait for each other

Tick = Callable[[float], None]


class Simulation:
    """One simulated system. `keep_path` records every change of the threshold.

    If sessions are given, they are not drawn; `keep_pools` and `observed` are those of `System`. What is not among
    the `records` is NaN in every tally.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: np.random.SeedSequence,
        *,
        mean_holding: bool = False,
        keep_path: bool = False,
        given: GivenSessions | None = None,
        keep_pools: bool = False,
        observed: bool = False,
        records: Records = ALL,
    ) -> None:
        self.scenario = scenario
        self._system = System(
            scenario,
            seed,
            mean_holding=mean_holding,
            keep_path=keep_path,
            given=given,
            keep_pools=keep_pools,
            observed=observed,
        )
        self._records = records
        self._system.rules["omit"] = int(ALL & ~records)
        self._engine = new_engine(self._system, seed)
        self._later_phases = list(scenario.phases)
        self._begin_phase(self._later_phases.pop(0))

    @property
    def time(self) -> float:
        """The current simulated time."""
        return float(self.state["time"])

    @property
    def state(self) -> Record:
        """The record of `evenly.sim.kernels.ledger.STATE`; read-only."""
        return self._system.state

    @property
    def at_least(self) -> NDArray[np.int64]:
        """Number of pools with at least i tasks, up to the maximum."""
        return self._system.book.at_least[: int(self.state["max_level"]) + 1].copy()

    @property
    def tasks(self) -> NDArray[np.int64] | None:
        """Tasks of each pool; None if the policy needs only the number of pools at each level."""
        return self._engine.tasks

    @property
    def unequal(self) -> Unequal | None:
        """The classes of pools; None if pools have no sizes."""
        return self._engine if isinstance(self._engine, Unequal) else None

    @property
    def network(self) -> Network | None:
        """What is on the way, and what the dispatcher knows; None if messages take no time."""
        return self._engine if isinstance(self._engine, Network) else None

    @property
    def replayed(self) -> bool:
        """Whether the sessions were given."""
        return self._system.given.starts.size > 0

    @property
    def pools_of_sessions(self) -> NDArray[np.int32]:
        """The pool of each given session, -1 if it was lost or has not begun; empty unless they are kept."""
        return self._system.given.pools

    @property
    def crowded(self) -> float:
        """Time integral of the given sessions in crowded pools, see `evenly.sim.kernels.given`."""
        return float(self._settled_watch()["crowded_area"])

    def _settled_watch(self) -> Record:
        """Return a copy of the watch, up to now."""
        watch = self._system.watch.copy()
        settle_watch(watch, self.state, self.scenario.pools)
        return watch

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
    def path(self) -> Path:
        """Times and values of the threshold's changes."""
        return self._system.path

    def advance(self, until: float, tick: Tick | None = None, max_events: int | None = None) -> None:
        """Simulate up to a time, or for a number of events.

        `tick` is called with the current time at intervals.
        """
        last = None if max_events is None else int(self.state["events"]) + max_events
        while self.time < until:
            stop = min(until, self._later_phases[0].start if self._later_phases else math.inf)
            left = self._budget if last is None else min(self._budget, last - int(self.state["events"]))
            if left == 0:
                return
            self._run_kernel(stop, left)
            if self._later_phases and self.time == self._later_phases[0].start:
                self._begin_phase(self._later_phases.pop(0))
            self._system.make_room()
            self._engine.make_room()
            if tick is not None:
                tick(self.time)

    def tally(self) -> Tally:
        """Return the records so far."""
        state, book = self.state.copy(), copied(self._system.book)  # a tally must not change the run
        settle(self._system.rules, state, book)
        spread = float(state["spread_area"])
        if self.replayed:
            spread = float(self._settled_watch()["spread_area"])
        levels = book.area + book.at_least * self.time
        unequal = self.unequal
        utility, class_tasks = (0.0, np.zeros(0)) if unequal is None else unequal.integrals(self.time)
        return Tally(
            time=self.time,
            at_least=levels if Records.LEVELS in self._records else np.full(levels.size, math.nan),
            max_time=book.max_time,
            threshold_time=book.threshold_time,
            gap=float(state["gap_area"]) if Records.IMBALANCE in self._records else math.nan,
            spread=spread if Records.SPREAD in self._records else math.nan,
            events=int(state["events"]),
            arrivals=int(state["arrivals"]),
            lost_tasks=int(state["lost"]),
            without_token=int(state["without_token"]),
            returned=int(state["returned"]),
            kept=int(state["kept"]),
            **self._engine.messages(),
            change_count=int(state["changes"]),
            utility=utility,
            class_tasks=class_tasks,
        )

    def _begin_phase(self, phase: Phase) -> None:
        """Start a phase, and rescale the remaining time to the next event."""
        state, rules, arrivals = self.state, self._system.rules, self._engine.arrivals
        self._budget = self._first_events(phase)
        first = self.time == 0
        if not first:
            self._settle_phase()
            if arrivals is not None:
                arrivals.end_phase(rules, state)
        left, rate = float(self._system.streams.holding[state["position"]]), float(state["rate"])
        if not first and rate > 0:
            left = (float(state["next_time"]) - self.time) * rate
        set_phase(rules, phase)
        peak = self.scenario.pools * self.scenario.service_rate * (phase.load + phase.amplitude)
        rate = peak + int(state["total"]) * self.scenario.service_rate
        state["rate"] = rate
        state["next_time"] = self.time + left / rate if rate > 0 else math.inf
        if arrivals is not None:
            arrivals.begin_phase(rules, state)
        state["gap"] = balance(self._system.book, self.scenario.pools, phase.load)
        state["load"] = phase.load

    def _settle_phase(self) -> None:
        """Bring the integrals up to the end of a phase.

        If sessions are given, only the distance to balance is cut here: the other sums round as without phases.
        """
        state, book = self.state, self._system.book
        kept = {name: float(state[name]) for name in ("max_since", "threshold_since")}
        max_time, threshold_time = book.max_time.copy(), book.threshold_time.copy()
        settle(self._system.rules, state, book)
        if self.replayed:
            book.max_time[:], book.threshold_time[:] = max_time, threshold_time
            for name, value in kept.items():
                state[name] = value

    def _first_events(self, phase: Phase) -> int:
        """Return the budget of the first call of a kernel. An event under a swift wave goes through all levels."""
        if not phase.amplitude:
            return _FIRST_EVENTS
        return max(1, min(_FIRST_EVENTS, _WAVE_STEPS // self._system.book.at_least.size))

    def _run_kernel(self, until: float, budget: int) -> None:
        """Call a kernel once, and set the budget of the next call by the time that this one takes."""
        started = perf_counter()
        self._engine.advance(until, budget)
        seconds = perf_counter() - started
        if seconds > _SECONDS_PER_CALL:
            self._budget = max(self._budget // 2, 1)
        elif budget == self._budget and seconds < _SECONDS_PER_CALL / 4:
            self._budget = min(2 * self._budget, _MAX_EVENTS)


def set_phase(rules: Record, phase: Phase) -> None:
    """Let the rules hold a phase of the demand."""
    rules["load"], rules["amplitude"] = phase.load, phase.amplitude
    rules["period"], rules["start"] = phase.period, phase.start
    rules["frequency"] = 2.0 * math.pi / phase.period


def stops(horizon: float, *more: Iterable[float]) -> list[float]:
    """Return all times at which a run must stop, in order, the horizon last."""
    return sorted({horizon, *(time for times in more for time in times if 0 < time < horizon)})
