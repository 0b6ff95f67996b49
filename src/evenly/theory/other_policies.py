"""Other policies in the large-system limit: their equation and its fixed points.

Power-of-d sends a task to the shortest of d pools chosen at random. In the limit its occupancy follows

    q_i' = load (q_{i-1}^d - q_i^d) - i (q_i - q_{i+1}),    i >= 1,    q_0 = 1,

where i (q_i - q_{i+1}) is the rate of departures, as under any policy. Random assignment is d = 1. The shortest
queue balances the load.

Paper: Sec. 5.2, whose Fig. 5 compares with these policies, and Sec. 1.2. Departs: the paper does not write the
equation; it is that of Vvedenskaya et al. (1996) and Mitzenmacher (2001) with a server for each task. Paths over
time are in `fluid/other_policies.py`.
"""

from __future__ import annotations

from math import ceil

import numpy as np
from scipy.linalg import solve_banded

from evenly.inputs import whole_number
from evenly.theory.balance import FloatArray, balanced_occupancy
from evenly.theory.inputs import positive_load
from evenly.theory.poisson import likely_levels, normalised, poisson_weights

MAX_SAMPLE_SIZE = 512
_MAX_STEPS = 100  # of Newton's method, which needs about ten


def jsq_fixed_point(load: float) -> FloatArray:
    """Return the balanced occupancy, where the shortest queue settles.

    Paper: Sec. 2.1, eq. (1).
    """
    load = positive_load(load)
    return balanced_occupancy(load, ceil(load) + 1)


def random_fixed_point(load: float) -> FloatArray:
    """Return where random assignment settles: the tails of a Poisson law, cut where less than 1e-19 is left."""
    load = positive_load(load)
    return normalised(poisson_weights(load, 0, last_level(load)), 0)[0]


def power_of_d_fixed_point(*, load: float, sample_size: int = 2) -> FloatArray:
    """Find where power-of-d settles, by Newton's method from the balanced occupancy.

    Summed over the levels from i on, the equation says load q_{i-1}^d >= i q_i, so that q_i is at most
    load / i times q_{i-1}: no more is cut off beyond the last level than under random assignment.
    """
    load, sample_size = positive_load(load), checked_sample_size(sample_size)
    q = balanced_occupancy(load, last_level(load) + 1)[1:]
    rounding = 4 * np.finfo(float).eps * load * sample_size
    for _ in range(_MAX_STEPS):
        change = drift(q, load, sample_size)
        q = np.clip(q - solve_banded((1, 1), jacobian(q, load, sample_size), change), 0.0, 1.0)
        if np.max(np.abs(change)) <= rounding:
            return np.trim_zeros(np.concatenate(([1.0], q)), "b")
    raise ArithmeticError(f"No fixed point found for load {load} and sample size {sample_size}.")


def drift(q: FloatArray, load: float, sample_size: int) -> FloatArray:
    """Return q' for levels 1 and up; levels beyond the last are empty."""
    powers = np.concatenate(([1.0], q**sample_size))
    departures = np.arange(1, len(q) + 1) * -np.diff(q, append=0.0)
    return -load * np.diff(powers) - departures


def jacobian(q: FloatArray, load: float, sample_size: int) -> FloatArray:
    """Return the derivatives of the drift: rows above, on and below the diagonal, as SciPy packs bands."""
    levels = np.arange(1.0, len(q) + 1)
    slopes = load * sample_size * q ** (sample_size - 1)
    bands = np.zeros((3, len(q)))
    bands[0, 1:] = levels[:-1]
    bands[1] = -slopes - levels
    bands[2, :-1] = slopes[:-1]
    return bands


def last_level(load: float) -> int:
    """Return the level beyond which a Poisson law has less than 1e-19 left, in pools and in tasks."""
    return likely_levels(load, 0)[1]


def checked_sample_size(sample_size: int) -> int:
    """Return the number of pools sampled, or raise InputError if it is out of bounds."""
    return whole_number("sample_size", sample_size, 1, MAX_SAMPLE_SIZE)
