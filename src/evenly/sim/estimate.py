"""Estimate how long a run takes, from a short piece of each scenario, and log it if that is more than a minute."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from contextlib import suppress
from time import thread_time

import numpy as np

from evenly.sim.replication import Plan
from evenly.sim.scenario import Scenario
from evenly.sim.simulation import Simulation

WORTH_SAYING_S = 60.0
_PIECE_S = 0.1  # to measure one scenario
_ALL_PIECES_S = 2.0
_UNITS = ((365.25 * 86400, "years"), (86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"))

_LOG = logging.getLogger(__name__)


def log_estimate(runs: Sequence[tuple[Scenario, Plan]], threads: int) -> None:
    """Measure the speed of each scenario, and log how long all replications will take on `threads` threads."""
    if not _LOG.isEnabledFor(logging.INFO):
        return
    piece = min(_PIECE_S, _ALL_PIECES_S / len(runs))
    events = total = longest = in_python = 0.0
    for scenario, plan in runs:
        expected = expected_events(scenario)
        seconds = expected / events_per_second(scenario, plan, piece)
        events += plan.replications * expected
        total += plan.replications * seconds
        longest = max(longest, seconds)
        if scenario.info.own:
            in_python += plan.replications * seconds
    wall = max(total / threads, longest, in_python)  # Python runs one thread at a time
    if wall > WORTH_SAYING_S:
        speed = speed_text(events / wall)
        _LOG.info(
            f"About {count_text(events)} events: roughly {duration_text(wall)} at {speed}. Ctrl-C stops the run."
        )


def events_per_second(scenario: Scenario, plan: Plan, seconds: float) -> float:
    """Measure the speed on one core. Counts the time of this thread alone, since the run itself is under way."""

    class _Enough(Exception):  # noqa: N818  (not an error)
        pass

    def tick(_: float) -> None:
        if thread_time() - started > seconds:
            raise _Enough

    simulation = Simulation(scenario, np.random.SeedSequence(plan.seed), mean_holding=plan.mean_holding_times)
    started = thread_time()
    with suppress(_Enough):
        simulation.advance(scenario.horizon, tick)
    return max(int(simulation.state["events"]), 1) / max(thread_time() - started, 1e-6)


def expected_events(scenario: Scenario) -> float:
    """Return about how many events a replication has.

    The mean number of tasks does not depend on the policy: it approaches the load, or the capacity if that is
    less, like exp(-t). Departures are taken to follow a wave at once, and losses below the capacity are left out.
    Under other service laws it approaches them sooner or later than that. A task that is still there at the end
    has one event less, so this concerns no more events than there are tasks at the end, in a run of several mean
    task times a small part.
    """
    rate, tasks, events = scenario.service_rate, float(np.mean(scenario.initial_tasks)), 0.0
    ends = [*(phase.start for phase in scenario.phases[1:]), math.inf]
    for phase, end in zip(scenario.phases, ends, strict=True):
        length = min(end, scenario.horizon) - phase.start
        if length <= 0:
            break
        settled = min(phase.load, math.inf if scenario.capacity is None else scenario.capacity)
        decay = -math.expm1(-rate * length)
        swing = (
            phase.amplitude * phase.period / (2 * math.pi) * (1 - math.cos(2 * math.pi * length / phase.period))
        )
        arrivals, departures = phase.load * length + swing, settled * length + swing
        events += rate * (arrivals + departures) + (tasks - settled) * decay
        tasks += (settled - tasks) * decay
    return max(scenario.pools * events, 1.0)


def duration_text(seconds: float) -> str:
    """Return a duration of a minute or more in the unit that suits it."""
    size, unit = next((pair for pair in _UNITS if seconds >= 2 * pair[0]), _UNITS[-1])
    value = seconds / size
    return f"{value:.1f} {unit}" if value < 10 else f"{value:,.0f} {unit}"


def count_text(count: float) -> str:
    """Return a rough count to two digits, without powers of ten: 13,000,000."""
    return f"{float(f'{count:.2g}'):,.0f}"


def speed_text(events_per_second: float) -> str:
    """Return a speed in millions of events per second, to two digits or to the million."""
    millions = events_per_second / 1e6
    return f"{millions:,.0f} million events/s" if millions >= 10 else f"{millions:.2g} million events/s"
