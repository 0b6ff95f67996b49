"""Checks that the predictions share. Independent of `core` and `sim` on purpose."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

from evenly.errors import InputError
from evenly.inputs import number_from, positive_number, shown, whole_number

MAX_DECIMALS = 50
MIN_LOAD = 1e-300  # the inverse of a smaller load overflows
MAX_LOAD = 10**5  # with a larger one, arrays over levels take too much memory
MAX_THRESHOLD = 10**6
_MAX_LISTED = 10**7  # pools whose tasks are given one by one


def positive_load(load: object, name: str = "load", most: float = MAX_LOAD) -> float:
    """Return the load as a plain float, or raise InputError unless it is positive and can be computed with."""
    value = positive_number(name, load, most)
    if value < MIN_LOAD:
        raise InputError(f"{name} must be at least {MIN_LOAD:g}, not {shown(load)}.")
    return value


def checked_threshold(threshold: object) -> int:
    """Return the threshold as a plain int, or raise InputError unless it is from 0 to `MAX_THRESHOLD`."""
    return whole_number("threshold", threshold, 0, MAX_THRESHOLD)


def checked_start(initial_tasks: object, most: int, most_of_one: int) -> float | tuple[int, ...]:
    """Return the tasks per pool at time 0 (up to `most`), or those of each pool (up to `most_of_one`)."""
    given: Any = initial_tasks
    if isinstance(given, Real) and not isinstance(given, bool):
        number = number_from("initial_tasks", given, 0, most)
        return int(given) if isinstance(given, Integral) else number
    listed = not isinstance(given, str | bytes) and (isinstance(given, Sequence) or getattr(given, "ndim", 0) == 1)
    if not listed or not 0 < len(given) <= _MAX_LISTED:
        raise InputError(
            "initial_tasks must be a number of tasks per pool, or a list with the tasks of each pool, "
            f"not {shown(initial_tasks)}."
        )
    return tuple(whole_number("initial_tasks", count, 0, most_of_one) for count in given)


def plain_alpha(alpha: object) -> float | str | Decimal:
    """Return alpha as given, except that a NumPy number becomes the plain float with the same decimals."""
    exact_alpha(alpha)
    if isinstance(alpha, Real):
        return float(str(alpha))
    assert isinstance(alpha, str | Decimal)
    return alpha


def exact_alpha(alpha: object) -> Fraction:
    """Return alpha as the decimal that was written, not as the nearest binary float."""
    value = Decimal("NaN")
    if isinstance(alpha, Real | str | Decimal) and not isinstance(alpha, bool):
        try:
            value = Decimal(str(alpha))
        except (InvalidOperation, ValueError):  # not a number, or an integer too long to print
            value = Decimal("NaN")
    written = shown(alpha) if value.is_nan() else f"{alpha!s:.60}"  # a number given as text needs no quotes
    if not value.is_finite() or not 0 < value < 1:
        raise InputError(f"alpha must lie strictly between 0 and 1, not {written}.")
    if -int(value.as_tuple().exponent) > MAX_DECIMALS:  # the fraction would have too many digits
        raise InputError(f"alpha must have at most {MAX_DECIMALS} decimal places, not {written}.")
    return Fraction(value)
