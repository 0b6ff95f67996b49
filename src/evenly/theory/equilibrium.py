"""Where the load settles under a fixed threshold, in the limit of many pools.

Too large a threshold makes the tasks of a pool Poisson, given that they are at most the threshold; too small a
one makes them Poisson, given that they are more than the threshold. In both, the rate of that Poisson law is the
one that makes the mean number of tasks the load. An optimal threshold balances the load.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import ceil, exp, floor, log, sqrt
from typing import Any

import numpy as np
from scipy.optimize import brentq

from evenly.errors import InputError
from evenly.theory.balance import FloatArray, balanced_occupancy, exactly, optimal_thresholds
from evenly.theory.inputs import checked_threshold, positive_load

KINDS = ("large", "small", "balanced")
_NO_LIMIT = sys.maxsize
_NEGLIGIBLE = log(1e25)  # a weight so many times smaller than the largest changes no digit


@dataclass(frozen=True, kw_only=True)
class Equilibrium:
    """A stationary occupancy under a fixed threshold.

    `kind` says what the threshold is for this load: large, small or, if it is optimal, balanced. `theta` is
    the fraction of pools at a large threshold, or of those more than one above a small one. `offered` is the
    rate at which tasks come to a pool below a large threshold, `birth_rate` the rate at which they come to
    any pool above a small one; service has unit rate. `truncation` bounds the fraction of pools beyond the
    last level. Arrays begin at level 0.
    """

    load: float
    threshold: int
    kind: str
    theta: float | None
    occupancy: FloatArray
    pools_with_exactly: FloatArray
    offered: float | None = None
    birth_rate: float | None = None
    truncation: float = 0.0

    @property
    def mean_tasks(self) -> float:
        """Tasks per pool."""
        return float(self.occupancy[1:].sum())

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "load": self.load,
            "threshold": self.threshold,
            "kind": self.kind,
            "theta": self.theta,
            "mean_tasks": self.mean_tasks,
            "pools_with_exactly": self.pools_with_exactly.tolist(),
            "occupancy": self.occupancy.tolist(),
            "offered": self.offered,
            "birth_rate": self.birth_rate,
            "truncation": self.truncation,
        }


def equilibrium(load: float, threshold: int, kind: str | None = None) -> Equilibrium:
    """The equilibrium of the fluid limit under a fixed threshold; `kind`, if given, must be what it is.

    The mean of a Poisson law conditioned on a range of levels grows strictly with its rate, because its
    derivative by the logarithm of the rate is the variance. Hence there is one theta, not just some.

    Paper: Exs 1 and 2, eqs (4) and (5); Thm 2, Cor. 1. Departs: the paper shows that a theta exists, and says
    nothing of its uniqueness. At threshold 1 and a load below 1 the equilibrium of Ex. 1 is the balanced one.
    """
    load = positive_load(load)
    threshold = checked_threshold(threshold)
    found = threshold_kind(load, threshold)
    if kind is not None:
        _check_kind(kind, found, load, threshold)
    solve = {"large": _large, "small": _small, "balanced": _balanced}[found]
    with np.errstate(under="ignore"):  # what is too small to be written is zero
        return solve(load, threshold)


def threshold_kind(load: float, threshold: int) -> str:
    """What a threshold is for a load: large, small or, if it is optimal, balanced.

    Paper: Cor. 1.
    """
    best = optimal_thresholds(load)
    if threshold in best:
        return "balanced"
    return "large" if threshold > best[-1] else "small"


def _check_kind(kind: str, found: str, load: float, threshold: int) -> None:
    if kind not in KINDS:
        raise InputError(f"kind must be one of {', '.join(KINDS)}, not {kind!r}.")
    if kind == found:
        return
    verdict = "optimal" if found == "balanced" else f"too {found}"
    has = "the balanced one" if found == "balanced" else f"a {found}-threshold one"
    wanted = "the balanced one" if kind == "balanced" else f"a {kind}-threshold one"
    raise InputError(
        f"threshold {threshold} is {verdict} for load {load:.12g}: its equilibrium is {has}, not {wanted}."
    )


def _balanced(load: float, threshold: int) -> Equilibrium:
    """Paper: Thm 2."""
    occupancy = balanced_occupancy(load, ceil(load) + 1)
    return Equilibrium(
        load=load,
        threshold=threshold,
        kind="balanced",
        theta=None,
        occupancy=occupancy,
        pools_with_exactly=exactly(occupancy),
    )


def _large(load: float, threshold: int) -> Equilibrium:
    """The Erlang loss system whose carried traffic is the load.

    Paper: Ex. 1, eq. (4).
    """
    # Mean tasks are a (1 - theta), theta being Erlang's B: a mean of `load` says a = load / (1 - theta).
    # Free places are at most geometric with ratio threshold / a, hence threshold / (a - threshold) on average:
    # a pool has too many tasks at the rate `most`, and too few at a = load.
    most = threshold + threshold / (threshold - load)
    offered = _rate_with_mean(load, 0, threshold, load, most)
    weights = poisson_weights(offered, 0, threshold)
    occupancy, shares = normalised(weights, 0)
    return Equilibrium(
        load=load,
        threshold=threshold,
        kind="large",
        theta=float(occupancy[threshold]),
        occupancy=occupancy,
        pools_with_exactly=shares,
        offered=offered,
    )


def _small(load: float, threshold: int) -> Equilibrium:
    """The birth-death process that never falls below one above the threshold.

    Paper: Ex. 2, eq. (5).
    """
    high = threshold + 1
    # Weights w(i) = b^i / i! from `high` on have i w(i) = b w(i - 1). Summed over i > high this says that mean
    # tasks are b + high (1 - theta), 1 - theta being the share at `high`. So a mean of `load` is the same as
    # b = load - high (1 - theta), with which eq. (5) says that the shares add up to 1.
    # Tasks above `high` are at most geometric with ratio b / (high + 1): a pool has too few tasks at the first
    # rate below, and too many at b = load.
    gap = load - high
    birth_rate = _rate_with_mean(load, high, _NO_LIMIT, (high + 1) * gap / (1 + gap), load)
    last = likely_levels(birth_rate, high)[1]
    occupancy, shares = normalised(poisson_weights(birth_rate, high, last), high)
    ratio = birth_rate / (last + 1)  # of weights beyond the last level, or less
    return Equilibrium(
        load=load,
        threshold=threshold,
        kind="small",
        theta=float(occupancy[high + 1]),
        occupancy=occupancy,
        pools_with_exactly=shares,
        birth_rate=birth_rate,
        truncation=float(shares[-1]) * ratio / (1 - ratio),
    )


def normalised(weights: FloatArray, first: int) -> tuple[FloatArray, FloatArray]:
    """Fractions with at least and with exactly i tasks, from weights of the levels from `first` on."""
    tails = np.cumsum(weights[::-1])[::-1]  # small ones first
    occupancy = np.concatenate((np.ones(first), tails / tails[0]))
    return occupancy, np.concatenate((np.zeros(first), weights / tails[0]))


def _rate_with_mean(load: float, low: int, high: int, least: float, most: float) -> float:
    """The rate, between bounds, at which a Poisson law conditioned on low..high has mean `load`."""

    def excess(growth: float) -> float:
        rate = least * exp(growth)
        first, last = likely_levels(rate, low, high)
        weights = poisson_weights(rate, first, last)
        return float((np.arange(first, last + 1) - load) @ weights / weights.sum())

    span = log(most / least)
    if excess(0.0) >= 0:  # to all digits, a bound can be the root
        return least
    if excess(span) <= 0:
        return most
    growth = brentq(excess, 0.0, span, xtol=1e-16, rtol=4 * np.finfo(float).eps)
    return min(least * exp(growth), most)


def likely_levels(rate: float, low: int, high: int = _NO_LIMIT) -> tuple[int, int]:
    """The first and last of the levels low..high that matter under Poisson weights of this rate.

    By Bernstein's bound the weight at distance y + 1 from the mode m is at most exp(-y^2 / 2(m + 1 + y/3))
    times the mode's; the rest lie below 1e-25 of it.
    """
    mode = _mode(rate, low, high)
    third = _NEGLIGIBLE / 3
    reach = 2 + ceil(third + sqrt(third * third + 2 * _NEGLIGIBLE * (mode + 1)))
    return max(low, mode - reach), min(high, mode + reach)


def poisson_weights(rate: float, first: int, last: int) -> FloatArray:
    """rate^k / k! for k = first..last, over the largest of them.

    Made of ratios from the largest outward: an error of a rounding a step, where factorials overflow and
    exponentials of large logarithms lose digits.
    """
    mode = _mode(rate, first, last)
    above = np.cumprod(rate / np.arange(mode + 1, last + 1))
    below = np.cumprod(np.arange(mode, first, -1) / rate)
    return np.concatenate((below[::-1], [1.0], above))


def _mode(rate: float, low: int, high: int) -> int:
    return min(max(floor(rate), low), high)
