"""Confidence intervals: of the mean of independent samples, and of the averages of simulations.

Replications are cut into parts of equal length. An average is a ratio of totals over the parts: an integral per
unit of time, or a count per arrival. Its error is that of the sum of the residuals, numerator minus ratio times
denominator. Five things are taken into account:

- Neighboring parts are correlated. The variance is multiplied by (1 + c) / (1 - c), c the correlation at lag one.
- Replications share a trend, from the start of a run or from its schedule. With several replications, residuals
  are compared at the same place of the run.
- A task that arrives in one part causes messages in a later one. What the growth of the number of tasks explains,
  or that of tokens, cancels between the parts of a run, and counts once per replication.
- Residuals are skewed when events are rare. Student's quantile is increased by what Hall's expansion gives for the
  worse side (P. Hall, On the removal of skewness by transformation, 1992).
- Some averages rest on few events: losses, changes of the threshold, visits of the fullest pool to another level.
  The number of events is taken to be that of a Poisson process with the same relative error. If it is below
  `LEAST_EVENTS`, there is no interval.

Decision 19 says how these were chosen, and tests/sim/test_coverage.py how often the intervals hold the truth.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenly.sim.tally import FloatArray, Tally

CONFIDENCE = 0.95
PARTS = 50
PART_TASKS = 4.0  # mean task times that a part lasts at least: correlations decay like exp(-t)
BATCH_TASKS = 10.0  # the same for batches that are too few to estimate correlations from
FEWEST_BATCHES = 5  # by default: with fewer, Student's quantile makes intervals three times as wide
LEAST_EVENTS = 8.0
LEAST_TASKS = 50  # arrivals that an average per task rests on at least
MANY = 20  # degrees of freedom from which on correlations and events can be estimated
_LEAST_FREEDOM = 5.0  # of uncorrelated parts
_ROUNDING = 1e-9  # relative to the total: smaller deviations are rounding errors
_MATTERS = 0.1  # a share of the variance that matters
_LEAST_CORRELATION, _MOST_CORRELATION = -0.3, 0.97

COLUMNS = (
    "time", "arrivals", "mean_tasks", "max_tasks", "threshold", "imbalance", "spread", "messages_per_task",
    "resync_per_task", "lost_share", "without_token", "growth", "mean_utility",
)  # fmt: skip
_PER_TASK = ("messages_per_task", "resync_per_task", "lost_share")
_RARE = ("max_tasks", "threshold", "resync_per_task", "lost_share")


def half_width(samples: Sequence[float] | NDArray[np.float64], chance: float = 1 - CONFIDENCE) -> float:
    """Return the half-width of the confidence interval of the mean (Student's t).

    The samples are independent, and `chance` is one minus the confidence level.
    """
    count = len(samples)
    return _quantile(count - 1, chance) * float(np.std(samples, ddof=1)) / math.sqrt(count)


def _quantile(freedom: float, chance: float) -> float:
    from scipy.special import stdtrit  # costs a tenth of a second, needed only here

    return -float(stdtrit(freedom, chance / 2))


def part_count(length: float, replications: int) -> int:
    """Return the number of parts that each replication is cut into; 1 if they would be too short or too few.

    Together, the parts have `PARTS` degrees of freedom, or at least `MANY`. The length is in units of
    the time in which the system forgets its state, usually a mean task time.
    """
    fit = math.floor(length / PART_TASKS * (1 + 1e-12))
    if replications == 1:
        return PARTS if fit >= PARTS else 1
    parts = min(math.ceil(PARTS / (replications - 1)), fit)
    return parts if (replications - 1) * parts >= MANY else 1


def part_row(part: Tally, pools: int, *, fixed_tokens: bool) -> list[float]:
    """Return the totals of a part that intervals need, in the order of `COLUMNS`.

    `fixed_tokens` is for policies with tokens and a threshold that never changes: each token sent is used by a
    task, or still held. Other messages follow departures.
    """
    messages = part.green + part.yellow + part.other
    growth = 2 * part.arrivals - part.lost_tasks - part.events
    return [
        part.time,
        part.arrivals,
        float(part.at_least[1:].sum()) / pools,
        _total_level(part.max_time),
        _total_level(part.threshold_time),
        part.gap / pools,
        part.spread,
        messages,
        part.resync,
        part.lost_tasks,
        part.without_token,
        messages - part.arrivals + part.without_token if fixed_tokens else growth,
        part.utility / pools,
    ]


def _total_level(times: FloatArray) -> float:
    """Return the sum over levels of level times time. Not with @: BLAS would start threads for long arrays."""
    return float((times * np.arange(times.size)).sum())


@dataclass(frozen=True)
class _Error:
    """The error of a sum over all parts. Skewness is that of the sum, and nonnegative."""

    variance: float
    freedom: float
    skewness: float


@dataclass(frozen=True)
class Parts:
    """Totals of all parts: one row per replication, one column per part, and the depth of `COLUMNS`.

    `modes` are the usual values of the fullest pool and of the threshold.
    """

    totals: FloatArray
    modes: Mapping[str, int]

    def half_widths(self, names: Collection[str], chance: float) -> dict[str, float]:
        """Return the half-width of each average at error probability `chance`; NaN if there are too few events."""
        return {name: self._half_width(name, chance) for name in names}

    def _half_width(self, name: str, chance: float) -> float:
        over = self._column("arrivals" if name in _PER_TASK else "time")
        whole = float(over.sum())
        if name in _PER_TASK and whole < LEAST_TASKS:
            return math.nan
        values = self._column(name)
        residuals = self._residuals(values, over)
        boundary = 0.0
        if name in _PER_TASK and self._shape[1] > 1:
            residuals, boundary = self._without_growth(residuals)
        error = self._error(residuals)
        variance = error.variance + boundary
        if variance <= (_ROUNDING * float(values.sum())) ** 2:
            return math.nan
        share, events = error.variance / variance, self._events(name, over, variance)
        correlated = share > _MATTERS and error.freedom < _LEAST_FREEDOM
        if self._freedom >= MANY and (correlated or events < LEAST_EVENTS):
            return math.nan
        student = _quantile(error.freedom, chance)
        skewness = max(error.skewness * math.pow(share, 1.5), 1 / math.sqrt(events))
        return (student + skewness * (2 * student**2 + 1) / 6) * math.sqrt(variance) / whole

    @property
    def _shape(self) -> tuple[int, int]:
        return self.totals.shape[0], self.totals.shape[1]

    @property
    def _freedom(self) -> int:
        """Degrees of freedom of the residuals, if they were uncorrelated."""
        runs, parts = self._shape
        return parts - 1 if runs == 1 else (runs - 1) * parts

    def _column(self, name: str) -> FloatArray:
        column: FloatArray = self.totals[:, :, COLUMNS.index(name)]
        return column

    def _residuals(self, values: FloatArray, over: FloatArray) -> FloatArray:
        residuals: FloatArray = values - values.sum() / over.sum() * over
        return residuals if self._shape[0] == 1 else residuals - residuals.mean(axis=0)

    def _without_growth(self, residuals: FloatArray) -> tuple[FloatArray, float]:
        """Split off what the growth of the number of tasks explains; return the rest, and the variance of that."""
        growth = self._column("growth")
        growth = growth - (growth.mean() if self._shape[0] == 1 else growth.mean(axis=0))
        squares = float((growth**2).sum())
        if squares == 0:
            return residuals, 0.0
        slope = float((residuals * growth).sum()) / squares
        return residuals - slope * growth, self._shape[0] * slope**2 * squares / self._freedom

    def _error(self, residuals: FloatArray) -> _Error:
        runs, parts = self._shape
        count, freedom = runs * parts, self._freedom
        squares = float((residuals**2).sum())
        if squares == 0:
            return _Error(0.0, freedom, 0.0)
        factor = self._correlation_factor(residuals, squares)
        cubes = float((residuals**3).sum()) / count * _cube_factor(runs)
        skewness = cubes**2 / (squares / freedom) ** 3 - 6 / freedom  # less what normal residuals would show
        return _Error(
            variance=count * squares / freedom * factor,
            freedom=max(freedom / max(factor, 1.0), 1.0),
            skewness=math.sqrt(max(skewness, 0.0) * factor / count),
        )

    def _correlation_factor(self, residuals: FloatArray, squares: float) -> float:
        """Return the variance of a sum of parts, relative to that of as many independent ones.

        A few batches do not tell. They are long instead.
        """
        runs, parts = self._shape
        if parts < 2 or self._freedom < MANY:
            return 1.0
        correlation = float((residuals[:, 1:] * residuals[:, :-1]).sum()) / squares
        if runs == 1:  # residuals from their own mean look less correlated than they are
            correlation += (1 + 3 * correlation) / parts
        correlation = min(max(correlation, _LEAST_CORRELATION), _MOST_CORRELATION)
        return (1 + correlation) / (1 - correlation)

    def _events(self, name: str, over: FloatArray, variance: float) -> float:
        """Return the number of events that an average rests on: that of a Poisson process of equal relative error.

        Infinite for averages that do not rest on single events.
        """
        if name == "messages_per_task":  # a task costs one message less if it finds no token
            events = self._column("without_token")
        elif name in _RARE:
            events = self._column(name)
        else:
            return math.inf
        if name in self.modes:
            events = np.abs(events - self.modes[name] * over)
        found = self._error(self._residuals(events, over)).variance
        return float(events.sum()) ** 2 / found if found > _MATTERS * variance else math.inf


def _cube_factor(runs: int) -> float:
    """Return what makes the third moment about the mean over the replications unbiased; with two it vanishes."""
    return runs**2 / ((runs - 1) * (runs - 2)) if runs > 2 else 1.0
