"""Fluctuations around the balanced load when it is not a whole number: an Ornstein-Uhlenbeck process.

Let Q be the number of pools with at least ceil(load) tasks. With threshold floor(load), and under
join-the-shortest-queue, (Q - pools * (load - floor(load))) / sqrt(pools) tends to the process below in the
large-system limit. What is missing below floor(load) and what is above ceil(load) vanishes at this scale. Whole
loads are in `whole`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, expm1, floor, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from evenly.errors import InputError
from evenly.inputs import number_from, whole_number
from evenly.theory.balance import FloatArray
from evenly.theory.inputs import positive_load

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
MAX_POOLS = 10**9
MAX_VALUES = 10**8  # paths times points: they must fit into memory


@dataclass(frozen=True)
class OrnsteinUhlenbeck:
    """dZ = -Z dt + sqrt(2 load) dW, the fluctuation of the total number of tasks at any load.

    Paper: Thm 3 (b).
    """

    load: float

    @property
    def stationary_variance(self) -> float:
        """The stationary variance."""
        return self.load

    def mean(self, start: float, time: float) -> float:
        """Return the mean at `time`, starting from `start`."""
        return start * exp(-elapsed(time))

    def variance(self, time: float) -> float:
        """Return the variance at `time`, from any fixed start."""
        return -self.load * expm1(-2 * elapsed(time))

    def covariance(self, lag: float) -> float:
        """Return the stationary covariance of two values `lag` apart in time."""
        return self.load * exp(-abs(lag))

    def cdf(self, value: ArrayLike, *, time: float | None = None, start: float = 0.0) -> FloatArray:
        """Return the distribution function at `time`, from `start`; without a time, the stationary one."""
        mean, variance = (0.0, self.load) if time is None else (self.mean(start, time), self.variance(time))
        if variance == 0:
            return np.where(np.asarray(value) >= mean, 1.0, 0.0)
        return np.asarray(ndtr((np.asarray(value) - mean) / sqrt(variance)))

    def sample_path(
        self, times: ArrayLike, rng: np.random.Generator, *, start: float | None = None, paths: int = 1
    ) -> FloatArray:
        """Return values at these times, one row per path, with the exact law; stationary without a start."""
        grid = checked_times(times)
        values = np.empty((checked_paths(paths, grid.size), grid.size))
        state = np.full(paths, start) if start is not None else rng.normal(0, sqrt(self.load), paths)
        for place, gap in enumerate(np.diff(grid, prepend=0.0)):
            state = exp(-gap) * state + sqrt(self.variance(gap)) * rng.standard_normal(paths)
            values[:, place] = state
        return values

    def to_dict(self) -> dict[str, Any]:
        """Return the stationary law, ready for JSON."""
        quantiles = {str(share): float(ndtri(share)) * sqrt(self.load) for share in QUANTILES}
        return {"mean": 0.0, "variance": self.load, "quantiles": quantiles}

    @property
    def occupancy_mean(self) -> float:
        """The fraction of pools with at least ceil(load) tasks in a large system, on average."""
        return self.load - floor(self.load)

    def occupancy_deviation(self, pools: int) -> float:
        """Return the stationary standard deviation of that fraction, which is approximately normal."""
        return sqrt(self.load / whole_number("pools", pools, 1, MAX_POOLS))


def ornstein_uhlenbeck(load: float) -> OrnsteinUhlenbeck:
    """Return the limit for a load that is not a whole number.

    Paper: Thm 3.
    """
    if is_whole(load):
        raise InputError(
            "The limit is reflected, not Ornstein-Uhlenbeck, "
            f"for a whole load such as {float(load):g} (Theorem 4)."
        )
    return OrnsteinUhlenbeck(float(load))


def is_whole(load: float) -> bool:
    """Return True if a valid load is a whole number, which decides between the two limits."""
    return positive_load(load).is_integer()


def elapsed(time: float) -> float:
    """Return the time as a plain float, or raise InputError unless it is zero or positive."""
    return number_from("time", time, 0)


def checked_times(times: ArrayLike) -> FloatArray:
    """Return the times as an array, or raise InputError unless they begin at 0 or later and increase."""
    try:
        grid = np.asarray(times, float)
    except (TypeError, ValueError, OverflowError):
        grid = np.empty(0)
    if grid.ndim != 1 or grid.size == 0 or not np.isfinite(grid).all():
        raise InputError("times must be a list of at least one number.")
    if grid[0] < 0 or (np.diff(grid) <= 0).any():
        raise InputError("times must begin at 0 or later and increase.")
    return grid


def checked_paths(paths: int, points: int) -> int:
    """Return the number of paths, if `points` points of each fit into memory."""
    whole_number("paths", paths, 1, MAX_VALUES)
    if paths * points > MAX_VALUES:
        raise InputError(f"paths times values of each must be at most {MAX_VALUES}, not {paths} times {points}.")
    return int(paths)
