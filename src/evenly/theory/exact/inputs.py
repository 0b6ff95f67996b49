"""Input checks of `solve_exact`, and the defaults that depend on other parameters.

Independent of `core` and `sim` on purpose, like everything that checks them.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from math import floor

from scipy.special import pdtrc

from evenly.errors import InputError
from evenly.inputs import positive_number, shown, whole_number
from evenly.policies import EXACT, check_parameters, find_policy
from evenly.theory.exact.chain import too_large
from evenly.theory.inputs import checked_threshold, exact_alpha, positive_load

MAX_POOLS = 10**9
MAX_LOAD = 10**6
MAX_CAPACITY = 10**6
MAX_STATES = 10**6  # a state takes about 1 kB


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """The numbers of a request, each within its bounds."""

    pools: int
    load: float
    threshold: int | None
    sample_size: int | None
    capacity: int | None
    tolerance: float
    max_states: int


def checked_numbers(
    *,
    pools: object,
    load: object,
    threshold: object,
    sample_size: object,
    capacity: object,
    tolerance: object,
    max_states: object,
) -> Numbers:
    """Return the numbers as plain ones, or raise InputError for one that no policy can use."""
    return Numbers(
        pools=whole_number("pools", pools, 1, MAX_POOLS),
        load=positive_load(load, most=MAX_LOAD),
        threshold=None if threshold is None else checked_threshold(threshold),
        sample_size=None if sample_size is None else whole_number("sample_size", sample_size, 1, MAX_POOLS),
        capacity=None if capacity is None else whole_number("capacity", capacity, 1, MAX_CAPACITY),
        tolerance=_checked_tolerance(tolerance),
        max_states=whole_number("max_states", max_states, 1, MAX_STATES),
    )


def _checked_tolerance(tolerance: object) -> float:
    value = positive_number("tolerance", tolerance, 1.0)
    if value == 1:
        raise InputError(f"tolerance must be below 1, not {shown(tolerance)}.")
    return value


def check_policy(
    policy: str, threshold: int | None, alpha: float | str | Decimal | None, sample_size: int | None
) -> None:
    """Reject a policy that cannot be solved exactly, or a parameter that it does not take."""
    find_policy(policy, EXACT)
    check_parameters([policy], {"threshold": threshold, "alpha": alpha, "sample_size": sample_size}, EXACT)


def start_threshold(
    load: float, threshold: int | None, alpha: float | str | Decimal | None, capacity: int | None
) -> int:
    """Return the threshold at the start; with a capacity B it lies in 0..B-1."""
    highest = None if capacity is None else capacity - 1
    if threshold is None:
        wanted = floor(load) if alpha is None else 0
        return wanted if highest is None else min(wanted, highest)
    if highest is not None and threshold > highest:
        raise InputError(f"threshold must be at most {highest} with capacity {capacity}, not {threshold}.")
    return threshold


def largest_fall(alpha: float | str | Decimal, pools: int, capacity: int | None) -> int:
    """Return the largest number of pools that is a fraction of at most `alpha`, from the decimal as written."""
    value = exact_alpha(alpha)
    if pools == 1 and capacity is None:
        raise InputError(
            "pools must be at least 2 to learn without a capacity, not 1: the threshold would only rise."
        )
    return floor(value * pools)


def checked_sample_size(sample_size: int | None, pools: int) -> int:
    """Return the number of pools that power-of-d samples, two if not given."""
    if sample_size is None:
        return min(2, pools)
    return whole_number("sample_size", sample_size, 1, pools, "the number of pools")


def largest_total(
    pools: int, load: float, capacity: int | None, tolerance: float, max_states: int
) -> tuple[int, float]:
    """Return the most tasks that the system may hold, and the probability that is cut off by stopping there.

    Paper: Sec. 2.1 (the total is Poisson).
    """
    if capacity is not None:
        return pools * capacity, 0.0
    mean = pools * load
    if mean > max_states:  # every total up to the mean has at least one state
        raise too_large(f"{floor(mean):,}", max_states)
    limit = max(floor(mean), 1)
    while pdtrc(limit, mean) >= tolerance:
        limit += 1
    return limit, float(pdtrc(limit, mean))
