"""One point of a sweep: its identity, its random numbers, its scenario, and the row that running it gives."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenly.errors import InputError
from evenly.inputs import true_or_false, whole_number
from evenly.sim import Result, Scenario
from evenly.sim.compiling import compile_kernels
from evenly.sim.replication import Plan as Replications
from evenly.sim.replication import Replication, replicate
from evenly.sim.run import MAX_REPLICATIONS, check_memory, checked_batches, gather, plan_for
from evenly.sweeps import goal as goals
from evenly.sweeps import values
from evenly.sweeps.grid import Grid, Values
from evenly.sweeps.identity import Lanes, lanes_of_values

_LONGEST_ERROR = 500  # characters


class Row(NamedTuple):
    """The outcome of the point with this number. `seconds` is how long it took, and is not kept."""

    number: int
    error: str | None
    events: int
    replications: int
    values: list[Any]
    seconds: float


@dataclass(frozen=True)
class Plan:
    """What a sweep does: all that a worker needs to know.

    `version` is that of evenly, and `samples` has a scenario for each kernel that the points need. A GPU draws
    other random numbers, so that its points are others too.
    """

    grid: Grid
    values: tuple[str, ...]
    until: goals.Goal | None
    version: str
    samples: tuple[Scenario, ...] = ()
    gpu: bool = False

    @cached_property
    def _shared(self) -> Lanes:
        engine = {"engine": "gpu"} if self.gpu else {}
        return lanes_of_values({"version": self.version, "until": self.until and str(self.until), **engine})

    def sealed(self) -> Plan:
        """Return the plan with the digests of all its values made, for other processes.

        A policy that travels there as code, not by its name, has no source file there.
        """
        starts = np.array([0, *np.cumsum([block.size for block in self.grid.blocks])[:-1]], np.int64)
        self.identities(starts)
        self.seeds(starts)
        return self

    def identities(self, indices: NDArray[np.int64]) -> Lanes:
        """Return 128 bits per point: a digest of its parameters, its seed, its goal and the version."""
        return self.grid.lanes(indices) + self._shared

    def seeds(self, indices: NDArray[np.int64]) -> list[int]:
        """Return the seed of each point's simulation. It depends on the scenario and the given seed alone.

        `evenly simulate --seed` with this number repeats the point.
        """
        lanes = self.grid.lanes(indices, scenario_only=True)
        return [
            int.from_bytes(hashlib.blake2b(row.tobytes(), digest_size=8).digest(), "little") >> 1 for row in lanes
        ]


def scenario_of(given: Values) -> Scenario:
    """Return the scenario of a point, or raise InputError."""
    names = [field.name for field in fields(Scenario)]
    return Scenario(**{name: given[name] for name in names if given.get(name) is not None})


def first_replications(given: Values, goal: goals.Goal | None) -> int:
    """Return the number of replications to begin with, checked."""
    count = whole_number("replications", given["replications"], 1, MAX_REPLICATIONS)
    return count if goal is None else max(count, goals.FIRST)


def prepare(plan: Plan, given: Values, seed: int) -> tuple[Scenario, Replications]:
    """Return the scenario of a point and its replications, all checked; raises InputError if it is impossible."""
    whole_number("seed", given["seed"], 0, 2**64 - 1)
    scenario = scenario_of(given)
    runs = plan_for(
        scenario,
        first_replications(given, plan.until),
        seed,
        checked_batches(given.get("batches")),
        true_or_false("steady_state", given["steady_state"]),
    )
    check_memory([scenario], [runs])
    goal = () if plan.until is None else (plan.until.value,)
    return scenario, replace(runs, records=values.needed_records([*plan.values, *goal]))


def run_point(plan: Plan, index: int) -> Row:
    """Simulate a point and return its row; an error becomes a row too."""
    started = time.perf_counter()
    try:
        scenario, runs = prepare(plan, plan.grid.values(index), plan.seeds(np.array([index]))[0])
        result = _simulate(scenario, runs, plan.until)
    except Exception as error:
        text = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        return failed_row(plan, index, text[:_LONGEST_ERROR], time.perf_counter() - started)
    taken = values.take(result, plan.values)
    return Row(index, None, result.events, result.replications, taken, time.perf_counter() - started)


def failed_row(plan: Plan, index: int, error: str, seconds: float = 0.0) -> Row:
    """Return the row of a point that has no values."""
    return Row(index, error, 0, 0, [None] * len(values.columns(plan.values)), seconds)


def _simulate(scenario: Scenario, runs: Replications, goal: goals.Goal | None) -> Result:
    """Run all replications in this thread: as many as planned, or as the goal needs.

    The parts of a replication stay as they are planned for the first replications, so that none runs twice.
    """
    compile_kernels([scenario])
    outcomes: list[Replication] = []
    while True:
        outcomes += [
            replicate(scenario, runs, index, _no_tick) for index in range(len(outcomes), runs.replications)
        ]
        result = gather(scenario, runs, outcomes, 0.0)
        more = runs.replications if goal is None else goal.next_replications(result)
        if more == runs.replications:
            return result
        runs = replace(runs, replications=more)
        check_memory([scenario], [runs])


def _no_tick(_: float) -> None:
    pass


def run_batch(plan: Plan, indices: Sequence[int], seconds: float) -> tuple[list[Row], list[int]]:
    """Run points for about this long, at least one; return their rows, and the points that are left."""
    started = time.perf_counter()
    rows: list[Row] = []
    for place, index in enumerate(indices):
        if rows and time.perf_counter() - started > seconds:
            return rows, list(indices[place:])
        rows.append(run_point(plan, index))
    return rows, []
