"""Checks of values from outside, and the one style of their error messages: "X must be ..., not V."."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import wraps
from numbers import Integral, Number, Real
from typing import Any, TypeVar

from evenly.errors import InputError

# Former names, and rho, as papers call the load. Also in files and sweeps.
OTHER_NAMES = {"choices": "sample_size", "initial": "initial_tasks", "rho": "load"}

_Accepting = TypeVar("_Accepting", bound=Callable[..., Any])
_SHOWN = 60  # characters of a rejected value
_PLAIN = re.compile(r"[0-9.eE+-]{1,40}")  # Python also reads 1_0, spaces, and digits of other scripts
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")  # of an object without a repr of its own


def shown(value: object) -> str:
    """Return the value as an error message quotes it: text in quotes, numbers plain, anything long cut short."""
    try:
        text = str(value) if isinstance(value, Number) and not isinstance(value, bool) else repr(value)
    except ValueError:  # Python refuses to print an integer of more than 4,300 digits
        return "a number with thousands of digits"
    except Exception:  # whatever a foreign __repr__ raises
        return f"an object of type {type(value).__name__}"
    if not isinstance(value, str):
        text = _ADDRESS.sub("", text)
    if "\n" in text:  # an array, say
        text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def whole_number(name: str, value: object, low: int, high: int, why: str = "") -> int:
    """Return the value as a plain int, or raise InputError unless it is a whole number from `low` to `high`.

    `why` says where a bound comes from, in parentheses.
    """
    if type(value) is int and low <= value <= high:  # quick: live messages are checked by the thousand
        return value
    if isinstance(value, Integral) and not isinstance(value, bool) and low <= int(value) <= high:
        return int(value)
    reason = f" ({why})" if why else ""
    raise InputError(f"{name} must be a whole number from {low} to {high}{reason}, not {shown(value)}.")


def positive_number(name: str, value: object, high: float = math.inf) -> float:
    """Return the value as a plain float, or raise InputError unless it is finite, above 0 and at most `high`."""
    number = _as_float(value)
    if 0 < number <= high and math.isfinite(number):
        return number
    bound = "" if math.isinf(high) else f" of at most {high:.12g}"
    raise InputError(f"{name} must be a positive number{bound}, not {shown(value)}.")


def number_from(name: str, value: object, low: float, high: float = math.inf) -> float:
    """Return the value as a plain float, or raise InputError unless it is finite and from `low` to `high`."""
    number = _as_float(value)
    if low <= number <= high and math.isfinite(number):
        return number
    kind = f"a number from {low:.12g} to {high:.12g}"
    if math.isinf(high):
        kind = "zero or a positive number" if low == 0 else f"a number of at least {low:.12g}"
    raise InputError(f"{name} must be {kind}, not {shown(value)}.")


def finite_number(name: str, value: object) -> float:
    """Return the value as a plain float, or raise InputError unless it is a finite number."""
    number = value if type(value) is float else _as_float(value)
    if not math.isfinite(number):
        raise InputError(f"{name} must be a finite number, not {shown(value)}.")
    return number


def plain_number(text: str) -> float:
    """Return the number that a text spells with plain digits; NaN if it spells none."""
    with suppress(ValueError):
        if _PLAIN.fullmatch(text):
            return float(text)
    return math.nan


def is_listing(value: object) -> bool:
    """Return True for anything that yields items one by one, except text."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        return False
    return getattr(value, "ndim", 1) > 0  # a single number of NumPy claims to be iterable


def check_function(name: str, value: object) -> None:
    """Reject anything but a function or None."""
    if value is not None and not callable(value):
        raise InputError(f"{name} must be a function, not {shown(value)}.")


def true_or_false(name: str, value: object) -> bool:
    """Return the value as a plain bool, or raise InputError unless it is True or False, NumPy's included."""
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        raise InputError(f"{name} must be true or false, not {shown(value)}.")
    return bool(value)


def accept_other_names(function: _Accepting) -> _Accepting:
    """Let a function, or the constructor of a class, accept the other names of its keywords."""
    if isinstance(function, type):
        function.__init__ = accept_other_names(function.__init__)  # type: ignore[misc]
        return function

    @wraps(function)
    def renaming(*arguments: Any, **values: Any) -> Any:  # noqa: ANN401
        return function(*arguments, **with_new_names(values))

    return renaming  # type: ignore[return-value]


def with_new_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values under the current names; reject a name given in both spellings."""
    for name, new in OTHER_NAMES.items():
        if name in values and new in values:
            raise InputError(f"Give {new} once: {name} is another name of it.")
    return {OTHER_NAMES.get(name, name): value for name, value in values.items()}


def _as_float(value: object) -> float:
    """Return a real number as a float; NaN for anything else, also for an integer beyond all floats."""
    if isinstance(value, Real) and not isinstance(value, bool):
        with suppress(OverflowError):
            return float(value)
    return math.nan
