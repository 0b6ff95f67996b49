"""The judge: compare measured numbers with a claim, and decide whether they support it.

Intervals are 95 % intervals. A claim that two numbers are equal fails if their distance is so large that, were the
claim true, its probability would be below `FALSE_ALARM`. A number that should be on one side of a limit must be
there with its whole interval; claims measure long enough for the true value to be at least six standard errors
inside. Counts of rare events are judged by the binomial or the Poisson law instead. There are fewer than a
thousand comparisons, so all of them together raise a false alarm for less than one seed in a million.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, nan, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom, chi2, poisson

from evenly.paper.claims.claim import Measured
from evenly.sim.intervals import CONFIDENCE, half_width

FALSE_ALARM = 1e-9


def mean_and_error(samples: ArrayLike, chance: float = 1 - CONFIDENCE) -> tuple[float, float]:
    """Return the mean of independent samples and its half-width at error probability `chance` (Student's law)."""
    values = np.asarray(samples, float)
    return float(values.mean()), half_width(values, chance)


def equals(what: str, samples: ArrayLike, expected: float, slack: float = 0.0) -> Measured:
    """Check that the mean of independent samples is `expected`, up to chance and a bias of `slack`."""
    mean, error = mean_and_error(samples)
    _, reach = mean_and_error(samples, FALSE_ALARM)
    return Measured(what, mean, abs(mean - expected) <= reach + slack, _told(error), expected, slack=slack)


def below(what: str, samples: ArrayLike, limit: float) -> Measured:
    """Check that the mean of independent samples is below `limit` with its whole interval."""
    mean, error = mean_and_error(samples)
    return Measured(what, mean, mean + error < limit, _told(error), limit, "<")


def above(what: str, samples: ArrayLike, limit: float) -> Measured:
    """Check that the mean of independent samples is above `limit` with its whole interval."""
    mean, error = mean_and_error(samples)
    return Measured(what, mean, mean - error > limit, _told(error), limit, ">")


def is_exactly(what: str, value: float, expected: float) -> Measured:
    """Check that a count, or another deterministic number, is exactly `expected`."""
    return Measured(what, value, value == expected, None, expected)


def is_near(what: str, value: float, expected: float, tolerance: float) -> Measured:
    """Check that a deterministic number is `expected`, up to `tolerance` for errors of computation."""
    return Measured(what, value, abs(value - expected) <= tolerance, None, expected, slack=tolerance)


def at_most(what: str, value: float, limit: float) -> Measured:
    """Check that a deterministic number, or the largest of many, is at most `limit`."""
    return Measured(what, value, value <= limit, None, limit, "≤")


def at_least(what: str, value: float, limit: float) -> Measured:
    """Check that a deterministic number, or the smallest of many, is at least `limit`."""
    return Measured(what, value, value >= limit, None, limit, "≥")


def mostly(what: str, hits: ArrayLike, share: float) -> Measured:
    """Check that at least a fraction `share` of independent runs are hits, by the binomial law.

    For rare misses, where Student's law does not apply.
    """
    seen = np.asarray(hits, bool)
    count, trials = int(seen.sum()), seen.size
    value, error = proportion(count, trials)
    return Measured(what, value, bool(binom.cdf(count, trials, share) >= FALSE_ALARM), error, share, "≥")


def seldom(what: str, counts: ArrayLike, time: float, rate: float) -> Measured:
    """Check that at most `rate` events happen per unit of time, by Poisson's law.

    `counts` are the events in independent parts, which take `time` in total. Events may come in clusters, so the
    error is the larger of Poisson's and the one estimated from the parts.
    """
    parts = np.asarray(counts, float)
    count = parts.sum()
    tail = (1 - CONFIDENCE) / 2
    low = chi2.ppf(tail, 2 * count) if count else 0.0
    exact = (chi2.isf(tail, 2 * count + 2) - low) / 4
    error = float(max(exact, parts.size * mean_and_error(parts)[1]) / time)
    return Measured(
        what, float(count / time), bool(poisson.sf(count - 1, rate * time) >= FALSE_ALARM), error, rate, "≤"
    )


def noted(what: str, samples: ArrayLike) -> Measured:
    """Report the mean of independent samples for a note. It does not affect the verdict."""
    mean, error = mean_and_error(samples)
    return Measured(what, mean, True, _told(error))


def _told(error: float) -> float:
    """Return the error to report: samples that are all equal do not tell how far their mean is from the truth."""
    return error or nan


def proportion(hits: int, trials: int) -> tuple[float, float]:
    """Return the frequency of hits and the half-width of its Wilson interval."""
    z = 1.959963984540054
    share = hits / trials
    return share, float(z / (1 + z**2 / trials) * sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2)))


def empirical_reach(samples: int, chance: float = FALSE_ALARM) -> float:
    """Bound the distance of an empirical distribution function from its law, at error probability `chance`.

    By the inequality of Dvoretzky, Kiefer and Wolfowitz, with Massart's constant.
    """
    return sqrt(log(2 / chance) / (2 * samples))


def two_sample_reach(samples: int) -> float:
    """Bound the distance between the empirical distribution functions of two samples of this size.

    The probability to exceed it is at most `FALSE_ALARM`, by the inequality of Dvoretzky, Kiefer and Wolfowitz
    with Massart's constant. Wei and Dudley (2012) prove it for two samples of equal size, from 458 on.
    """
    return sqrt(log(2 / FALSE_ALARM) / samples)


def powers(sizes: Sequence[int], rows: ArrayLike) -> NDArray[np.float64]:
    """Fit a power of the size to each row. There is one row per independent repetition, one column per size."""
    return np.asarray(np.polyfit(np.log(sizes), np.log(np.asarray(rows, float)).T, 1)[0])
