"""Random loads, thresholds and occupancies.

Paper: Sec. 3.2 (its bounds hold from every initial state).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

import numpy as np
from numpy.typing import NDArray

MAX_LEVELS = 15
LOADS = (0.3, 8.0)


@dataclass(frozen=True)
class Case:
    """A load, a threshold and an initial occupancy, q(0), q(1), ..."""

    load: float
    threshold: int
    occupancy: tuple[float, ...]

    def tasks(self, pools: int) -> NDArray[np.int64]:
        """Return the tasks of each of `pools` pools with this occupancy, up to rounding."""
        ranks = (np.arange(pools) + 0.5) / pools
        return np.asarray((np.asarray(self.occupancy[1:])[:, None] > ranks).sum(axis=0), np.int64)


def random_cases(rng: np.random.Generator, count: int) -> list[Case]:
    """Return random cases. A quarter of the loads are whole. Thresholds are within 3 of floor(load)."""
    return [_random_case(rng) for _ in range(count)]


def _random_case(rng: np.random.Generator) -> Case:
    load = float(rng.integers(1, int(LOADS[1]))) if rng.random() < 0.25 else float(rng.uniform(*LOADS))
    shares = np.sort(rng.random(rng.integers(1, MAX_LEVELS + 1)))[::-1]
    shares[: rng.integers(0, shares.size + 1)] = 1.0  # levels that all pools have filled
    threshold = max(floor(load) + int(rng.integers(-3, 4)), 0)
    return Case(load, threshold, (1.0, *shares.tolist()))
