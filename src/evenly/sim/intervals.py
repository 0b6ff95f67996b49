"""Confidence intervals from independent samples: replications, or batches of one long run."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
BATCHES = 20
BATCH_TASKS = 10.0  # mean task times that a batch must last; correlations decay like exp(-t)


def half_width(samples: Sequence[float] | NDArray[np.float64], chance: float = 1 - CONFIDENCE) -> float:
    """Return the half-width of the confidence interval of the mean (Student's t).

    The samples are independent, and `chance` is one minus the confidence level.
    """
    from scipy.special import stdtrit  # costs a tenth of a second, needed only here

    count = len(samples)
    quantile = -float(stdtrit(count - 1, chance / 2))
    return quantile * float(np.std(samples, ddof=1)) / math.sqrt(count)


def batch_count(length: float, service_rate: float) -> int:
    """Return the number of batches for a run of this length; 0 if it is too short."""
    return BATCHES if length * service_rate >= BATCHES * BATCH_TASKS else 0
