"""Checks that the parameters of several experiments share."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from itertools import islice
from numbers import Real
from typing import TypeVar, cast

from evenly.errors import InputError
from evenly.inputs import number_from, shown, whole_number
from evenly.theory.inputs import exact_alpha
from evenly.theory.tuning import Alpha

MIN_LOAD, MIN_TIME = 1e-3, 1e-3  # below these a picture has nothing to show
MAX_EVENTS = 1e12  # of all runs together; they take about a day

T = TypeVar("T")


def as_tuple(name: str, values: T | Iterable[T], most: int) -> tuple[T, ...]:
    """Return one value, or up to `most` values, as a tuple. Text is one value."""
    if isinstance(values, str | bytes | bytearray) or not isinstance(values, Iterable):
        return (values,)
    try:
        found = tuple(islice(values, most + 1))
    except TypeError:  # an array without dimensions
        return (cast(T, values),)
    if len(found) > most:
        raise InputError(f"{name} must have at most {most} values.")
    return found


def different_whole_numbers(name: str, values: object, low: int, high: int) -> tuple[int, ...]:
    """Return the values as plain ints, or raise InputError unless they differ and are from `low` to `high`."""
    given = values if isinstance(values, tuple) else (values,)
    found = tuple(whole_number(name, value, low, high) for value in given)
    if not found:
        raise InputError(f"{name} must have at least one number.")
    if len(set(found)) < len(found):
        raise InputError(f"{name} must differ from each other, not {', '.join(map(str, found))}.")
    return found


def checked_load(load: object, most: float) -> float:
    """Return the load as a plain float, or raise InputError unless a picture can show it."""
    return number_from("load", load, MIN_LOAD, most)


def checked_time(name: str, time: object, most: float) -> float:
    """Return a length of time as a plain float, or raise InputError unless a picture can show it."""
    return number_from(name, time, MIN_TIME, most)


def checked_alpha(alpha: Alpha) -> Alpha:
    """Return alpha, or raise InputError unless it is a number or a text between 0 and 1."""
    if not isinstance(alpha, str | Decimal | Real) or isinstance(alpha, bool):
        raise InputError(f"alpha must lie strictly between 0 and 1, not {shown(alpha)}.")
    exact_alpha(alpha)
    return alpha


def check_events(pools: int, load: float, time: float) -> None:
    """Reject runs that would take days: a task arrives and departs, `load` of them per pool and unit of time."""
    events = 2 * pools * load * time
    if events > MAX_EVENTS:
        raise InputError(
            f"This would simulate {events:.2g} events; at most {MAX_EVENTS:g} are allowed: reduce the pools, the "
            "load or the time."
        )


def keep(setup: object, **values: object) -> None:
    """Set fields of a frozen dataclass to their checked values: plain numbers, also where NumPy's were given."""
    for name, value in values.items():
        object.__setattr__(setup, name, value)
