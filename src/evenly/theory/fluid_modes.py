"""The three modes of the fluid equations, each solved as far as it can be in closed form.

Write w for the deficit sum_{i <= threshold} (1 - q(i)), u for the total mass and v_j for the mass from level
j on. u is known (`mass`); levels that no task is sent to lose theirs as a pure death process, which is known
too. That yields w in mode (a) and the whole of mode (b), so that the times when pools fill up to a level are
roots of explicit functions. Numerical integration is left for the levels below the threshold in mode (a) and
those above threshold + 1 in mode (c).

Paper: Thm 1.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import numpy as np
from scipy.special import bdtrc

from evenly.theory.balance import FloatArray, exactly

Drift = Callable[[float, FloatArray], FloatArray]
_SMALLEST_SHARE = 1e-12  # of pools below the threshold, in a division
_NEGLIGIBLE = 1e-18


class Mode(Enum):
    """Where the tasks go."""

    FILL = "a"  # some pools are below the threshold, and they get everything
    HOLD = "b"  # none is: the threshold is held, and the rest of the tasks goes one level higher
    SPILL = "c"  # none is below threshold + 1: it is held, and the rest goes to random pools


def assignment(q: FloatArray, load: float, threshold: int) -> FloatArray:
    """Rates load * p_i at which tasks come to pools with exactly i - 1 tasks, i = 0 (none) to the last level.

    Paper: Thm 1 (a), (b), (c).
    """
    high = threshold + 1
    rates = np.zeros_like(q)
    if q[threshold] < 1:
        rates[1:high] = load * (q[:threshold] - q[1:high]) / (1 - q[threshold])
    elif q[high] < 1:
        rates[threshold] = threshold * (1 - q[high])
        rates[high] = load - rates[threshold]
    else:
        rates[high] = high * (1 - q[high + 1])
        rates[high + 1 :] = (load - rates[high]) * (q[high:-1] - q[high + 1 :])
    return rates


def fill_drift(load_at: Callable[[float], float], threshold: int, levels: int) -> Drift:
    """Mode (a) in x(i) = q(i) - 1, 1 <= i <= levels: below the threshold it may get small, and stays precise.

    Paper: Thm 1 (a).
    """
    level = np.arange(1.0, levels + 1)
    padded = np.zeros(levels + 2)  # x(0) = 0
    padded[-1] = -1.0  # beyond the last level

    def drift(time: float, x: FloatArray) -> FloatArray:
        padded[1:-1] = x
        steps = padded[1:] - padded[:-1]
        slope = level * steps[1:]
        slope[:threshold] += load_at(time) / min(x[threshold - 1], -_SMALLEST_SHARE) * steps[:threshold]
        return slope

    return drift


def spill_drift(load_at: Callable[[float], float], threshold: int, levels: int) -> Drift:
    """Mode (c) in q(i) for threshold + 1 < i <= levels.

    Paper: Thm 1 (c).
    """
    high = threshold + 1
    level = np.arange(high + 1.0, levels + 1)
    padded = np.zeros(level.size + 2)  # nothing beyond the last level
    padded[0] = 1.0  # q(h)

    def drift(time: float, q: FloatArray) -> FloatArray:
        padded[1:-1] = q
        steps = padded[1:] - padded[:-1]
        to_random = load_at(time) - high * (1 - q[0])
        slope: FloatArray = level * steps[1:] - to_random * steps[:-1]
        return slope

    return drift


def survivors(q: FloatArray, first: int, elapsed: FloatArray) -> FloatArray:
    """q(i) for i >= first after some time without arrivals there: each task survives by itself.

    A row a time. A pool with m tasks keeps a binomial number of them.
    """
    share = exactly(q)
    starts = np.flatnonzero(share[first:] > _NEGLIGIBLE) + first
    rows = np.zeros((elapsed.size, q.size - first))
    if starts.size:
        level = np.arange(first, int(starts[-1]) + 1)
        keeps = np.exp(-elapsed)[:, None, None]
        at_least = np.where(
            level <= starts[:, None], bdtrc(level - 1, np.maximum(starts[:, None], level), keeps), 0.0
        )
        rows[:, : level.size] = np.einsum("m,tmi->ti", share[starts], at_least)
    return rows


def surviving_mass(q: FloatArray, first: int, elapsed: FloatArray) -> FloatArray:
    """The mass v_first after some time without arrivals there: sum over m of share(m) E[(Bin - first + 1)^+]."""
    share = exactly(q)
    starts = np.flatnonzero(share[first:] > _NEGLIGIBLE) + first
    if not starts.size:
        return np.zeros(elapsed.size)
    keeps = np.exp(-elapsed)[:, None]
    # E[B; B >= first] - (first - 1) P(B >= first), and B times its weight is a binomial of one task fewer.
    counted = starts * keeps * bdtrc(first - 2, starts - 1, keeps) - (first - 1) * bdtrc(first - 1, starts, keeps)
    mass: FloatArray = counted @ share[starts]
    return mass
