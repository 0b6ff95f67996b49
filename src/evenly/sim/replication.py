"""One replication of a scenario: its samples, the ending of its threshold and, if recorded, its trajectory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenly.sim.given import GivenSessions
from evenly.sim.intervals import part_row
from evenly.sim.records import ALL, Records
from evenly.sim.scenario import Scenario
from evenly.sim.simulation import Simulation, Tick, stops
from evenly.sim.tally import Tally
from evenly.sim.trajectory import Ending, Trajectory


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The replications of a scenario, and what to record of each.

    Each replication has one window, or one per batch of a single one, and is cut into `parts` for intervals.
    """

    replications: int
    seed: int
    batches: int
    parts: int
    mean_holding_times: bool
    points: int
    trajectories: int  # replications that are recorded
    given: GivenSessions | None = None  # instead of sessions drawn on the way
    records: Records = ALL  # those left out are NaN


@dataclass(frozen=True)
class Replication:
    """The records of one replication."""

    windows: list[Tally]
    parts: NDArray[np.float64]  # one row per part, see `evenly.sim.intervals.COLUMNS`
    events: int
    ending: Ending | None
    trajectory: Trajectory | None
    pools: NDArray[np.int32] | None = None  # of the given sessions


def replicate(scenario: Scenario, plan: Plan, index: int, tick: Tick) -> Replication:
    """Simulate one replication. Its random numbers depend on the seed and its index alone."""
    seed = np.random.SeedSequence(plan.seed, spawn_key=(index,))
    points = plan.points if index < plan.trajectories else 0
    simulation = Simulation(
        scenario,
        seed,
        mean_holding=plan.mean_holding_times,
        keep_path=points > 0,
        given=plan.given,
        keep_pools=plan.given is not None,
        records=plan.records,
    )
    edges = [float(edge) for edge in np.linspace(scenario.warmup, scenario.horizon, plan.parts + 1)]
    grid = np.linspace(0.0, scenario.horizon, points).tolist() if points else []
    snapshots = [_snapshot(simulation)] if grid else []
    first = last = simulation.tally() if scenario.warmup == 0 else None
    windows: list[Tally] = []
    rows: list[list[float]] = []
    at_grid, at_edge = set(grid), set(edges)
    for time_ in stops(scenario.horizon, edges, grid):
        simulation.advance(time_, tick)
        if time_ in at_grid:
            snapshots.append(_snapshot(simulation))
        if time_ in at_edge:
            earlier, last = last, simulation.tally()
            first = first or last
            if earlier is not None:
                part = last - earlier
                rows.append(part_row(part, scenario.pools, fixed_tokens=scenario.fixed_tokens))
                windows += [part] if len(edges) == 2 or plan.batches else []
    assert first is not None and last is not None
    state = simulation.state
    has_threshold = int(simulation.state["threshold"]) >= 0
    return Replication(
        windows=windows or [last - first],
        parts=np.array(rows),
        events=int(state["events"]),
        ending=Ending(int(state["threshold"]), float(state["last_change"])) if has_threshold else None,
        trajectory=_trajectory(simulation, plan.seed, index, grid, snapshots) if grid else None,
        pools=simulation.pools_of_sessions if simulation.replayed else None,
    )


@dataclass(frozen=True)
class _Snapshot:
    """The state of a system at one time."""

    at_least: NDArray[np.int64]
    threshold: int
    tokens: int
    imbalance: float


def _snapshot(simulation: Simulation) -> _Snapshot:
    state = simulation.state
    return _Snapshot(simulation.at_least, int(state["threshold"]), int(state["tokens"]), simulation.imbalance)


def _trajectory(
    simulation: Simulation, seed: int, replication: int, grid: list[float], snapshots: list[_Snapshot]
) -> Trajectory:
    levels = max(snapshot.at_least.size for snapshot in snapshots) + 1
    change_times, change_thresholds = simulation.path
    return Trajectory(
        scenario=simulation.scenario,
        seed=seed,
        replication=replication,
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
