"""Run scenarios: parallel replications from one seed, with the same result on any number of cores."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from evenly.errors import InputError
from evenly.inputs import check_function, is_listing, shown, true_or_false, whole_number
from evenly.own_policy import find_class
from evenly.policies import PARAMETERS, check_distinct, find_policy
from evenly.sim.comparison import Comparison
from evenly.sim.compiling import compile_kernels
from evenly.sim.intervals import BATCH_TASKS, FEWEST_BATCHES, MANY, part_count
from evenly.sim.replication import Plan, Replication
from evenly.sim.result import Result
from evenly.sim.scenario import Scenario, checked_scenario
from evenly.sim.scenario_checks import check_memoryless
from evenly.sim.workers import Progress, run_all

MAX_POLICIES = 1000
MAX_REPLICATIONS = 10**5
MAX_POINTS = 10**5
MAX_WORKERS = 1024
MAX_BATCHES = 10**4
MAX_SNAPSHOTS = 10**6  # in all replications
MAX_CELLS = 25_000_000  # samples times levels, and snapshots times levels: a few hundred megabytes each


def simulate(
    scenario: Scenario,
    *,
    replications: int = 1,
    seed: int = 1,
    batches: int | None = None,
    mean_holding_times: bool = False,
    points: int = 0,
    trajectories: int | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """Simulate a scenario exactly, event by event.

    scenario: the system, its policy and its demand, and how long to run.
    replications: independent runs, 1 to 100,000 (default: 1). With two or more, intervals come from them.
    seed: whole number from 0 to 2**64 - 1 (default: 1). The result is the same on any number of cores.
    batches: parts of equal length that a single replication is cut into for intervals: 0 for none, or 2 to 10,000
        (default: 50 if each lasts at least four mean task times; in a shorter run, as many as last ten, from 5 on;
        0 if it is even shorter or the load varies). Ignored with two or more replications. Under service laws that
        vary more than exponential times, they must last longer.
    mean_holding_times: replace the time between events by its mean (default: False). Long-run averages then vary
        less and the run is faster, but times of single events lose their meaning. Needs a constant load.
    points: evenly spaced times at which a trajectory is recorded, both ends of the run included: 0 for none, or 2
        to 100,000 (default: 0).
    trajectories: replications that are recorded at these points, beginning with the first (default: all).
    workers: threads, 1 to 1024 (default: one per usable core).
    progress: called from time to time with the fraction done, 0 to 1; from several threads, but never two at once.

    The discrete-time conversion behind `mean_holding_times` is due to Hordijk, Iglehart and Schassberger (1976).
    """
    return compare(
        [scenario],
        replications=replications,
        seed=seed,
        batches=batches,
        mean_holding_times=mean_holding_times,
        points=points,
        trajectories=trajectories,
        workers=workers,
        progress=progress,
    )[0]


def compare(
    scenarios: Sequence[Scenario],
    *,
    replications: int = 1,
    seed: int = 1,
    batches: int | None = None,
    mean_holding_times: bool = False,
    points: int = 0,
    trajectories: int | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Simulate several scenarios on the same random numbers.

    Under the same demand and without losses, all have exactly the same arrivals and departures. With another
    service law or arrival process, this holds with losses too, for the tasks that are not lost.

    scenarios: the systems; `with_policies` makes one per policy.
    replications, seed, batches, mean_holding_times, points, trajectories: as in `simulate`, for each scenario.
    workers: threads for all scenarios together, 1 to 1024 (default: one per usable core).
    progress: called with the fraction done of all scenarios, from 0 to 1.
    """
    given = _checked_scenarios(scenarios)
    replications = whole_number("replications", replications, 1, MAX_REPLICATIONS)
    seed = whole_number("seed", seed, 0, 2**64 - 1)
    batches, workers = checked_batches(batches), _checked_workers(workers)
    points, kept = _checked_snapshots(points, replications if trajectories is None else trajectories)
    mean_holding_times = true_or_false("mean_holding_times", mean_holding_times)
    check_function("progress", progress)
    if not given:
        return Comparison(results=())
    plans = [
        replace(
            plan_for(scenario, replications, seed, batches, mean_holding_times), points=points, trajectories=kept
        )
        for scenario in given
    ]
    check_memory(given, plans)
    jobs = [(s, plan, index) for s, plan in zip(given, plans, strict=True) for index in range(replications)]
    for scenario in given:
        if scenario.info.own:
            find_class(scenario.policy)  # fail before the work
    compile_kernels(given)
    started = time.perf_counter()
    outcomes = run_all(jobs, min(workers or usable_cores(), len(jobs)), progress)
    seconds = time.perf_counter() - started
    results = (
        gather(scenario, plan, outcomes[place * replications : (place + 1) * replications], seconds)
        for place, (scenario, plan) in enumerate(zip(given, plans, strict=True))
    )
    return Comparison(results=tuple(results))


def plan_for(
    scenario: Scenario, replications: int, seed: int, batches: int | None, mean_holding_times: bool
) -> Plan:
    """Return the plan of a scenario's replications, without trajectories. The numbers have been checked."""
    if mean_holding_times and not scenario.steady:
        raise InputError("mean_holding_times needs a constant load, not a schedule.")
    if mean_holding_times:
        check_memoryless("mean_holding_times", scenario)
    if mean_holding_times and scenario.networked:
        raise InputError("mean_holding_times needs messages that take no time, and policies without a clock.")
    length = (scenario.horizon - scenario.warmup) / scenario.memory
    parts = part_count(length, replications)
    count = _default_batches(scenario, length) if batches is None else batches
    if replications > 1:
        count = 0
    return Plan(
        replications=replications,
        seed=seed,
        batches=count,
        parts=parts if replications > 1 else max(count, 1),
        mean_holding_times=mean_holding_times,
        points=0,
        trajectories=0,
    )


def with_policies(scenario: Scenario, policies: Sequence[str | type[Any]]) -> list[Scenario]:
    """Return the scenario under each of the policies, each with only the parameters that the policy takes.

    policies: names, or classes of your own, each once.
    """
    system = checked_scenario(scenario)
    if not is_listing(policies):
        raise InputError(f"policies must be a list of names, such as ['jsq'], not {shown(policies)}.")
    given = list(islice(policies, MAX_POLICIES + 1))
    takes = [find_policy(policy, own=True).parameters for policy in given]
    check_distinct(given)
    if len(given) > MAX_POLICIES:
        raise InputError(f"policies must be at most {MAX_POLICIES}.")
    dropped: list[dict[str, Any]] = [dict.fromkeys(set(PARAMETERS) - taken) for taken in takes]
    return [replace(system, policy=policy, **none) for policy, none in zip(given, dropped, strict=True)]


def _checked_scenarios(scenarios: Sequence[Scenario]) -> list[Scenario]:
    if not is_listing(scenarios) or isinstance(scenarios, Mapping):
        given = "one Scenario" if isinstance(scenarios, Scenario) else shown(scenarios)
        raise InputError(f"scenarios must be a list of Scenario objects, not {given}.")
    return [checked_scenario(scenario) for scenario in scenarios]


def checked_batches(batches: int | None) -> int | None:
    """Return the number of batches, or raise InputError if it is out of bounds."""
    if batches is not None and whole_number("batches", batches, 0, MAX_BATCHES) == 1:
        raise InputError("batches must be 0 or at least 2, not 1.")
    return None if batches is None else int(batches)


def _default_batches(scenario: Scenario, length: float) -> int:
    """Return the number of batches of a single run, whose length is in units of the scenario's memory.

    They are its parts, or fewer if their levels would need gigabytes, or a few long ones. There are none in a run
    that is too short for these.
    """
    if not scenario.steady:  # batches would differ by more than chance
        return 0
    most = MAX_CELLS // scenario.levels
    count = min(part_count(length, 1), most)
    if count > MANY:
        return count
    few = min(math.floor(length / BATCH_TASKS * (1 + 1e-12)), MANY, most)
    return few if few >= FEWEST_BATCHES else 0


def _checked_workers(workers: int | None) -> int | None:
    return None if workers is None else whole_number("workers", workers, 1, MAX_WORKERS)


def _checked_snapshots(points: int, trajectories: int) -> tuple[int, int]:
    points = whole_number("points", points, 0, MAX_POINTS)
    trajectories = whole_number("trajectories", trajectories, 0, MAX_REPLICATIONS)
    if points == 1:
        raise InputError("points must be 0 or at least 2, not 1.")
    if trajectories * points > MAX_SNAPSHOTS:
        raise InputError(
            f"points times trajectories must be at most {MAX_SNAPSHOTS}, not {trajectories * points}."
        )
    return points, trajectories


def check_memory(scenarios: Sequence[Scenario], plans: Sequence[Plan]) -> None:
    """Reject a run whose records need gigabytes: each sample and each snapshot has a row of levels."""
    samples = sum(
        plan.replications * max(plan.batches, 1) * scenario.levels
        for scenario, plan in zip(scenarios, plans, strict=True)
    )
    if samples > MAX_CELLS:
        raise InputError(
            f"The records of all samples have {samples} levels, more than {MAX_CELLS}: "
            "reduce replications, batches, load, initial_tasks or threshold."
        )
    snapshots = sum(
        plan.points * plan.trajectories * scenario.levels for scenario, plan in zip(scenarios, plans, strict=True)
    )
    if snapshots > MAX_CELLS:
        raise InputError(
            f"The snapshots have {snapshots} levels, more than {MAX_CELLS}: "
            "reduce points, trajectories, load, initial_tasks or threshold."
        )


def gather(scenario: Scenario, plan: Plan, outcomes: list[Replication], seconds: float) -> Result:
    """Return the result of all replications of a scenario."""
    return Result(
        scenario=scenario,
        seed=plan.seed,
        replications=plan.replications,
        batches=plan.batches,
        mean_holding_times=plan.mean_holding_times,
        seconds=seconds,
        events=sum(outcome.events for outcome in outcomes),
        windows=tuple(window for outcome in outcomes for window in outcome.windows),
        parts=np.array([outcome.parts for outcome in outcomes]),
        endings=tuple(outcome.ending for outcome in outcomes if outcome.ending is not None),
        trajectories=tuple(outcome.trajectory for outcome in outcomes if outcome.trajectory is not None),
    )


def usable_cores() -> int:
    """Return the number of cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
