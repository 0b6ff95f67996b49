"""How to set alpha, and where and how soon the threshold then settles.

Everything here is about the large-system limit. Conditions are evaluated exactly, on the decimals as written.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, log

from evenly.errors import InputError
from evenly.inputs import accept_other_names, whole_number
from evenly.theory.inputs import checked_start, exact_alpha, positive_load

Alpha = float | str | Decimal

MAX_POOLS = 10**9
MAX_INITIAL_TASKS = 10**6


def alpha_min(load_max: float) -> float:
    """Bound alpha: above it the threshold settles at most one above the optimum at loads up to `load_max`.

    Paper: Sec. 4.5, eq. (13).
    """
    return float(exact_alpha_min(load_max))


def exact_alpha_min(load_max: float) -> Fraction:
    """Return `alpha_min` as a fraction.

    Paper: Sec. 4.5, eq. (13).
    """
    largest = _exact_load(load_max, "load_max")
    return largest / (largest + 1)


def suggested_alpha(load_max: float) -> float:
    """Suggest an alpha: the least with the fewest decimal places that serves loads up to `load_max`; 0.91 for 10.

    Paper: Sec. 4.5, eq. (13), and the caption of Fig. 6.
    """
    return shortest_decimal(exact_alpha_min(load_max), Fraction(1), strictly=True)


def check_alpha_for_load(alpha: Alpha, load_max: float) -> None:
    """Reject an alpha that does not keep the threshold near the optimum at all loads up to `load_max`.

    Paper: Sec. 4.5, eq. (13).
    """
    least = exact_alpha_min(load_max)
    if exact_alpha(alpha) <= least:
        raise InputError(
            f"alpha {alpha} is too small for loads up to {load_max:g}: "
            f"it must be above {load_max:g}/{float(_exact_load(load_max) + 1):g} = {float(least):.6g}."
        )


def check_alpha_for_pools(alpha: Alpha, pools: int) -> None:
    """Reject an alpha that lets both rules apply at once with this few pools.

    Paper: Sec. 4.1; both at once cancel, as in the equation of App. B.1.
    """
    pools = whole_number("pools", pools, 2, MAX_POOLS)
    if exact_alpha(alpha) >= 1 - Fraction(1, pools):
        raise InputError(
            f"alpha {alpha} is too large for {pools} pools: it must be below 1 - 1/{pools} = {1 - 1 / pools:.6g}, "
            "or else the rules that raise and lower the threshold cancel."
        )


@accept_other_names
def settled_threshold(*, load: float, alpha: Alpha) -> tuple[int, int]:
    """Return the paper's bounds on the threshold that learning settles at.

    The upper bound may be out of reach: `can_settle_above` decides whether floor(load) + 1 is.

    Paper: Thm 6 (it settles), Prop. 6 (where).
    """
    exact = _exact_load(load)
    return ceil(exact) - 1, floor(exact / exact_alpha(alpha))


@accept_other_names
def is_optimal(*, load: float, alpha: Alpha) -> bool:
    """Return True if the paper's condition for settling at a fluid-optimal threshold holds.

    The condition is sufficient. If it does not hold, the threshold can settle above the optimum only if
    `can_settle_above` is True.

    Below load 1 the condition asks for threshold 0, though 1 is as good there.

    Paper: Cor. 2, eq. (14). The sentence after it refers to eq. (13), but (14) is what a load can violate.
    """
    exact = _exact_load(load)
    return exact / (floor(exact) + 1) < exact_alpha(alpha)


@accept_other_names
def settle_time_bound(*, load: float, alpha: Alpha, initial_tasks: float | Sequence[int] = 0.0) -> float | None:
    """Bound the time until the threshold settles at floor(load), in mean task times; tight from an empty system.

    `initial_tasks` is the number of tasks per pool at time 0, or a sequence with the tasks of each pool; only
    their mean matters. None if the load is a whole number or Cor. 2's condition fails: then no bound is known.

    Paper: Prop. 7, eq. (15); Cor. 3 (all large enough systems have settled by then).
    """
    exact, start = _exact_load(load), mean_start(initial_tasks)
    if exact.denominator == 1 or not is_optimal(load=load, alpha=alpha):
        return None
    below = floor(exact)
    fill = log(exact / (exact - below))
    if start <= exact:
        return fill
    room = exact_alpha(alpha) * (below + 1) - exact  # positive: Cor. 2's condition
    return max(log((start - exact) / room), 0.0) + fill


@accept_other_names
def settled_distance_bound(
    *, load: float, alpha: Alpha, initial_tasks: float | Sequence[int] = 0.0
) -> float | None:
    """Bound the distance from balance once the threshold has settled; it then falls exponentially.

    From t = `settle_time_bound` on, the fraction of pools with at least i tasks differs from the balanced one by
    at most this number times exp(-(time - t)), for every i. The number is load - floor(load), or more at loads
    below 1/2. None where no bound on the time is known.

    Paper: Cor. 3. It states that its c can be expressed in terms of alpha, load and u(0), and gives no formula.
    """
    exact, start = _exact_load(load), mean_start(initial_tasks)
    if settle_time_bound(load=load, alpha=alpha, initial_tasks=initial_tasks) is None:
        return None
    below = floor(exact)
    mass = min(start, exact_alpha(alpha) * (below + 1))  # once the threshold is at most floor(load) for good
    return float((exact - below) * max(Fraction(1), mass / exact - 1))


def shortest_decimal(low: Fraction, high: Fraction, *, strictly: bool = False) -> float:
    """Return the least of the numbers with the fewest decimal places in [low, high), or in (low, high)."""
    scale = 10
    while True:
        digits = floor(low * scale) + 1 if strictly else ceil(low * scale)
        if Fraction(digits, scale) < high:
            return digits / scale
        scale *= 10


def _exact_load(load: float, name: str = "load") -> Fraction:
    """Return the load as the decimal that was written."""
    return Fraction(str(positive_load(load, name)))


def mean_start(initial_tasks: float | Sequence[int]) -> Fraction:
    """Return the tasks per pool at time 0, as the decimal that was written or the mean over the pools."""
    start = checked_start(initial_tasks, MAX_INITIAL_TASKS, MAX_INITIAL_TASKS)
    return Fraction(sum(start), len(start)) if isinstance(start, tuple) else Fraction(str(start))


def is_whole_load(load: float) -> bool:
    """Return True if the load is a whole number: then two thresholds are optimal and no bound on time is known."""
    return _exact_load(load).denominator == 1
