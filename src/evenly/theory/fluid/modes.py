"""The three modes of the fluid equations, each solved in closed form as far as possible.

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
from evenly.theory.fluid.integration import Equations

Gap = Callable[[float, FloatArray], float]

_SMALLEST_GAP = 1e-10  # least divisor; beyond the end of mode (a), the solver may try smaller gaps
_NEGLIGIBLE = 1e-18
_BLOCK = 10**6


class Mode(Enum):
    """The modes of the fluid equations, which differ in where tasks go."""

    FILL = "a"  # some pools are below the threshold, and they get everything
    HOLD = "b"  # no pool is: the threshold is held, and the remaining tasks go one level higher
    SPILL = "c"  # no pool is below threshold + 1: that level is held, and the rest goes to random pools


def assignment(q: FloatArray, load: float, threshold: int) -> FloatArray:
    """Return the rates load * p_i of tasks to pools with exactly i - 1 tasks, for i = 0 (none) to the last level.

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


def fill_equations(load_at: Callable[[float], float], gap_at: Gap, threshold: int, levels: int) -> Equations:
    """Return mode (a) as equations for 1 - q(i), 1 <= i < threshold, and q(i), threshold < i <= levels.

    The gap at the threshold itself is what the total mass leaves for it: `threshold_gap`.

    Paper: Thm 1 (a).
    """
    below, above = np.arange(1.0, threshold), np.arange(threshold + 1.0, levels + 1)
    split = threshold - 1
    gaps = np.zeros(threshold + 1)  # none at level 0
    q = np.zeros(above.size + 1)  # nothing beyond the last level
    inner_gaps, kept = gaps[1:-1], q[:-1]  # views, made once because `drift` is called so often
    lower_gaps, upper_gaps, next_q = gaps[:-1], gaps[1:], q[1:]

    def share(time: float, y: FloatArray) -> float:
        """Return the rate at which a pool below the threshold gets tasks."""
        gap = max(gap_at(time, y), _SMALLEST_GAP)
        gaps[-1] = gap
        return load_at(time) / gap

    def drift(time: float, y: FloatArray) -> FloatArray:
        rate = share(time, y)
        inner_gaps[:] = y[:split]
        kept[:] = y[split:]
        steps = upper_gaps - lower_gaps
        slope = np.empty(y.size)
        slope[:split] = below * steps[1:] - rate * steps[:-1]
        np.multiply(above, next_q - kept, out=slope[split:])
        return slope

    def bands(time: float, y: FloatArray) -> FloatArray:
        rate, size = share(time, y), y.size
        packed = np.zeros((3, size))
        packed[1, : threshold - 1] = -below - rate
        packed[1, threshold - 1 :] = -above
        packed[0, 1 : threshold - 1] = below[:-1]
        packed[0, threshold:] = above[:-1]
        packed[2, : max(threshold - 2, 0)] = rate
        if threshold > 1:  # the gap at the threshold shrinks by what the one below grows
            packed[1, threshold - 2] -= below[-1]
        return packed

    return Equations(drift, bands)


def threshold_gap(mass_at: Callable[[float], float], threshold: int, levels: int) -> Gap:
    """Return 1 - q(threshold) in mode (a), from the total mass and the variables of `fill_equations`."""
    signs = np.concatenate([-np.ones(threshold - 1), np.ones(levels - threshold)])
    return lambda time, y: threshold - mass_at(time) + float(signs @ y)


def spill_equations(load_at: Callable[[float], float], threshold: int, levels: int) -> Equations:
    """Return mode (c) as equations for q(i), threshold + 1 < i <= levels.

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

    def bands(time: float, q: FloatArray) -> FloatArray:
        to_random = load_at(time) - high * (1 - q[0])
        packed = np.zeros((3, q.size))
        packed[0, 1:] = level[:-1]
        packed[1] = -level - to_random
        packed[1, 0] += high * (1 - q[0])
        packed[2, :-1] = to_random
        return packed

    return Equations(drift, bands)


def survivors(q: FloatArray, first: int, elapsed: FloatArray) -> FloatArray:
    """Return q(i) for i >= first after some time without arrivals there; tasks survive independently.

    One row per time. A pool with m tasks keeps a binomial number of them.
    """
    share = exactly(q)
    starts = np.flatnonzero(share[first:] > _NEGLIGIBLE) + first
    rows = np.zeros((elapsed.size, q.size - first))
    if not starts.size:
        return rows
    level = np.arange(first, int(starts[-1]) + 1)
    tasks = np.maximum(starts[:, None], level)
    possible = level <= starts[:, None]
    block = max(_BLOCK // possible.size, 1)  # times per block, to bound the memory
    for begin in range(0, elapsed.size, block):
        keeps = np.exp(-elapsed[begin : begin + block])[:, None, None]
        at_least = np.where(possible, bdtrc(level - 1, tasks, keeps), 0.0)
        rows[begin : begin + block, : level.size] = np.einsum("m,tmi->ti", share[starts], at_least)
    return rows


def surviving_mass(q: FloatArray, first: int) -> Callable[[FloatArray], FloatArray]:
    """Return a function of the time elapsed without arrivals at `first` or above: the mass v_first that is left.

    That is the sum over m of share(m) E[(B - first + 1)^+], where B is what is left of m tasks.
    """
    share = exactly(q)
    starts = np.flatnonzero(share[first:] > _NEGLIGIBLE) + first
    if not starts.size:
        return lambda elapsed: np.zeros(elapsed.size)
    weights = share[starts]

    def mass(elapsed: FloatArray) -> FloatArray:
        keeps = np.exp(-elapsed)[:, None]
        # E[B; B >= first] - (first - 1) P(B >= first), and B times its weight is a binomial of one task fewer.
        all_tasks = starts * keeps * bdtrc(first - 2, starts - 1, keeps)
        left: FloatArray = (all_tasks - (first - 1) * bdtrc(first - 1, starts, keeps)) @ weights
        return left

    return mass
