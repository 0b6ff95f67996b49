"""The stationary law of the limit for a whole load, computed on a grid.

By the running supremum of `reflected`, and because the total X looks the same backwards in time,

    f(x, y) = P(Q(load + 1) <= y given X = x) = P(X(u) <= y exp((load + 1) u) for all u >= 0 given X(0) = x)

which, measured in sqrt(load), solves

    (load + 1) y f_y = x f_x - f_xx  for x < y,    f(y, y) = 0,    f(x, infinity) = 1.

That is a heat equation with -log(y) as its time. It is marched from large y down to 0 in the coordinate y - x,
which is Z, so that the boundary stays in place. Sums along the way, over x and over y, give the two marginals, and
results on two grids are extrapolated to a step of zero. At any load, means then have a relative error of 5e-7, and
probabilities an error of 1e-5.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import asinh, log1p, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import PchipInterpolator
from scipy.linalg import solve_banded
from scipy.optimize import brentq
from scipy.special import ndtr

from evenly.frames import ReadOnly
from evenly.inputs import number_from, whole_number
from evenly.theory.balance import FloatArray
from evenly.theory.diffusion.fractional import MAX_POOLS, QUANTILES
from evenly.theory.diffusion.whole import reflected

CELLS = 250  # of the coarser grid
REACH = 8.0  # standard deviations of the total beyond which probabilities are negligible
LONGEST = 16.0  # time u after which the total is unlikely to have been negative throughout
SMALLEST = 1e-290
EDGE = 1e-6  # quantiles closer to 0 or 1 are not resolved


@dataclass(frozen=True)
class Marginal(ReadOnly):
    """The law of one coordinate: its moments, and its distribution function at values from 0 upwards.

    In between, it is interpolated in asinh(value / scale): linear in the value below the scale, else logarithmic.
    """

    mean: float
    variance: float
    values: FloatArray
    probabilities: FloatArray
    scale: float

    @property
    def deviation(self) -> float:
        """The standard deviation."""
        return sqrt(self.variance)

    @cached_property
    def _curve(self) -> PchipInterpolator:
        return PchipInterpolator(np.arcsinh(self.values / self.scale), self.probabilities)

    def cdf(self, value: ArrayLike) -> FloatArray:
        """Return the distribution function."""
        return np.asarray(self._curve(np.arcsinh(np.clip(value, 0.0, self.values[-1]) / self.scale)))

    def density(self, value: ArrayLike) -> FloatArray:
        """Return the density; 0 at negative values."""
        at = np.asarray(value, float)
        within = np.clip(at, 0.0, self.values[-1])
        inside = self._curve(np.arcsinh(within / self.scale), 1) / np.hypot(within, self.scale)
        return np.where(at == within, inside, 0.0)

    def quantile(self, probability: float) -> float:
        """Return the value that is not exceeded with this probability."""
        probability = number_from("probability", probability, EDGE, 1 - EDGE)
        last = np.arcsinh(self.values[-1] / self.scale)
        place = brentq(lambda at: float(self._curve(at)) - probability, 0.0, last, xtol=1e-12)
        return float(self.scale * np.sinh(place))

    def to_dict(self) -> dict[str, Any]:
        """Return the result ready for JSON."""
        return {
            "mean": self.mean,
            "variance": self.variance,
            "quantiles": {str(share): self.quantile(share) for share in QUANTILES},
        }


@dataclass(frozen=True)
class StationarySummary:
    """The stationary law: `below` is Z and `above` is Q(load + 1); higher levels are empty.

    `residual` is how far the moments miss E[Q^2] / (load + 2) = E[QZ], from Ito's formula, in units of load.
    """

    load: int
    below: Marginal
    above: Marginal
    correlation: float
    residual: float

    @property
    def regulator_rate(self) -> float:
        """The growth of V_1, the push at the boundary, per unit of time: as much as Q(load + 1) fades."""
        return (self.load + 1) * self.above.mean

    def occupancy(self, pools: int) -> dict[int, tuple[float, float]]:
        """Return mean and deviation of the fraction of pools with at least i tasks, for i = load and load + 1."""
        root = sqrt(whole_number("pools", pools, 1, MAX_POOLS))
        return {
            self.load: (1 - self.below.mean / root, self.below.deviation / root),
            self.load + 1: (self.above.mean / root, self.above.deviation / root),
        }

    def saturated_share(self, pools: int) -> float:
        """Return the share of arrivals that find no pool with fewer than `load` tasks."""
        return self.regulator_rate / (self.load * sqrt(whole_number("pools", pools, 1, MAX_POOLS)))

    def to_dict(self) -> dict[str, Any]:
        """Return the result ready for JSON."""
        return {
            "below": self.below.to_dict(),
            "above": self.above.to_dict(),
            "correlation": self.correlation,
            "regulator_rate": self.regulator_rate,
            "residual": self.residual,
        }


def stationary_summary(load: float) -> StationarySummary:
    """Return the stationary law of the limit for a whole load.

    Paper: Thm 4. Departs: the paper does not treat the stationary law.
    """
    whole = reflected(load).load
    coarse, fine = _march(whole, CELLS), _march(whole, 2 * CELLS)
    moments = (4 * fine.moments() - coarse.moments()) / 3  # errors of second order cancel, fourth order is left
    below_cdf = (4 * fine.below_cdf[::2] - coarse.below_cdf) / 3
    above_cdf = (4 * fine.above_cdf[::2] - coarse.above_cdf) / 3
    below = _marginal(whole, coarse.below, below_cdf, moments[:2], _layer(whole))
    visible = coarse.above[::-1] > 2 * SMALLEST
    values, chances = (np.append(0.0, array[::-1][visible]) for array in (coarse.above, above_cdf))
    above = _marginal(whole, values, chances, moments[2:], SMALLEST)
    covariance = (below.variance + above.variance - whole) / 2  # the total has variance load
    product = covariance + below.mean * above.mean
    return StationarySummary(
        load=whole,
        below=below,
        above=above,
        correlation=covariance / (below.deviation * above.deviation),
        residual=abs(product / whole - moments[3] / (whole + 2)),
    )


def _marginal(load: int, values: FloatArray, chances: FloatArray, moments: FloatArray, scale: float) -> Marginal:
    """Return the marginal in plain units, from units of sqrt(load)."""
    root = sqrt(load)
    mean, square = (float(moment) for moment in moments)
    return Marginal(
        root * mean, load * (square - mean**2), root * values, np.clip(chances, 0.0, 1.0), root * scale
    )


@dataclass(frozen=True)
class _Grid:
    """Distribution functions of both coordinates, measured in sqrt(load)."""

    below: FloatArray  # from 0 upwards
    below_cdf: FloatArray
    above: FloatArray  # from REACH downwards
    above_cdf: FloatArray

    def moments(self) -> FloatArray:
        """Return the means of `below`, its square, `above` and its square."""
        low, high = 1 - self.below_cdf, 1 - self.above_cdf
        return np.array(
            [
                np.trapezoid(low, self.below),
                np.trapezoid(2 * self.below * low, self.below),
                -np.trapezoid(high, self.above),
                -np.trapezoid(2 * self.above * high, self.above),
            ]
        )


def _march(load: int, cells: int) -> _Grid:
    """Solve the equation with the Crank-Nicolson rule, and sum up the marginals."""
    below, (slope, curvature) = _space(load, cells)
    fade = load + 1
    # Short steps while y falls, then ever longer ones while the shape of f settles.
    times = np.expm1(log1p(LONGEST * fade) * np.linspace(0.0, 1.0, 2 * cells + 1)) / fade
    above = REACH * np.exp(-fade * times)
    weights = -np.gradient(above, edge_order=1)
    weights[[0, -1]] /= 2
    above_cdf = np.empty(above.size)
    below_cdf = np.asarray(ndtr(below - REACH))  # the part with y beyond reach, where f is 1
    below_cdf[0] = 0.0
    survival = -np.expm1(-(load + 2) * REACH * below)  # steady next to a boundary that moves fast
    drift = _operator(load, above[0], below, slope, curvature)
    for place, level in enumerate(above):
        if place > 0:
            half = (times[place] - times[place - 1]) / 2
            known = survival + half * _apply(drift, survival)
            drift = _operator(load, level, below, slope, curvature)
            system = -half * drift
            system[1] += 1
            survival = solve_banded((1, 1), system, known, check_finite=False)
        joint = np.exp(-((level - below) ** 2) / 2) / sqrt(2 * pi) * survival
        above_cdf[place] = np.trapezoid(joint, below)
        below_cdf += weights[place] * joint
    return _Grid(below, below_cdf, above, above_cdf)


def _layer(load: int) -> float:
    """Return the width of the layer at the boundary."""
    return 1 / (load + 2)


def _space(load: int, cells: int) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
    """Return points for `below`, dense near 0, and the bands of the first and the second derivative there."""
    scale = _layer(load)
    points = scale * np.sinh(np.linspace(0.0, asinh(2 * REACH / scale), cells + 1))
    left, right = np.diff(points)[:-1], np.diff(points)[1:]
    slope, curvature = np.zeros((3, points.size)), np.zeros((3, points.size))
    slope[0, 2:], slope[2, :-2] = left / (right * (left + right)), -right / (left * (left + right))
    curvature[0, 2:], curvature[2, :-2] = 2 / (right * (left + right)), 2 / (left * (left + right))
    for bands in (slope, curvature):  # constants have no derivative
        bands[1, 1:-1] = -bands[0, 2:] - bands[2, :-2]
    end = (points[-1] - points[-2]) ** 2
    curvature[1, -1], curvature[2, -2] = -2 / end, 2 / end  # flat at the far end
    return points, (slope, curvature)


def _operator(load: int, level: float, below: FloatArray, slope: FloatArray, curvature: FloatArray) -> FloatArray:
    """Return the bands of f_xx - x f_x in y - x, where y moves too; the row at the boundary is zero."""
    speed = (load + 2) * level - below
    bands = curvature.copy()
    bands[0, 2:] += speed[1:-1] * slope[0, 2:]
    bands[1, 1:-1] += speed[1:-1] * slope[1, 1:-1]
    bands[2, :-2] += speed[1:-1] * slope[2, :-2]
    return bands


def _apply(bands: FloatArray, values: FloatArray) -> FloatArray:
    """Return a tridiagonal matrix, held as bands, times a vector."""
    product = bands[1] * values
    product[:-1] += bands[0, 1:] * values[1:]
    product[1:] += bands[2, :-1] * values[:-1]
    return np.asarray(product)
