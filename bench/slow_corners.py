"""Corners that could be slow: swinging loads, large samples and uneven starts, each next to a steady load."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.measure import Figure, Rows
from evenly.sim import Scenario
from evenly.sim.simulation import Simulation

EVENTS = 100_000  # of a measurement, times the scale
SWIFT = 0.1  # times fewer, where an event takes microseconds
GOAL = 3.0
FAR = 1e12  # beyond any event

Options = dict[str, Any]


def waves() -> Iterator[tuple[str, Options, Options]]:
    """Yield swinging loads, and the same loads at rest."""
    for load, wave, system in (
        (6.0, "~4/24", {"pools": 100, "alpha": "0.9"}),
        (1000.0, "~500/24", {"pools": 100, "policy": "random"}),
        (10_000.0, "~5000/24", {"pools": 100, "policy": "random"}),
        (5.0, "~5/0.01", {"pools": 100, "alpha": "0.9"}),
        (5.0, "~5/0.0001", {"pools": 100, "alpha": "0.9"}),
    ):
        steady: Options = {**system, "initial_tasks": load}
        schedule = f"0:{load:g}{wave}"
        yield f"schedule {schedule}", {**steady, "schedule": schedule}, {**steady, "load": load}


def samples() -> Iterator[tuple[str, Options, Options]]:
    """Yield large samples, and samples of two pools."""
    system: Options = {"policy": "power-of-d", "pools": 1000, "load": 5.5, "initial_tasks": 5.5}
    for size in (64, 512):
        yield f"power-of-d, {size} of 1,000 pools", {**system, "sample_size": size}, system


def starts() -> Iterator[tuple[str, Options, Options]]:
    """Yield starts with all numbers of tasks from 0 to 9,999, and balanced starts."""
    for policy in ("threshold", "jsq", "random"):
        system: Options = {"policy": policy, "pools": 10_000, "load": 5.5}
        yield (
            f"{policy}, 0 to 9,999 tasks",
            {**system, "initial_tasks": range(10_000)},
            {**system, "initial_tasks": 5.5},
        )


def nanoseconds(options: Options, events: int) -> float:
    """Return the time per event, after the first thousand."""
    simulation = Simulation(Scenario(**options), np.random.SeedSequence(1))
    simulation.advance(FAR, max_events=1000)
    started = time.perf_counter()
    simulation.advance(FAR, max_events=events)
    return (time.perf_counter() - started) / events * 1e9


def slow_corners(rounds: int, scale: float) -> Iterator[Figure]:
    """Yield the time per event of each corner, and its ratio to that of the steady load."""
    for name, corner, steady in (*waves(), *samples(), *starts()):
        swift = "/0.0" in name
        events = max(int(EVENTS * scale * (SWIFT if swift else 1.0)), 1)
        rows = Rows(
            rounds,
            lambda corner=corner, events=events: nanoseconds(corner, events),  # type: ignore[misc]
            lambda steady=steady, events=events: nanoseconds(steady, events),  # type: ignore[misc]
        )
        yield Figure(name, rows.median(0), "ns per event")
        yield Figure(f"{name} / steady load", rows.ratio(0, 1), "times", GOAL, at_least=False)
