"""What the predictions accept. Written apart from `core` and `sim` on purpose."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import inf
from numbers import Integral, Real
from typing import Any

from evenly.errors import InputError

MAX_DECIMALS = 50
MAX_LOAD = 10**5  # beyond it the arrays of levels grow out of hand
MAX_THRESHOLD = 10**6


def positive_load(load: float, name: str = "load") -> float:
    """The load as a plain number, if it is one that can be computed with."""
    return positive_number(name, load, MAX_LOAD)


def positive_number(name: str, value: float, most: float) -> float:
    """The value as a plain number, if it is positive and not too large."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < inf:
        raise InputError(f"{name} must be a positive number, not {value!r}.")
    if not value <= most:
        shown = f"{float(value):g}" if value <= sys.float_info.max else "a number beyond all floats"
        raise InputError(f"{name} must be at most {most:g}, not {shown}.")
    return float(value)


def whole_number(name: str, value: int, least: int, most: int) -> int:
    """The value, if it is a whole number within bounds."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputError(f"{name} must be a whole number, not {value}.")
    if not least <= value <= most:
        raise InputError(f"{name} must lie between {least} and {most}, not {value}.")
    return int(value)


def checked_threshold(threshold: int) -> int:
    """The threshold, if it is one."""
    return whole_number("threshold", threshold, 0, MAX_THRESHOLD)


def checked_start(initial_tasks: object, most: int, most_of_one: int) -> float | tuple[int, ...]:
    """The tasks per pool at time 0, or the tasks of each pool, as plain numbers."""
    given: Any = initial_tasks
    is_number = isinstance(given, Real) and not isinstance(given, bool)
    if is_number:
        if not 0 <= given <= most:
            raise InputError(f"initial_tasks must lie between 0 and {most} tasks per pool, not {initial_tasks}.")
        return int(given) if isinstance(given, Integral) else float(given)
    listed = not isinstance(given, str | bytes) and (isinstance(given, Sequence) or getattr(given, "ndim", 0) == 1)
    tasks = tuple(whole_number("initial_tasks", count, 0, most_of_one) for count in given) if listed else ()
    if not tasks:
        raise InputError(
            f"initial_tasks must be tasks per pool, or a list with those of each, not {initial_tasks!r}."
        )
    return tasks


def plain_alpha(alpha: float | str | Decimal) -> float | str | Decimal:
    """Alpha as given, but a plain number instead of one of NumPy: the decimal that it was written as."""
    exact_alpha(alpha)
    return float(str(alpha)) if isinstance(alpha, Real) else alpha


def exact_alpha(alpha: float | str | Decimal) -> Fraction:
    """Alpha as the very number that was written, not the binary float next to it."""
    try:
        value = Decimal(str(alpha))
    except InvalidOperation:
        value = Decimal(0)
    if not value.is_finite() or not 0 < value < 1:
        raise InputError(f"alpha must lie strictly between 0 and 1, not {alpha}.")
    if -int(value.as_tuple().exponent) > MAX_DECIMALS:  # the fraction would never end
        raise InputError(f"alpha must have at most {MAX_DECIMALS} decimal places, not {alpha}.")
    return Fraction(value)
