"""Poisson laws conditioned on a range of levels: their weights, and the rate that gives a certain mean."""

from __future__ import annotations

import sys
from math import ceil, exp, floor, log, sqrt

import numpy as np
from scipy.optimize import brentq

from evenly.theory.balance import FloatArray

NO_LIMIT = sys.maxsize
_NEGLIGIBLE = log(1e25)  # log of a ratio: a weight this much smaller than the largest changes no digit


def normalised(weights: FloatArray, first: int) -> tuple[FloatArray, FloatArray]:
    """Return the fractions with at least and with exactly i tasks, from weights of the levels from `first` on."""
    tails = np.cumsum(weights[::-1])[::-1]  # smallest first
    occupancy = np.concatenate((np.ones(first), tails / tails[0]))
    return occupancy, np.concatenate((np.zeros(first), weights / tails[0]))


def rate_with_mean(load: float, low: int, high: int, least: float, most: float) -> float:
    """Return the rate, between bounds, at which a Poisson law conditioned on low..high has mean `load`."""

    def excess(growth: float) -> float:
        rate = least * exp(growth)
        first, last = likely_levels(rate, low, high)
        weights = poisson_weights(rate, first, last)
        return float((np.arange(first, last + 1) - load) @ weights / weights.sum())

    span = log(most / least)
    if excess(0.0) >= 0:  # a bound can be the root, up to rounding
        return least
    if excess(span) <= 0:
        return most
    growth = brentq(excess, 0.0, span, xtol=1e-16, rtol=4 * np.finfo(float).eps)
    return min(least * exp(growth), most)


def likely_levels(rate: float, low: int, high: int = NO_LIMIT) -> tuple[int, int]:
    """Return the first and last of the levels low..high that matter under Poisson weights of this rate.

    By Bernstein's bound the weight at distance y + 1 from the mode m is at most exp(-y^2 / 2(m + 1 + y/3))
    times that of the mode; the levels left out are below 1e-25 of it.
    """
    mode = _mode(rate, low, high)
    third = _NEGLIGIBLE / 3
    reach = 2 + ceil(third + sqrt(third * third + 2 * _NEGLIGIBLE * (mode + 1)))
    return max(low, mode - reach), min(high, mode + reach)


def poisson_weights(rate: float, first: int, last: int) -> FloatArray:
    """Return rate^k / k! for k = first..last, divided by the largest of them.

    They are products of ratios from the largest outward, with one rounding error per step. Factorials would
    overflow, and exponentials of large logarithms would lose digits.
    """
    mode = _mode(rate, first, last)
    above = np.cumprod(rate / np.arange(mode + 1, last + 1))
    below = np.cumprod(np.arange(mode, first, -1) / rate)
    return np.concatenate((below[::-1], [1.0], above))


def _mode(rate: float, low: int, high: int) -> int:
    return min(max(floor(rate), low), high)
