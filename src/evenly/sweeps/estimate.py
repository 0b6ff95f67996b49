"""What a sweep would cost: points, events, time and space, from a few points that stand for all."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenly.sim import Scenario
from evenly.sim.compiling import compile_kernels
from evenly.sim.estimate import count_text, duration_text, events_per_second, expected_events
from evenly.sim.replication import Plan as Replications
from evenly.sweeps import values
from evenly.sweeps.point import Plan, prepare
from evenly.sweeps.table import option_columns

_SAMPLE = 1000  # points whose events are counted
_MEASURED = 24  # points whose speed is measured
_PIECE_S = 0.05
_GPU_SPEED = 2e11  # events per second of the threshold policy; a GPU is not always where a sweep is planned
_PER_POINT_S = 0.0015  # to set up a point, and to write its row
_KEY_BYTES = 28  # identity and seed, which do not compress
_LIST_BYTES = 100


@dataclass(frozen=True)
class Estimate:
    """The cost of a sweep. `seconds` is the time on `workers` processes, or on a GPU if there are none."""

    points: int
    missing: int
    events: float
    seconds: float
    megabytes: float
    workers: int

    def to_dict(self) -> Mapping[str, Any]:
        """Return the JSON object of `evenly sweep --dry-run --json`."""
        return {
            "points": self.points,
            "missing": self.missing,
            "events": self.events,
            "minutes": self.seconds / 60,
            "megabytes": self.megabytes,
            "workers": self.workers,
        }

    def text(self) -> str:
        """Return the estimate in one line."""
        time = duration_text(self.seconds) if self.seconds >= 60 else f"{self.seconds:.0f} seconds"
        if self.seconds < 1:
            time = "less than a second"
        place = f"{self.workers} process{'es' if self.workers != 1 else ''}" if self.workers else "an H200"
        return (
            f"{self.points:,} points, {self.missing:,} of them to run: about {count_text(self.events)} events, "
            f"{time} on {place}, {_megabytes(self.megabytes)} MB."
        )


def _megabytes(number: float) -> str:
    return f"{number:.1f}" if number < 10 else f"{number:,.0f}"


def estimate(plan: Plan, missing: int, workers: int) -> Estimate:
    """Estimate the cost of a plan of which `missing` points are to run. Takes seconds, and writes nothing."""
    sample = list(itertools.islice(plan.grid.order(), _SAMPLE))
    prepared = [prepare(plan, plan.grid.values(index), 1) for index in sample]
    events = [expected_events(scenario) * runs.replications for scenario, runs in prepared]
    per_event = 1 / _GPU_SPEED if plan.gpu else _seconds_per_event(prepared[:_MEASURED])
    processes = 1 if plan.gpu else min(workers, max(missing, 1))
    mean_events = math.fsum(events) / len(events)
    return Estimate(
        points=len(plan.grid),
        missing=missing,
        events=missing * mean_events,
        seconds=missing * (mean_events * per_event + _PER_POINT_S) / processes,
        megabytes=missing * _row_bytes(plan) / 1e6,
        workers=0 if plan.gpu else workers,
    )


def _seconds_per_event(prepared: Sequence[tuple[Scenario, Replications]]) -> float:
    """Measure the speed of some points."""
    seconds, events = [], []
    for scenario, runs in prepared:
        compile_kernels([scenario])
        speed = events_per_second(scenario, runs, _PIECE_S)
        events.append(expected_events(scenario) * runs.replications)
        seconds.append(events[-1] / speed)
    return math.fsum(seconds) / math.fsum(events)


def _row_bytes(plan: Plan) -> float:
    lists = sum(values.VALUES[name].is_list for name in plan.values)
    numbers = len(values.columns(plan.values)) - lists
    varying = len(plan.grid.axes)
    return _KEY_BYTES + 8 * numbers + _LIST_BYTES * lists + 2 * varying + 0.1 * len(option_columns(plan))
