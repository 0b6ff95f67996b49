"""Simulate a scenario and keep its sessions: when each began, how long it took and where it went.

Every session is drawn ahead of the run, and the run gets them as it would get those of a log. A replay of the
recorded sessions is therefore the same run, whatever the policy, number for number.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from evenly.errors import InputError
from evenly.inputs import check_function, whole_number
from evenly.sim.compiling import compile_kernels
from evenly.sim.given import MAX_GIVEN, GivenSessions
from evenly.sim.kernels.ahead import list_sessions
from evenly.sim.kernels.given import Given
from evenly.sim.limits import MAX_NAMED_POOLS
from evenly.sim.replication import Plan
from evenly.sim.result import Result
from evenly.sim.run import gather
from evenly.sim.scenario import Scenario, checked_scenario
from evenly.sim.sessions import Arrivals
from evenly.sim.simulation import set_phase
from evenly.sim.system import System
from evenly.sim.workers import Progress, run_all

_ROOM = 1024  # sessions at first


def simulate_recorded(
    scenario: Scenario, *, seed: int = 1, points: int = 0, progress: Progress | None = None
) -> tuple[Result, GivenSessions]:
    """Simulate one replication, and return its result together with its sessions.

    Each session is followed, so a run with exponential service and Poisson arrivals uses other random numbers
    than `simulate` does. It has one sample and therefore no intervals.

    seed: whole number from 0 to 2**64 - 1 (default: 1).
    points: evenly spaced times at which a trajectory is recorded (default: none).
    progress: called from time to time with the fraction done, 0 to 1.
    """
    system = check_recordable(scenario)
    seed = whole_number("seed", seed, 0, 2**64 - 1)
    check_function("progress", progress)
    compile_given([system])
    given = draw_sessions(system, np.random.SeedSequence(seed, spawn_key=(0,)))
    plan = Plan(
        replications=1,
        seed=seed,
        batches=0,
        parts=1,
        mean_holding_times=False,
        points=points,
        trajectories=1,
        given=given,
    )
    started = time.perf_counter()
    outcomes = run_all([(system, plan, 0)], 1, progress)
    result = gather(system, plan, outcomes, time.perf_counter() - started)
    return result, replace(given, pools=outcomes[0].pools)


def check_recordable(scenario: object) -> Scenario:
    """Return the scenario, or raise InputError if its sessions cannot be followed."""
    system = checked_scenario(scenario)
    if system.sized:
        raise InputError("A run with sizes cannot be recorded: leave them out.")
    if system.sticky:
        raise InputError("A run in which clients return cannot be recorded: leave out sticky.")
    whole_number("pools", system.pools, 1, MAX_NAMED_POOLS, why="for a run that is recorded")
    return system


def compile_given(scenarios: list[Scenario]) -> None:
    """Compile the kernels that take given sessions, so that no run is charged for it."""
    compile_kernels(each if each.networked else replace(each, service="deterministic") for each in scenarios)


def draw_sessions(scenario: Scenario, seed: np.random.SeedSequence) -> GivenSessions:
    """Draw the sessions of a replication: those open at time 0, and those that begin up to the horizon.

    They are the sessions that the session kernel would draw on its way.
    """
    system = System(scenario, seed)
    arrivals = Arrivals(system, seed)
    rules, state, clock = system.rules, system.state, arrivals.clock
    tasks = scenario.tasks_at_start()
    first = arrivals.durations_at_start()
    room = first.size + _ROOM
    given = Given(np.zeros(room), np.zeros(room), np.zeros(0, np.int32))
    given.durations[: first.size] = first
    phases = [phase for phase in scenario.phases if phase.start < scenario.horizon]
    ends = [*(phase.start for phase in phases[1:]), scenario.horizon]
    for phase, end in zip(phases, ends, strict=True):
        if phase.start > 0:
            arrivals.end_phase(rules, state)
        set_phase(rules, phase)
        arrivals.begin_phase(rules, state)
        while not list_sessions(rules, state, system.streams, arrivals.drawn, clock, given, end):
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


def _grown(given: Given) -> Given:
    """Return the same sessions with twice the room, or raise InputError if they are too many."""
    size = given.starts.size
    if size >= MAX_GIVEN:
        raise InputError(f"A recorded run has at most {MAX_GIVEN} sessions: reduce horizon, pools or load.")
    starts, durations = np.zeros(2 * size), np.zeros(2 * size)
    starts[:size], durations[:size] = given.starts, given.durations
    return given._replace(starts=starts, durations=durations)
