"""Numbers that support a claim or do not, with their errors.

Intervals are 95 % intervals. A number that is said to equal another may be farther from it than that: a claim
fails when such a distance has a probability below `FALSE_ALARM` if the claim is true. A number that is said to lie
on one side of a limit must do so with its whole interval; claims measure long enough for the truth to be at least
six standard errors inside. Counts of what is rare are judged by their own laws instead. With fewer than a
thousand comparisons, all of them together raise a false alarm less often than once in a million seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom, chi2, poisson

from evenly.paper.claim import Measured
from evenly.sim.intervals import CONFIDENCE, half_width

FALSE_ALARM = 1e-9


def mean_and_error(samples: ArrayLike, chance: float = 1 - CONFIDENCE) -> tuple[float, float]:
    """The mean of independent samples, and how far it is from the truth but for this chance (Student's law)."""
    values = np.asarray(samples, float)
    return float(values.mean()), half_width(values, chance)


def equals(what: str, samples: ArrayLike, expected: float, slack: float = 0.0) -> Measured:
    """The mean of independent samples is `expected`, up to chance and a known bias of at most `slack`."""
    mean, error = mean_and_error(samples)
    _, reach = mean_and_error(samples, FALSE_ALARM)
    return Measured(what, mean, abs(mean - expected) <= reach + slack, error, expected, slack=slack)


def below(what: str, samples: ArrayLike, limit: float) -> Measured:
    """The mean of independent samples lies below `limit`, its whole interval does."""
    mean, error = mean_and_error(samples)
    return Measured(what, mean, mean + error < limit, error, limit, "<")


def above(what: str, samples: ArrayLike, limit: float) -> Measured:
    """The mean of independent samples lies above `limit`, its whole interval does."""
    mean, error = mean_and_error(samples)
    return Measured(what, mean, mean - error > limit, error, limit, ">")


def is_exactly(what: str, value: float, expected: float) -> Measured:
    """A count, or a number without chance, that has to be met."""
    return Measured(what, value, value == expected, None, expected)


def is_near(what: str, value: float, expected: float, tolerance: float) -> Measured:
    """A number without chance that equals another up to errors of computation."""
    return Measured(what, value, abs(value - expected) <= tolerance, None, expected, slack=tolerance)


def at_most(what: str, value: float, limit: float) -> Measured:
    """A number without chance, or the largest of many, that must not exceed a limit."""
    return Measured(what, value, value <= limit, None, limit, "≤")


def at_least(what: str, value: float, limit: float) -> Measured:
    """A number without chance, or the least of many, that must reach a limit."""
    return Measured(what, value, value >= limit, None, limit, "≥")


def mostly(what: str, hits: ArrayLike, share: float) -> Measured:
    """At least this share of independent runs does so: fewer hits than that leaves to chance refute it (binomial).

    For rare misses, where Student's law means nothing.
    """
    seen = np.asarray(hits, bool)
    count, trials = int(seen.sum()), seen.size
    value, error = proportion(count, trials)
    return Measured(what, value, bool(binom.cdf(count, trials, share) >= FALSE_ALARM), error, share, "≥")


def seldom(what: str, counts: ArrayLike, time: float, rate: float) -> Measured:
    """At most so many events in a unit of time: more than that leaves to chance refute it (Poisson's law).

    `counts` are those of independent parts, which take `time` together. Events may come in clusters: the error is
    the larger of Poisson's and the one that the parts show.
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
    """The mean of independent samples, for a note: it decides nothing."""
    mean, error = mean_and_error(samples)
    return Measured(what, mean, True, error)


def proportion(hits: int, trials: int) -> tuple[float, float]:
    """A frequency, and the half-width of its interval (Wilson's, about the frequency's own place)."""
    z = 1.959963984540054
    share = hits / trials
    return share, float(z / (1 + z**2 / trials) * sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2)))


def empirical_reach(samples: int, chance: float = FALSE_ALARM) -> float:
    """How far an empirical distribution function is from its law at most, but for this chance.

    Dvoretzky, Kiefer and Wolfowitz, with Massart's constant.
    """
    return sqrt(log(2 / chance) / (2 * samples))


def two_sample_reach(samples: int) -> float:
    """Bound the distance between the empirical distribution functions of two samples of this size.

    Chance exceeds it with probability `FALSE_ALARM`: the inequality of Dvoretzky, Kiefer and Wolfowitz with
    Massart's constant, which Wei and Dudley (2012) show for two samples of equal size from 458 on.
    """
    return sqrt(log(2 / FALSE_ALARM) / samples)


def powers(sizes: Sequence[int], rows: ArrayLike) -> NDArray[np.float64]:
    """The power of the size that fits best: a row of values for each independent repetition, a column a size."""
    return np.asarray(np.polyfit(np.log(sizes), np.log(np.asarray(rows, float)).T, 1)[0])
