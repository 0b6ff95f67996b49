"""The open sessions of a system with any service law and arrival process."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from evenly.errors import InputError
from evenly.sim.given import MAX_GIVEN, GivenSessions
from evenly.sim.kernels import sessions
from evenly.sim.kernels.clock import CLOCK, set_pace, start_clock, stop_clock
from evenly.sim.kernels.draws import Draws, Method, draw_many, new_draws
from evenly.sim.kernels.given import Given, new_watch, nothing_given
from evenly.sim.kernels.heap import POOL_BITS
from evenly.sim.kernels.ledger import RULES, STATE, Book, PolicyCode, Record
from evenly.sim.kernels.per_pool import new_pool_table
from evenly.sim.kernels.rng import Streams, new_streams
from evenly.sim.kernels.sessions import Drawn, Open
from evenly.sim.scenario import Scenario
from evenly.workload.demand import Phase
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


class Sessions:
    """The arrays of `evenly.sim.kernels.sessions`, which grow as needed.

    Tasks at time 0 get service times like all others: their past is not known. If sessions are given, nothing is
    drawn, and `watch` measures them.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: np.random.SeedSequence,
        streams: Streams,
        rules: Record,
        state: Record,
        given: Given | None = None,
        watch: Record | None = None,
    ) -> None:
        tasks = scenario.tasks_at_start()
        policy = PolicyCode(int(rules["policy"]))
        table, state["tokens"] = new_pool_table(
            tasks, policy, threshold=int(rules["below"]), capacity=int(rules["capacity"])
        )
        self._table = table._replace(owner=np.zeros(0, np.int32))  # the heap knows the pool of each session
        self._drawn = Drawn(service_draws(scenario, seed), gap_draws(scenario, seed))
        sampled = scenario.sampled if policy == PolicyCode.POWER_OF_D else 0
        self._given = given
        self._arrays = given or nothing_given()
        self._watch = new_watch(np.zeros(1, np.int64), 0, 1) if watch is None else watch
        first = _durations_at_start(int(tasks.sum()), self._drawn.service, scenario.service_rate)
        self._open = opened(tasks, first if given is None else given.durations[: first.size], sampled)
        self._clock = _new_clock(scenario, streams, state, self._drawn)

    @property
    def tasks(self) -> NDArray[np.int64]:
        """Tasks of each pool."""
        return self._table.tasks.copy()

    @property
    def in_burst(self) -> bool:
        """Whether a burst is under way."""
        return bool(self._clock["burst"])

    def end_phase(self, rules: Record, state: Record) -> None:
        """Read the clock of the arrivals, before the demand changes."""
        if self._given is None:
            stop_clock(rules, self._clock, float(state["time"]))

    def begin_phase(self, rules: Record, state: Record) -> None:
        """Set the time of the next arrival for the demand that is in force now."""
        if self._given is None:
            start_clock(rules, state, self._clock)
        else:
            left = self._given.starts[int(self._clock["serial"]) :]
            state["next_time"] = left[0] if left.size else math.inf

    def advance(
        self, rules: Record, state: Record, book: Book, streams: Streams, until: float, budget: int
    ) -> None:
        """Call the kernel once."""
        sessions.advance(
            rules,
            state,
            book,
            streams,
            self._open,
            self._drawn,
            self._table,
            self._clock,
            self._arrays,
            self._watch,
            until,
            budget,
        )

    def make_room(self, state: Record) -> None:
        """Grow the heap if it is nearly full; the kernel returns before it overflows."""
        due, numbers = self._open.due, self._open.sessions
        if int(state["total"]) + 8 >= due.size:
            self._open = self._open._replace(
                due=np.concatenate([due, np.zeros_like(due)]),
                sessions=np.concatenate([numbers, np.zeros_like(numbers)]),
            )


def _new_clock(scenario: Scenario, streams: Streams, state: Record, drawn: Drawn) -> Record:
    """Return the clock of the arrivals. A burst may be under way at time 0, with the probability of any time."""
    clock, burst = np.zeros(1, CLOCK)[0], scenario.arrival_process.burst
    clock["serial"] = scenario.tasks_at_start().sum()
    first = np.zeros(1)
    draw_many(drawn.gaps, first)
    clock["left"], clock["factor"], clock["next_switch"] = first[0], 1.0, math.inf
    if burst is not None:
        clock["calm_factor"], clock["burst_factor"] = burst.factors
        clock["calm_length"], clock["burst_length"] = (each / scenario.service_rate for each in burst.lengths)
        clock["burst"] = int(streams.events[0] < burst.share)
        set_pace(state, streams, clock)
    return clock


def _durations_at_start(total: int, service: Draws, service_rate: float) -> Floats:
    """Return the durations of the sessions of time 0, pool by pool."""
    found = np.zeros(total)
    draw_many(service, found)
    return found * (1.0 / service_rate)


def opened(tasks: NDArray[np.int64], ends: Floats, sampled: int) -> Open:
    """Return the sessions of time 0, and the pools in the order of their tasks, the fullest first."""
    total = ends.size
    first = np.argsort(ends, kind="stable")  # what is sorted is a heap
    room = total + max(_ROOM, total // 8)
    due, numbers = np.zeros(room), np.zeros(room, np.int64)
    due[:total] = ends[first]
    numbers[:total] = (first << POOL_BITS) | np.repeat(np.arange(tasks.size), tasks)[first]
    order = np.argsort(-tasks, kind="stable").astype(np.int32)
    place = np.zeros_like(order)
    place[order] = np.arange(order.size)
    return Open(due, numbers, order, place, np.zeros(sampled, np.int64))


def draw_sessions(scenario: Scenario, seed: np.random.SeedSequence) -> GivenSessions:
    """Draw the sessions of a replication ahead: those that begin up to the horizon, and those open at time 0.

    They are the sessions that the session kernel would draw on its way.
    """
    streams, tasks = new_streams(seed), scenario.tasks_at_start()
    rules, state = np.zeros(1, RULES)[0], np.zeros(1, STATE)[0]
    rules["pools"], rules["service_rate"] = scenario.pools, scenario.service_rate
    drawn = Drawn(service_draws(scenario, seed), gap_draws(scenario, seed))
    first = _durations_at_start(int(tasks.sum()), drawn.service, scenario.service_rate)
    clock = _new_clock(scenario, streams, state, drawn)
    room = first.size + _ROOM
    given = Given(np.zeros(room), np.zeros(room), np.zeros(0, np.int32))
    given.durations[: first.size] = first
    for place, phase in enumerate(scenario.phases):
        if phase.start >= scenario.horizon:
            break
        if place:
            stop_clock(rules, clock, phase.start)
        set_phase(rules, phase)
        start_clock(rules, state, clock)
        ends = scenario.phases[place + 1].start if place + 1 < len(scenario.phases) else scenario.horizon
        while not sessions.draw_sessions(
            rules, state, streams, drawn, clock, given, min(ends, scenario.horizon), given.starts.size
        ):
            given = _grown(given)
    size = int(clock["serial"])
    if size == 0:
        raise InputError("No session begins before the horizon: there is nothing to record.")
    return GivenSessions(
        starts=given.starts[:size].copy(),
        durations=given.durations[:size].copy(),
        open_at_start=first.size,
        pools=np.repeat(np.arange(tasks.size, dtype=np.int32), tasks),
    )


def set_phase(rules: Record, phase: Phase) -> None:
    """Let the rules hold a phase of the demand."""
    rules["load"], rules["amplitude"] = phase.load, phase.amplitude
    rules["period"], rules["start"] = phase.period, phase.start
    rules["frequency"] = 2.0 * math.pi / phase.period


def _grown(given: Given) -> Given:
    """Return the same sessions with twice the room, or raise InputError if they are too many."""
    if given.starts.size >= MAX_GIVEN:
        raise InputError(f"A run that is recorded has at most {MAX_GIVEN} sessions: reduce horizon, pools or load.")
    double = min(2 * given.starts.size, MAX_GIVEN)
    starts, durations = np.zeros(double), np.zeros(double)
    starts[: given.starts.size], durations[: given.starts.size] = given.starts, given.durations
    return given._replace(starts=starts, durations=durations)
