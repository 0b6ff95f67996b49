"""What records cost: the aggregate kernel with all of them and with few, next to lean chains in C++."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from bench.baselines import compile_chain
from bench.cpp import compiled
from bench.measure import ALPHA, POOLS, Figure, Rows
from evenly.sim import Scenario
from evenly.sim.records import ALL, Records
from evenly.sim.simulation import Simulation

SOURCE = Path(__file__).with_name("lean.cpp")
LOADS = (10.5, 5.5)
FALL_AT = int(Fraction(ALPHA) * POOLS)
NONE = Records(0)


def kernel_rate(load: float, horizon: float, records: Records, *, mean_holding: bool) -> float:
    """Return the events of the kernel per second of processor time."""
    scenario = Scenario(pools=POOLS, load=load, alpha=ALPHA, horizon=1e6)
    simulation = Simulation(scenario, np.random.SeedSequence(1), mean_holding=mean_holding, records=records)
    simulation.advance(min(horizon, 10.0))
    before, started = int(simulation.state["events"]), time.process_time()
    simulation.advance(10.0 + horizon)
    return (int(simulation.state["events"]) - before) / (time.process_time() - started)


def run_lean(program: Path, load: float, events: int, seed: int, *, pools: int = POOLS, alpha: str = ALPHA) -> Any:  # noqa: ANN401
    """Run the lean chain, whose rates are whole numbers, and return its output."""
    words = (pools, int(pools * load), int(Fraction(alpha) * pools), events, seed)
    command = [str(program), *map(str, words)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def lean_rate(program: Path, load: float, horizon: float) -> float:
    """Return the events of the lean chain per second of processor time."""
    run = run_lean(program, load, int(2 * POOLS * load * horizon), 1)
    return float(run["events"] / run["seconds"])


def exact_rate(program: Path, load: float, horizon: float) -> float:
    """Return the same for the C++ chain with exponential holding times, and the records of the lean chain."""
    command = [str(program), str(POOLS), repr(load), str(FALL_AT), repr(horizon), "1", "lean"]
    run = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return float(run["events"] / run["seconds"])


def records(rounds: int, scale: float) -> Iterator[Figure]:
    """Yield the figures of both loads, as they are measured. All runs alternate."""
    with tempfile.TemporaryDirectory() as folder:
        lean, chain = compiled(SOURCE, Path(folder)), compile_chain(Path(folder))
        if lean is None or chain is None:
            return
        for load in LOADS:
            yield from _at_load(load, lean, chain, rounds, 1000 * scale / load)


def _at_load(load: float, lean: Path, chain: Path, rounds: int, horizon: float) -> list[Figure]:
    rows = Rows(
        rounds,
        lambda: lean_rate(lean, load, horizon),
        lambda: kernel_rate(load, horizon, NONE, mean_holding=True),
        lambda: kernel_rate(load, horizon, Records.SPREAD, mean_holding=True),
        lambda: kernel_rate(load, horizon, ALL, mean_holding=True),
        lambda: exact_rate(chain, load, horizon),
        lambda: kernel_rate(load, horizon, NONE, mean_holding=False),
        lambda: kernel_rate(load, horizon, ALL, mean_holding=False),
    )
    mean, exact = f"load {load:g}, mean holding times", f"load {load:g}, exponential holding times"
    return [
        Figure(f"{mean}: lean chain in C++", rows.median(0) / 1e6, "million events/s"),
        Figure(f"{mean}: kernel, time at each threshold", rows.median(1) / 1e6, "million events/s"),
        Figure(f"{mean}: kernel / lean chain, same records", rows.ratio(1, 0), "times", 0.9),
        Figure(f"{mean}: with the spread, cost", rows.ratio(1, 2), "times"),
        Figure(f"{mean}: with all records, cost", rows.ratio(1, 3), "times", 1.3, at_least=False),
        Figure(f"{exact}: lean chain in C++", rows.median(4) / 1e6, "million events/s"),
        Figure(f"{exact}: kernel, time at each threshold", rows.median(5) / 1e6, "million events/s"),
        Figure(f"{exact}: kernel / lean chain, same records", rows.ratio(5, 4), "times", 0.9),
        Figure(f"{exact}: with all records, cost", rows.ratio(5, 6), "times", 1.3, at_least=False),
    ]
