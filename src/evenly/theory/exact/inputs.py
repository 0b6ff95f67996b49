"""What `solve_exact` accepts, and the values that follow from it where something is left open.

Written apart from `core` and `sim` on purpose, like all of this oracle; the sentences are kept the same.
"""

from decimal import Decimal
from math import floor, isfinite, log
from numbers import Integral, Real

from scipy.special import pdtrc

from evenly.errors import InputError
from evenly.policies import EXACT, check_parameters, find_policy
from evenly.theory.exact.chain import check_size
from evenly.theory.inputs import exact_alpha


def check_numbers(
    pools: int,
    load: float,
    threshold: int | None,
    sample_size: int | None,
    capacity: int | None,
    tolerance: float,
    max_states: int,
) -> None:
    """Numbers that no policy could use."""
    for name, value in (
        ("pools", pools),
        ("capacity", capacity),
        ("threshold", threshold),
        ("sample_size", sample_size),
    ):
        if value is not None and (isinstance(value, bool) or not isinstance(value, Integral)):
            raise InputError(f"{name} must be a whole number, not {value}.")
    if isinstance(load, bool) or not isinstance(load, Real):
        raise InputError(f"load must be a positive number, not {load}.")
    if pools < 1:
        raise InputError(f"pools must be at least 1, not {pools}.")
    if not (isfinite(load) and load > 0):
        raise InputError(f"load must be a positive number, not {load}.")
    if capacity is not None and capacity < 1:
        raise InputError(f"capacity must be at least 1, not {capacity}.")
    if not 0 < tolerance < 1:
        raise InputError(f"tolerance must be between 0 and 1, both excluded, not {tolerance}.")
    if max_states < 1:
        raise InputError(f"max_states must be at least 1, not {max_states}.")


def check_policy(
    policy: str, threshold: int | None, alpha: float | str | Decimal | None, sample_size: int | None
) -> None:
    """A policy that cannot be solved exactly, or a parameter that it does not take."""
    find_policy(policy, EXACT)
    check_parameters([policy], {"threshold": threshold, "alpha": alpha, "sample_size": sample_size}, EXACT)


def start_threshold(
    load: float, threshold: int | None, alpha: float | str | Decimal | None, capacity: int | None
) -> int:
    """The threshold at the start; with a capacity B it lies in 0..B-1."""
    highest = None if capacity is None else capacity - 1
    if threshold is None:
        wanted = floor(load) if alpha is None else 0
        return wanted if highest is None else min(wanted, highest)
    if threshold < 0:
        raise InputError(f"threshold must be at least 0, not {threshold}.")
    if highest is not None and threshold > highest:
        raise InputError(f"threshold must be at most {highest} with capacity {capacity}, not {threshold}.")
    return threshold


def largest_fall(alpha: float | str | Decimal, pools: int, capacity: int | None) -> int:
    """The largest number of pools that is a fraction of at most `alpha`, from the decimal as written."""
    value = exact_alpha(alpha)
    if pools == 1 and capacity is None:
        raise InputError("pools must be at least 2 to learn without a capacity, not 1: nothing would fall.")
    return floor(value * pools)


def checked_sample_size(sample_size: int | None, pools: int) -> int:
    """The number of pools that power-of-d samples, two if not given."""
    if sample_size is None:
        return min(2, pools)
    if not 1 <= sample_size <= pools:
        raise InputError(f"sample_size must be from 1 to the number of pools, {pools}, not {sample_size}.")
    return sample_size


def largest_total(
    pools: int, load: float, capacity: int | None, tolerance: float, max_states: int
) -> tuple[int, float]:
    """The most tasks the system may hold, and the probability that is lost by stopping there.

    Paper: Sec. 2.1 (the total is Poisson).
    """
    if capacity is not None:
        return pools * capacity, 0.0
    mean = pools * load
    check_size(log(mean), max_states)  # every total up to the mean has a state at least
    limit = max(floor(mean), 1)
    while pdtrc(limit, mean) >= tolerance:
        limit += 1
    return limit, float(pdtrc(limit, mean))
