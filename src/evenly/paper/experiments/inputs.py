"""Checks of the parameters that several experiments share. Each error is one sentence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from evenly.errors import InputError
from evenly.sim.scenario import whole_number

T = TypeVar("T")


def as_tuple(values: T | Iterable[T]) -> tuple[T, ...]:
    """Return one value, or several, as a tuple. A text is one value."""
    if isinstance(values, Iterable) and not isinstance(values, str):
        return tuple(values)
    return (values,)


def check_whole_numbers(name: str, values: tuple[int, ...], low: int, high: int) -> None:
    """Refuse anything but different whole numbers, each from `low` to `high`."""
    for value in values:
        whole_number(name, value, low, high)
    if not values:
        raise InputError(f"{name} must have at least one number.")
    if len(set(values)) < len(values):
        raise InputError(f"{name} must differ from each other, not {', '.join(map(str, values))}.")
