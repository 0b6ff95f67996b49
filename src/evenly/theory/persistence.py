"""Thresholds above the optimum that can persist: the sharp form of the condition for settling at the optimum.

Under a fixed threshold above the load, every solution of the fluid equations converges to the equilibrium of that
threshold (proved on the page of errata and sharpenings). Hence a learned threshold can settle there if and only if
at least a fraction alpha of the pools is at the threshold in that equilibrium.

Paper: sharpens Cor. 2.
"""

from __future__ import annotations

from math import ceil, floor

from scipy.optimize import brentq

from evenly.inputs import accept_other_names
from evenly.theory.equilibrium import predict_equilibrium
from evenly.theory.inputs import exact_alpha, positive_load
from evenly.theory.tuning import Alpha


def full_share_above(load: float) -> float:
    """Return the fraction of pools with floor(load) + 1 tasks in the equilibrium of that threshold.

    It grows with the load between two whole numbers. With m = floor(load) + 1 - load missing tasks per pool, it is
    at least 1 - m and at most 1/(1 + m).

    Paper: the theta of Ex. 1, eq. (4), for the threshold floor(load) + 1.
    """
    return full_share(load, floor(positive_load(load)) + 1)


def full_share(load: float, threshold: int) -> float:
    """Return the fraction of pools at a threshold above the load, in the equilibrium of that threshold."""
    return float(predict_equilibrium(load=load, threshold=threshold).occupancy[threshold])


@accept_other_names
def can_settle_above(*, load: float, alpha: Alpha) -> bool:
    """Return True if a learned threshold can settle at floor(load) + 1, in the large-system limit.

    Whether it does depends on the start: it never does from an empty system. Below load 1 the threshold 1 is as
    good as 0.

    Paper: sharpens Cor. 2, whose condition (`is_optimal`) is sufficient for False.
    """
    return full_share_above(load) >= exact_alpha(alpha)


def loads_settling_above(*, alpha: Alpha, load_max: float) -> tuple[tuple[float, float], ...]:
    """Return the loads below `load_max` for which `can_settle_above` is True, as intervals [low, high).

    Paper: sharpens Cor. 2 and the two sentences after it.
    """
    share, most = float(exact_alpha(alpha)), positive_load(load_max, "load_max")
    lows = ((_lowest_load(share, whole), whole) for whole in range(1, ceil(most) + 1))
    return tuple((low, min(float(whole), most)) for low, whole in lows if low < most)


def _lowest_load(alpha: float, whole: int) -> float:
    """Return the lowest load in [whole - 1, whole) at which the threshold `whole` can persist."""
    high = whole - 1 + alpha  # 1 - m = alpha: here it can
    if whole == 1:  # the threshold 1 leaves at most one task in a pool, so its share is the load
        return high
    low = max(whole - 1.0, whole + 1 - 1 / alpha)  # 1/(1 + m) = alpha: below this it cannot
    if full_share_above(low) >= alpha:
        return low
    if full_share_above(high) <= alpha:  # up to rounding
        return high
    return float(brentq(lambda load: full_share_above(load) - alpha, low, high, xtol=1e-12))
