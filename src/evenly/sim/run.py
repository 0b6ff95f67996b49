"""Run scenarios: replications in parallel on all cores, from one seed, the same whatever the cores."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenly.errors import InputError
from evenly.policies import PARAMETERS, find_policy
from evenly.sim.intervals import batch_count
from evenly.sim.result import Ending, Result, Trajectory
from evenly.sim.scenario import Scenario, whole_number
from evenly.sim.simulation import Simulation, Tick, stops
from evenly.sim.tally import Tally

MAX_REPLICATIONS = 10**5
MAX_POINTS = 10**5
MAX_WORKERS = 1024
_WAKE_UP = 0.1  # seconds between looks for an interrupt
MAX_BATCHES = 10**4
MAX_SNAPSHOTS = 10**6  # in all replications

Progress = Callable[[float], None]  # hears of the fraction done


@dataclass(frozen=True)
class _Plan:
    """What to record of each replication."""

    replications: int
    seed: int
    batches: int
    steady_state: bool
    points: int
    recorded: int  # replications of which snapshots are kept


@dataclass(frozen=True)
class _Replication:
    """What one replication yields."""

    windows: list[Tally]
    events: int
    ending: Ending | None
    trajectory: Trajectory | None


def simulate(
    scenario: Scenario,
    *,
    replications: int = 1,
    seed: int = 1,
    batches: int | None = None,
    steady_state: bool = False,
    points: int = 0,
    recorded: int | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """Simulate a scenario exactly.

    Intervals come from the replications, or from `batches` of equal length when there is one only (by
    default 20, if each lasts at least ten mean task times). `steady_state` replaces holding times by their
    means: lower variance and more speed for long-run averages, but times of single events lose their meaning.
    `points` evenly spaced snapshots, both ends included, are kept of the first `recorded` replications (by
    default of all).

    The discrete-time conversion is due to Hordijk, Iglehart and Schassberger (1976).
    """
    return compare(
        [scenario],
        replications=replications,
        seed=seed,
        batches=batches,
        steady_state=steady_state,
        points=points,
        recorded=recorded,
        workers=workers,
        progress=progress,
    )[0]


def compare(
    scenarios: Sequence[Scenario],
    *,
    replications: int = 1,
    seed: int = 1,
    batches: int | None = None,
    steady_state: bool = False,
    points: int = 0,
    recorded: int | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> list[Result]:
    """Simulate several scenarios on the same random numbers.

    Under the same demand and without losses, all see the very same arrivals and departures.
    """
    kept = replications if recorded is None else recorded
    _check(replications, seed, batches, workers)
    _check_snapshots(points, kept)
    if not scenarios:
        return []
    plans = []
    for scenario in scenarios:
        if steady_state and not scenario.steady:
            raise InputError("A steady state needs a constant load, not a schedule.")
        count = batches
        if count is None:
            count = batch_count(scenario.horizon - scenario.warmup, scenario.service_rate)
        plans.append(_Plan(replications, seed, count if replications == 1 else 0, steady_state, points, kept))
    jobs = [(s, plan, index) for s, plan in zip(scenarios, plans, strict=True) for index in range(replications)]
    started = time.perf_counter()
    outcomes = _run_all(jobs, workers, progress)
    seconds = time.perf_counter() - started
    return [
        _gather(scenario, plan, outcomes[place * replications : (place + 1) * replications], seconds)
        for place, (scenario, plan) in enumerate(zip(scenarios, plans, strict=True))
    ]


def with_policies(scenario: Scenario, policies: Sequence[str]) -> list[Scenario]:
    """The same scenario under each of the policies, each with the parameters that it takes."""
    return [replace(scenario, policy=policy, **_dropped(policy)) for policy in policies]


def _dropped(policy: str) -> dict[str, Any]:
    """The parameters that the policy does not take, to be left out."""
    return dict.fromkeys(name for name in PARAMETERS if name not in find_policy(policy).parameters)


def _check(replications: int, seed: int, batches: int | None, workers: int | None) -> None:
    whole_number("replications", replications, 1, MAX_REPLICATIONS)
    whole_number("seed", seed, 0, 2**64 - 1)
    if batches is not None:
        whole_number("batches", batches, 0, MAX_BATCHES)
    if batches == 1:
        raise InputError("batches must be 0 or at least 2, not 1.")
    if workers is not None:
        whole_number("workers", workers, 1, MAX_WORKERS)


def _check_snapshots(points: int, recorded: int) -> None:
    whole_number("points", points, 0, MAX_POINTS)
    whole_number("recorded", recorded, 0, MAX_REPLICATIONS)
    if points == 1:
        raise InputError("points must be 0 or at least 2, not 1.")
    if recorded * points > MAX_SNAPSHOTS:
        raise InputError(
            f"points times recorded replications must be at most {MAX_SNAPSHOTS}, not {recorded * points}."
        )


def _gather(scenario: Scenario, plan: _Plan, outcomes: list[_Replication], seconds: float) -> Result:
    return Result(
        scenario=scenario,
        seed=plan.seed,
        replications=plan.replications,
        batches=plan.batches,
        steady_state=plan.steady_state,
        seconds=seconds,
        events=sum(outcome.events for outcome in outcomes),
        samples=[window for outcome in outcomes for window in outcome.windows],
        endings=[outcome.ending for outcome in outcomes if outcome.ending is not None],
        trajectories=[outcome.trajectory for outcome in outcomes if outcome.trajectory is not None],
    )


class _Stopped(Exception):  # noqa: N818  (not an error: another replication failed, or Ctrl-C)
    pass


def _run_all(
    jobs: list[tuple[Scenario, _Plan, int]], workers: int | None, progress: Progress | None
) -> list[_Replication]:
    """Threads suffice: the kernels release the interpreter lock."""
    stop = threading.Event()
    finished = threading.Event()  # all have, or one has failed
    lock = threading.Lock()
    done = 0.0  # in replications
    left = len(jobs)
    failures: list[BaseException] = []

    def work(job: tuple[Scenario, _Plan, int]) -> _Replication:
        nonlocal left
        try:
            return _replicate(*job, ticker(job[0].horizon))
        except BaseException as error:
            failures.append(error)
            finished.set()
            raise
        finally:
            with lock:
                left -= 1
                if left == 0:
                    finished.set()

    def ticker(horizon: float) -> Tick:
        before = 0.0

        def tick(now: float) -> None:
            nonlocal before, done
            if stop.is_set():
                raise _Stopped
            if progress is not None:
                with lock:
                    done += now / horizon - before
                    before = now / horizon
                    progress(done / len(jobs))

        return tick

    pool = ThreadPoolExecutor(min(workers or usable_cores(), len(jobs)))
    try:
        futures = [pool.submit(work, job) for job in jobs]
        while not finished.wait(_WAKE_UP):  # without a time-out an interrupt can go unheard
            pass
        if failures:
            raise failures[0]
        return [future.result() for future in futures]
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _replicate(scenario: Scenario, plan: _Plan, index: int, tick: Tick) -> _Replication:
    """One replication; its random numbers depend on the seed and its index alone."""
    seed = np.random.SeedSequence(plan.seed, spawn_key=(index,))
    points = plan.points if index < plan.recorded else 0
    simulation = Simulation(scenario, seed, mean_holding=plan.steady_state, keep_path=points > 0)
    edges = np.linspace(scenario.warmup, scenario.horizon, max(plan.batches, 1) + 1).tolist()
    grid = np.linspace(0.0, scenario.horizon, points).tolist() if points else []
    snapshots = [_snapshot(simulation)] if grid else []
    tallies = [simulation.tally()] if scenario.warmup == 0 else []
    at_grid, at_edge = set(grid), set(edges)
    for time_ in stops(scenario.horizon, edges, grid):
        simulation.advance(time_, tick)
        if time_ in at_grid:
            snapshots.append(_snapshot(simulation))
        if time_ in at_edge:
            tallies.append(simulation.tally())
    windows = [later - earlier for earlier, later in pairwise(tallies)]
    state = simulation.state
    has_threshold = int(simulation.state["threshold"]) >= 0
    return _Replication(
        windows=windows,
        events=int(state["events"]),
        ending=Ending(int(state["threshold"]), float(state["last_change"])) if has_threshold else None,
        trajectory=_trajectory(simulation, grid, snapshots) if grid else None,
    )


@dataclass(frozen=True)
class _Snapshot:
    """A system at a time."""

    at_least: NDArray[np.int64]
    threshold: int
    tokens: int
    imbalance: float


def _snapshot(simulation: Simulation) -> _Snapshot:
    state = simulation.state
    return _Snapshot(simulation.at_least, int(state["threshold"]), int(state["tokens"]), simulation.imbalance)


def _trajectory(simulation: Simulation, grid: list[float], snapshots: list[_Snapshot]) -> Trajectory:
    levels = max(snapshot.at_least.size for snapshot in snapshots) + 1
    change_times, change_thresholds = simulation.path
    return Trajectory(
        times=np.array(grid),
        pools_at_least=np.array([np.pad(s.at_least, (0, levels - s.at_least.size)) for s in snapshots]),
        threshold=np.array([max(snapshot.threshold, -1) for snapshot in snapshots]),
        max_tasks=np.array([snapshot.at_least.size - 1 for snapshot in snapshots]),
        imbalance=np.array([snapshot.imbalance for snapshot in snapshots]),
        demand=np.array([simulation.scenario.demand(time_) for time_ in grid]),
        tokens_held=np.array([snapshot.tokens for snapshot in snapshots]),
        change_times=change_times,
        change_thresholds=change_thresholds,
    )
