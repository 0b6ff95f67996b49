"""Estimates of what short pools lack beyond one task each, for chains that do not keep track of it.

A pool is short of a level when it has fewer tasks. While the threshold is the level, a short pool receives tasks
at rate arrivals / short and loses them at the rate of their number: at rest its `extra`, what it lacks beyond one
task, has weights (level-1)! / (level-1-j)! * (short / arrivals)**j.

Paper: Ex. 1.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from evenly.theory.balance import FloatArray


def extra_when_short(arrivals: float, level: int, short: float) -> tuple[float, float]:
    """Return the extra of `short` short pools at rest, and the share of them that lack more than one task."""
    weights = np.cumprod(np.concatenate([[1.0], short / arrivals * np.arange(level - 1, 0, -1)]))
    weights /= weights.sum()
    return short * float(weights @ np.arange(level)), float(1 - weights[0])


def missing_at_fall(arrivals: float, level: int, cut: int) -> float:
    """Return the tasks missing when `cut` pools are short for the first time: less than at rest.

    The extra takes a time of cut / arrivals to come to rest, in which the number of short pools moves by about
    sqrt(cut). It was smaller before it reached the cut, and the extra lags behind. To first order around the cut,
    with a share s of the short pools lacking more: short moves by white noise of strength 1 - s, and by a
    pull towards rest that is a second noise, correlated with the first, which fades over the root of
    cut * (1 - s) / (1 + 2 s) tasks. The density of short then vanishes as if the cut were nearer by that root
    times the strength of the pull. On a lattice, the root is one task shorter (0.7 to 1.1, measured).
    """
    extra, share = extra_when_short(arrivals, level, cut)
    white, stretch = 1 - share, 1 + 2 * share
    pull = (4 * share * white - (share + 4 * share**2 * white) / stretch) / (stretch * white)
    fading = max(sqrt(cut * white / stretch) - 1, 0.0)
    return cut + max(extra - stretch * pull * fading, 0.0)


def share_lacking_more(level: int, most_short: int, most_extra: int) -> FloatArray:
    """Return the expected share of short pools that lack several tasks, by their number (row) and extra (column).

    Given their sum, the pools' extras have the weights above without the power, which is common to all.
    """
    weights = np.cumprod(np.concatenate([[1.0], np.maximum(level - np.arange(1, most_extra + 1), 0) / level]))
    ways = np.zeros(most_extra + 1)
    ways[0] = 1.0
    shares = np.zeros((most_short + 1, most_extra + 1))
    for short in range(1, most_short + 1):
        more = np.convolve(ways, weights)[: most_extra + 1]
        possible = more > 0
        shares[short, possible] = 1 - ways[possible] / more[possible]
        ways = more / more.max()
    return shares
