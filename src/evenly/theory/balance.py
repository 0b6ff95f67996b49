"""The balanced load and the thresholds that lead to it."""

from __future__ import annotations

from math import floor

import numpy as np
from numpy.typing import NDArray

from evenly.inputs import number_from, whole_number

_MAX_LEVELS = 10**8
FloatArray = NDArray[np.float64]


def balanced_occupancy(load: float, levels: int) -> FloatArray:
    """Return the fraction of pools with at least i tasks, i < levels, when the load is spread evenly.

    Paper: Sec. 2.1, eq. (1).
    """
    load, levels = number_from("load", load, 0), whole_number("levels", levels, 0, _MAX_LEVELS)
    return np.clip(load - np.arange(levels) + 1, 0.0, 1.0)


def optimal_thresholds(load: float) -> tuple[int, ...]:
    """Return the fluid-optimal thresholds: floor(load), and load - 1 too if the load is a whole number.

    Paper: Thm 2, Cor. 1. Departs: below load 1 the threshold 1 is optimal as well, because tasks then go to
    empty pools while there are any. (The equilibrium of Ex. 1 is q* there, which the paper rules out.)
    """
    load = number_from("load", load, 0)
    best = floor(load)
    if load < 1:
        return (0, 1)
    return (best - 1, best) if load == best else (best,)


def exactly(occupancy: FloatArray) -> FloatArray:
    """Return the fractions with exactly i tasks, from those with at least i, along the last axis."""
    return 0.0 - np.diff(occupancy, axis=-1, append=0.0)  # no negative zeros
