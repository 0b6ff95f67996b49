"""Many independent systems, observed at a few times, and the distance between two samples of them.

Paper: Sec. 3.3 (its limits are distributions, so they only show in many systems).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenly.sim import Scenario
from evenly.sim.simulation import Simulation

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

LEVELS = 12  # numbers of tasks that are recorded, from 0 on


@dataclass(frozen=True)
class Systems:
    """Pools with at least i tasks, `states[system, time, i]`, and their averages over time, `means[system, i]`."""

    states: Counts
    means: Floats


def watch(scenario: Scenario, times: Iterable[float], systems: int, seed: int) -> Systems:
    """Simulate independent systems one after the other. The runs are too short for threads to pay off."""
    grid = list(times)
    states, means = np.zeros((systems, len(grid), LEVELS), np.int64), np.zeros((systems, LEVELS))
    for index in range(systems):
        simulation = Simulation(scenario, np.random.SeedSequence(seed, spawn_key=(index,)))
        for place, time in enumerate(grid):
            simulation.advance(time)
            counts = simulation.at_least[:LEVELS]
            states[index, place, : counts.size] = counts
        tally = simulation.tally()
        means[index] = tally.at_least[:LEVELS] / tally.time
    return Systems(states, means)


def shares(counts: Counts, size: int) -> Floats:
    """Return the fraction of systems with a count of at most 0, 1, 2, ..."""
    return np.asarray(np.cumsum(np.bincount(counts, minlength=size)) / counts.size)


def largest_distance(first: Counts, second: Counts) -> float:
    """Return the Kolmogorov distance between two samples of pairs of counts: the larger of the two columns'."""
    size = int(max(first.max(), second.max())) + 1
    columns = zip(first.T, second.T, strict=True)
    return float(max(np.abs(shares(one, size) - shares(other, size)).max() for one, other in columns))
