"""The measurements, side by side in one run: ratios remain meaningful on a noisy machine, where times do not."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench import baselines, simpy_model
from evenly.sim import Scenario, simulate
from evenly.sim.simulation import Simulation

POOLS, LOAD, ALPHA = 500, 10.5, "0.97"
PEAK_MEMORY = """
import resource
from evenly import Scenario, simulate
simulate(Scenario(pools=10**6, load=10.5, alpha="0.97", horizon={horizon}))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


@dataclass(frozen=True)
class Figure:
    """A measured number and its goal."""

    what: str
    value: float
    unit: str
    goal: float | None = None
    at_least: bool = True

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None without a goal."""
        if self.goal is None:
            return None
        return self.value >= self.goal if self.at_least else self.value <= self.goal


def kernel_rate(horizon: float, *, pools: int = POOLS, steady_state: bool = False) -> float:
    """Return the events per second of the aggregate kernel: learning threshold, balanced start."""
    scenario = Scenario(pools=pools, load=LOAD, alpha=ALPHA, threshold=10, initial_tasks=LOAD, horizon=1e6)
    simulation = Simulation(scenario, np.random.SeedSequence(1), mean_holding=steady_state)
    simulation.advance(min(horizon, 1.0))
    before = int(simulation.state["events"])
    started = time.perf_counter()
    simulation.advance(1.0 + horizon)
    return (int(simulation.state["events"]) - before) / (time.perf_counter() - started)


def chain_rate(program: Path, horizon: float, *, steady_state: bool = False) -> float:
    """Return the events per second of the C++ program."""
    run = baselines.run_chain(
        program, POOLS, LOAD, float(ALPHA), horizon=horizon, seed=1, mean_holding=steady_state
    )
    return run["events"] / run["seconds"]


def simpy_rate(horizon: float) -> float:
    """Return the events per second of the SimPy model."""
    run = simpy_model.run(POOLS, LOAD, float(ALPHA), horizon, 1)
    return run["events"] / run["seconds"]


class Rows:
    """Measurements taken in turn, one row per round, so that a slow moment of the machine affects all alike."""

    def __init__(self, rounds: int, *measures: Callable[[], float]) -> None:
        for measure in measures:
            measure()  # compile, and warm the caches
        self._rows = [[measure() for measure in measures] for _ in range(rounds)]

    def median(self, column: int) -> float:
        """Return the median of a column."""
        return statistics.median(row[column] for row in self._rows)

    def ratio(self, over: int, under: int) -> float:
        """Return the median of the ratios within rounds."""
        return statistics.median(row[over] / row[under] for row in self._rows)


def against_simpy(rounds: int, scale: float) -> list[Figure]:
    """Compare the kernel with a straightforward model in the best-known simulation library."""
    rows = Rows(rounds, lambda: kernel_rate(60 * scale), lambda: simpy_rate(4 * scale))
    return [
        Figure("aggregate kernel", rows.median(0) / 1e6, "million events/s"),
        Figure("SimPy", rows.median(1) / 1e6, "million events/s"),
        Figure("aggregate kernel / SimPy", rows.ratio(0, 1), "times", 200),
    ]


def against_cpp(rounds: int, scale: float) -> list[Figure]:
    """Compare the kernel with the same chain in C++, if there is a compiler."""
    with tempfile.TemporaryDirectory() as folder:
        program = baselines.compile_chain(Path(folder))
        if program is None:
            return []
        horizon = 60 * scale
        rows = Rows(
            rounds,
            lambda: kernel_rate(horizon),
            lambda: chain_rate(program, horizon),
            lambda: kernel_rate(horizon, steady_state=True),
            lambda: chain_rate(program, horizon, steady_state=True),
        )
    return [
        Figure("C++, same chain and records", rows.median(1) / 1e6, "million events/s"),
        Figure("aggregate kernel / C++", rows.ratio(0, 1), "times", 0.9),
        Figure("with mean holding times", rows.median(2) / 1e6, "million events/s"),
        Figure("with mean holding times / C++ with the same", rows.ratio(2, 3), "times"),
    ]


def against_size(rounds: int, scale: float) -> list[Figure]:
    """Compare a million pools with a thousand, and measure the memory of a whole process."""
    rows = Rows(
        rounds,
        lambda: kernel_rate(40 * scale, pools=10**3),
        lambda: kernel_rate(0.04 * scale, pools=10**6),
    )
    code = PEAK_MEMORY.format(horizon=0.2 * scale)
    memory = float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
    return [
        Figure("ns per event, 1,000 pools", 1e9 / rows.median(0), "ns"),
        Figure("ns per event, 1,000,000 pools", 1e9 / rows.median(1), "ns"),
        Figure("1,000,000 pools / 1,000 pools", rows.ratio(0, 1), "times", 1.5, at_least=False),
        Figure("peak memory, 1,000,000 pools", memory, "MB", 300, at_least=False),
    ]


def on_two_cores(rounds: int, scale: float) -> list[Figure]:
    """Compare replications on two cores with one."""
    scenario = Scenario(pools=POOLS, load=LOAD, alpha=ALPHA, horizon=100 * scale)

    def speed(workers: int) -> float:
        result = simulate(scenario, replications=8, workers=workers)
        return result.events / result.seconds

    rows = Rows(rounds, lambda: speed(1), lambda: speed(2))
    return [Figure("two cores / one, 8 replications", rows.ratio(1, 0), "times", 1.8)]


def start_up(rounds: int) -> list[Figure]:
    """Measure what a user waits for, in fresh processes. The first simulation compiles."""
    evenly = [sys.executable, "-m", "evenly"]
    run = [*evenly, "simulate", "--pools", "100", "--load", "5.5", "--alpha", "0.9", "--horizon", "10"]
    rows = Rows(
        rounds,
        lambda: _seconds([sys.executable, "-c", ""]),
        lambda: _seconds([sys.executable, "-c", "import evenly"]),
        lambda: _seconds([*evenly, "--help"]),
    )
    with tempfile.TemporaryDirectory() as cache:
        first = _seconds(run, NUMBA_CACHE_DIR=cache)
        later = statistics.median(_seconds(run, NUMBA_CACHE_DIR=cache) for _ in range(rounds))
    return [
        Figure("import evenly, beyond an empty Python", rows.median(1) - rows.median(0), "s", 0.3, at_least=False),
        Figure("evenly --help", rows.median(2), "s", 0.5, at_least=False),
        Figure("first simulate, with compilation", first, "s", 15, at_least=False),
        Figure("next simulate", later, "s", 2, at_least=False),
    ]


def _seconds(command: list[str], **environment: str) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **environment})
    return time.perf_counter() - started
