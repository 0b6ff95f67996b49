"""Systems of all sizes on one probability space: the same primitives drive every number of pools.

One unit-rate Poisson process counts the arrivals, one sequence of uniforms chooses the levels that they go to,
and each level has its own unit-rate Poisson process, which counts the departures from pools with exactly that
number of tasks. A system of n pools runs these processes at its own clocks, and draws nothing else. Path by path,
its occupancy approaches solutions of the fluid equations as n grows.

Paper: App. B.1.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, CancelledError, ThreadPoolExecutor, wait
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenly.errors import InputError
from evenly.inputs import shown, whole_number
from evenly.sim.kernels.common import SYSTEM, Book, Shared, advance, exponential, generator
from evenly.sim.kernels.rng import Floats
from evenly.sim.limits import MAX_LEVELS
from evenly.sim.run import MAX_CELLS, MAX_POINTS, MAX_SNAPSHOTS, MAX_WORKERS, usable_cores
from evenly.sim.scenario import Scenario, checked_scenario
from evenly.sim.simulation import stops
from evenly.sim.system import MAX_PATH
from evenly.sim.trajectory import Trajectory
from evenly.workload.demand import Phase

MAX_SYSTEMS = 100
_ARRIVALS, _SELECTION, _DEPARTURES = range(3)  # the first word of a generator's spawn key; a level is the second
_FIRST_LEVELS = 16
_PATH_BUFFER = 4096
_EVENTS_PER_CALL = 200_000  # so that a run can be stopped soon
_WAKE_UP = 0.1  # seconds between checks for an interrupt


class _System:
    """The system of one number of pools, advanced from stop to stop."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self.scenario = scenario
        self._seed = seed
        self._shared = Shared(generator(seed, _ARRIVALS), generator(seed, _SELECTION))
        counts = scenario.at_least_at_start()
        self._record = np.zeros(1, SYSTEM)[0]
        record = self._record
        record["pools"] = scenario.pools
        record["learning"] = scenario.rule is not None
        record["fall_at"] = -1 if scenario.rule is None else scenario.rule.fall_at(scenario.pools)
        record["service_rate"] = scenario.service_rate
        record["threshold"] = scenario.initial_threshold
        record["lowest"] = np.flatnonzero(counts == scenario.pools)[-1]
        record["highest"] = counts.size - 1
        record["next_arrival"] = exponential(self._shared.arrivals)
        self._book = Book(
            counts,
            np.zeros(0),
            np.zeros((0, 4, 1), np.uint64),
            np.zeros(_PATH_BUFFER),
            np.zeros(_PATH_BUFFER, int),
        )
        self._path: list[tuple[Floats, NDArray[np.int64]]] = []
        self._make_room()

    @property
    def at_least(self) -> NDArray[np.int64]:
        return self._book.at_least[: int(self._record["highest"]) + 1].copy()

    @property
    def threshold(self) -> int:
        return int(self._record["threshold"])

    @property
    def path(self) -> tuple[Floats, NDArray[np.int64]]:
        """Times and values of the threshold's changes; only the first million are kept."""
        self._keep_path()
        times, values = zip(*self._path, strict=True) if self._path else ((), ())
        return np.concatenate([*times, np.zeros(0)]), np.concatenate([*values, np.zeros(0, np.int64)])

    def begin(self, phase: Phase) -> None:
        """Start a phase: the arrivals' clock continues from its reading, at a new rate."""
        record = self._record
        record["clock"] += record["arrival_rate"] * (phase.start - record["start"])
        record["start"] = phase.start
        record["arrival_rate"] = self.scenario.pools * phase.load * self.scenario.service_rate

    def advance(self, until: float, stop: threading.Event) -> None:
        while not stop.is_set():
            if advance(self._record, self._book, self._shared, until, _EVENTS_PER_CALL):
                return
            self._make_room()
        raise CancelledError

    def _make_room(self) -> None:
        record, book = self._record, self._book
        highest, threshold = int(record["highest"]), int(record["threshold"])
        if highest > 4 * MAX_LEVELS:
            raise MemoryError(f"more than {4 * MAX_LEVELS} tasks in a pool")
        if max(highest, threshold) + 3 >= book.at_least.size:
            room = 2 * max(highest, threshold) + _FIRST_LEVELS
            book = book._replace(at_least=np.pad(book.at_least, (0, room - book.at_least.size)))
        if highest + 2 >= book.left.size:
            levels = range(book.left.size, 2 * highest + _FIRST_LEVELS)
            fresh = np.array([generator(self._seed, _DEPARTURES, level) for level in levels])
            left = np.array([exponential(state) for state in fresh])
            book = book._replace(
                left=np.concatenate([book.left, left]), departures=np.concatenate([book.departures, fresh])
            )
        self._book = book
        self._keep_path()

    def _keep_path(self) -> None:
        length = int(self._record["path_length"])
        if length and sum(times.size for times, _ in self._path) < MAX_PATH:
            self._path.append((self._book.path_time[:length].copy(), self._book.path_value[:length].copy()))
        self._record["path_length"] = 0


def simulate_sizes(
    scenario: Scenario,
    *,
    pools: Sequence[int],
    seed: int = 1,
    points: int = 201,
    workers: int | None = None,
) -> list[Trajectory]:
    """Simulate a scenario with several numbers of pools, all on the primitives of one seed.

    scenario: policy threshold without a capacity; the threshold may be fixed or learn, and the load may change in
        steps. Its own number of pools is replaced.
    pools: numbers of pools, one per system, at most 100 of them.
    seed: whole number from 0 to 2**64 - 1 (default: 1).
    points: evenly spaced times at which each system is recorded, both ends of the run included, 2 to 100,000
        (default: 201).
    workers: threads, 1 to 1024 (default: one per usable core).

    Returns one trajectory per number of pools, in the order given. Each depends on the seed and its own number of
    pools alone.

    Paper: App. B.1, eq. (18). Departs: for loads that change, the arrivals are a unit-rate Poisson process at the
    time n times the integral of the load; with a constant load this is the paper's process of rate load at n t.
    """
    scenarios = _checked_systems(scenario, pools)
    seed = whole_number("seed", seed, 0, 2**64 - 1)
    points = whole_number("points", points, 2, MAX_POINTS)
    if points * len(scenarios) > MAX_SNAPSHOTS:
        raise InputError(
            f"points times systems must be at most {MAX_SNAPSHOTS}, not {points} times {len(scenarios)}."
        )
    levels = _levels_reached(scenario)
    if points * len(scenarios) * levels > MAX_CELLS:
        raise InputError(
            f"{points} points times {len(scenarios)} systems times about {levels} levels are more than "
            f"{MAX_CELLS}: reduce points, horizon, load or initial_tasks."
        )
    workers = None if workers is None else whole_number("workers", workers, 1, MAX_WORKERS)
    stop = threading.Event()
    threads = ThreadPoolExecutor(min(workers or usable_cores(), len(scenarios)))
    try:
        futures = [threads.submit(_trajectory, each, seed, points, stop) for each in scenarios]
        done, left = wait(futures, _WAKE_UP, FIRST_EXCEPTION)  # Python notices an interrupt after a timeout only
        while left and not any(future.exception() for future in done):
            done, left = wait(futures, _WAKE_UP, FIRST_EXCEPTION)
        return [future.result() for future in futures if future in done]  # raises the error of a system
    finally:
        stop.set()
        threads.shutdown(cancel_futures=True)


def _levels_reached(scenario: Scenario) -> int:
    """Return about how many tasks a pool has at most: those at the start, and what arrives until it settles."""
    peak = max(phase.load for phase in scenario.phases)
    arriving = peak * min(1.0, scenario.service_rate * scenario.horizon)
    return scenario.at_least_at_start().size + int(arriving) + 64


def _checked_systems(scenario: Scenario, pools: Sequence[int]) -> list[Scenario]:
    """Return the scenario with each number of pools, or raise InputError if they cannot share their primitives."""
    checked_scenario(scenario)
    if scenario.policy != "threshold":
        raise InputError(f"simulate_sizes only supports the policy threshold, not {scenario.info.name}.")
    if scenario.capacity is not None:
        raise InputError(f"simulate_sizes does not support a capacity, and {scenario.capacity} was given.")
    if scenario.sticky:
        raise InputError("simulate_sizes does not support clients who return: leave out sticky.")
    if not scenario.memoryless:
        raise InputError(
            "simulate_sizes only supports exponential service and Poisson arrivals, "
            f"not {' and '.join(scenario.laws)}."
        )
    if any(phase.amplitude for phase in scenario.phases):
        raise InputError("simulate_sizes only supports loads that change in steps, not waves.")
    if not isinstance(pools, Sequence | np.ndarray) or isinstance(pools, str | bytes):
        raise InputError(f"pools must be a list of whole numbers, one for each system, not {shown(pools)}.")
    if isinstance(pools, np.ndarray) and pools.ndim != 1:
        raise InputError(f"pools must be a flat list of whole numbers, not an array of {pools.ndim} dimensions.")
    whole_number("the number of systems", len(pools), 1, MAX_SYSTEMS)
    return [replace(scenario, pools=size) for size in pools]


def _trajectory(scenario: Scenario, seed: int, points: int, stop: threading.Event) -> Trajectory:
    """Simulate one system from time 0 to the horizon."""
    system = _System(scenario, seed)
    grid = np.linspace(0.0, scenario.horizon, points).tolist()
    at_grid = set(grid)
    phases = {phase.start: phase for phase in scenario.phases}
    rows: list[NDArray[np.int64]] = []
    thresholds: list[int] = []
    for time in [0.0, *stops(scenario.horizon, grid, phases)]:
        system.advance(time, stop)
        if time in phases:
            system.begin(phases[time])
        if time in at_grid:
            rows.append(system.at_least)
            thresholds.append(system.threshold)
    levels = max(row.size for row in rows) + 1
    at_least = np.array([np.pad(row, (0, levels - row.size)) for row in rows])
    demand = np.array([scenario.demand(time) for time in grid])
    change_times, change_thresholds = system.path
    return Trajectory(
        scenario=scenario,
        seed=seed,
        times=np.array(grid),
        pools_at_least=at_least,
        threshold=np.array(thresholds),
        max_tasks=np.array([row.size - 1 for row in rows]),
        imbalance=_imbalance(at_least / scenario.pools, demand),
        demand=demand,
        tokens_held=np.zeros(points, np.int64),
        change_times=change_times,
        change_thresholds=change_thresholds,
    )


def _imbalance(occupancy: Floats, demand: Floats) -> Floats:
    """Return, per time, the distance between the occupancy and the balanced one for the demand at that time.

    Paper: e(t) in Sec. 5.3.
    """
    levels = occupancy.shape[1]
    squares = (occupancy - np.clip(demand[:, None] + 1 - np.arange(levels), 0, 1)) ** 2
    # Levels past the columns are empty; a balanced occupancy has 1 there up to the demand, then its fraction.
    whole = np.floor(demand)
    beyond = np.maximum(whole + 1 - levels, 0) + (whole + 1 >= levels) * (demand - whole) ** 2
    return np.asarray(np.sqrt(squares.sum(axis=1) + beyond))
