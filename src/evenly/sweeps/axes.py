"""The values of an option in a sweep: one, a list, or a range, from the command line, a file or Python.

`0.5:0.99:0.01` goes from 0.5 to 0.99 in steps of 0.01, and `10..10000/7` has seven values in equal ratios. Ranges
are computed on the decimals as written, so that 0.57 is the 0.57 that a user would type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from functools import cache
from numbers import Integral, Real
from typing import Any, get_args, get_type_hints

from evenly.errors import InputError
from evenly.inputs import OTHER_NAMES, is_listing, shown, whole_number
from evenly.policies import own_name
from evenly.sim import Scenario
from evenly.workload.arrivals import ArrivalProcess, parse_arrivals
from evenly.workload.delay import parse_delay
from evenly.workload.demand import Phase, parse_schedule
from evenly.workload.pools import parse_sizes, sizes_text
from evenly.workload.service import ServiceLaw, parse_service

MAX_VALUES = 10**6  # of one option
RUN = {"replications": 1, "seed": 1, "batches": None, "steady_state": False}  # besides the fields of a scenario
_WHOLE_IN_RUN = ("replications", "seed", "batches")
_COMMAS_INSIDE = ("sizes", "schedule", "service", "arrivals")  # a semicolon separates two of these
_DIGITS = 6  # significant, of the values between the ends of a logarithmic range
_NUMBER = r"[+-]?(?:\d{1,30}\.?\d{0,30}|\.\d{1,30})(?:[eE][+-]?\d{1,3})?"
_STEPS = re.compile(rf"({_NUMBER}):({_NUMBER}):({_NUMBER})", re.ASCII)
_RATIOS = re.compile(rf"({_NUMBER})\.\.({_NUMBER})/(\d{{1,9}})", re.ASCII)
_PLAIN = re.compile(_NUMBER, re.ASCII)


@cache
def option_names() -> tuple[str, ...]:
    """Return the names of all options that a sweep can vary: the fields of a scenario, and how it is run."""
    return (*(field.name for field in fields(Scenario)), *RUN)


@cache
def defaults() -> Mapping[str, Any]:
    """Return the values of all options that are not given; None where there is none."""
    return {**{field.name: normal(field.name, field.default) for field in fields(Scenario)}, **RUN}


@cache
def whole_options() -> frozenset[str]:
    """Return the options that take whole numbers only."""
    hints = get_type_hints(Scenario)
    return frozenset({name for name in hints if int in (hints[name], *get_args(hints[name]))} | {*_WHOLE_IN_RUN})


@cache
def float_options() -> frozenset[str]:
    """Return the options that take real numbers, some of them also texts."""
    hints = get_type_hints(Scenario)
    return frozenset(name for name in hints if float in (hints[name], *get_args(hints[name])))


def option_name(written: str) -> str:
    """Return the name of an option as it is spelled in Python, or raise InputError."""
    name = OTHER_NAMES.get(written.replace("-", "_"), written.replace("-", "_"))
    if name not in option_names():
        raise InputError(f"A sweep has no option {shown(written)}{did_you_mean(name, option_names())}")
    return name


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a refusal: the nearest known name."""
    return f"; did you mean {get_close_matches(name[:40], known, n=1, cutoff=0.0)[0]!r}?"


def read_axis(name: str, written: object) -> tuple[Any, ...]:
    """Return the distinct values of an option, in the order given."""
    return tuple(dict.fromkeys(read_all(name, written)))


def read_all(name: str, written: object) -> list[Any]:
    """Return the values of an option in the order given, as often as given.

    `written` is a text with lists and ranges, a list of values or of such texts, or a single value.
    """
    found: list[Any] = []
    for item in _items(name, written):
        values = _read_text(name, item) if isinstance(item, str) else [item]
        found += [normal(name, value) for value in values]
        if len(found) > MAX_VALUES:
            raise InputError(f"{name} must have at most {MAX_VALUES} values.")
    if not found:
        raise InputError(f"{name} must have at least one value, not {shown(written)}.")
    return found


def _items(name: str, written: object) -> Iterable[object]:
    if isinstance(written, str):
        parts = [part.strip() for part in written.split(";" if name in _COMMAS_INSIDE else ",")]
        if not all(parts):
            raise InputError(f"{name} must be a value, a list or a range, not {shown(written)}.")
        return parts
    if isinstance(written, Mapping) or not is_listing(written):
        return [written]
    items: list[object] = list(written)  # type: ignore[call-overload]
    if name == "schedule" and items and all(isinstance(item, Phase) for item in items):
        return [tuple(items)]
    return items


def _read_text(name: str, text: str) -> Sequence[Any]:
    if name in _COMMAS_INSIDE or name in ("policy", "utility"):
        return [text]
    if match := _STEPS.fullmatch(text):
        return [_number(name, value) for value in _steps(name, text, *map(Decimal, match.groups()))]
    if match := _RATIOS.fullmatch(text):
        return _ratios(name, text, Decimal(match[1]), Decimal(match[2]), int(match[3]))
    return [_number(name, Decimal(text))] if _PLAIN.fullmatch(text) else [text]


def _number(name: str, value: Decimal) -> int | float | str:
    """Return a number as its option takes it; alpha stays the decimal that was written."""
    if name == "alpha":
        return f"{value:f}" if abs(value.adjusted()) < 40 else str(value)
    if name in whole_options() and value == value.to_integral_value() and value.adjusted() < 30:
        return int(value)
    return float(value)


def _steps(name: str, text: str, first: Decimal, last: Decimal, step: Decimal) -> list[Decimal]:
    if step == 0 or (last - first) / step < 0:
        raise InputError(f"{name} must be a range first:last:step that a step leads through, not {shown(text)}.")
    count = int((last - first) / step) + 1
    whole_number(f"The number of values of {name}", count, 1, MAX_VALUES)
    return [first + place * step for place in range(count)]


def _ratios(name: str, text: str, first: Decimal, last: Decimal, count: int) -> list[int | float | str]:
    if first <= 0 or last <= first or not 2 <= count <= MAX_VALUES:
        raise InputError(
            f"{name} must be a range first..last/count with 0 < first < last and 2 to {MAX_VALUES} values, "
            f"not {shown(text)}."
        )
    ratio = float(last / first)
    inner = (float(first) * ratio ** (place / (count - 1)) for place in range(1, count - 1))
    if name in whole_options():
        between = [Decimal(round(value)) for value in inner]
    else:
        between = [Decimal(f"{value:.{_DIGITS}g}") for value in inner]
    return [_number(name, value) for value in (first, *between, last)]


def normal(name: str, value: Any) -> Any:  # noqa: ANN401  (whatever a scenario takes)
    """Return the value in the one form that stands for all spellings of it, hashable.

    What cannot be read is returned as it is: the scenario rejects it.
    """
    if value is None or isinstance(value, bool):
        return value
    if name in _NORMAL:
        return _NORMAL[name](value)
    if isinstance(value, Integral) and name in whole_options():
        return int(value)
    return float(value) if isinstance(value, Real) and name in float_options() else value


def _normal_service(value: object) -> ServiceLaw | str:
    law = parse_service(value)
    return law if law.name == "empirical" else str(law)


def _normal_arrivals(value: object) -> ArrivalProcess | str:
    process = parse_arrivals(value)
    return process if process.name == "recorded" else str(process)


def _normal_schedule(value: Any) -> Any:  # noqa: ANN401
    return parse_schedule(value) if isinstance(value, str) else tuple(value) if is_listing(value) else value


def _normal_start(value: Any) -> Any:  # noqa: ANN401
    if is_listing(value):
        return tuple(int(each) if isinstance(each, Integral) else each for each in value)
    return float(value) if isinstance(value, Real) else value


def _normal_alpha(value: Any) -> Any:  # noqa: ANN401
    if not isinstance(value, str | Real | Decimal):
        return value
    try:
        decimal = Decimal(str(value)).normalize()
    except InvalidOperation:
        return value
    return f"{decimal:f}" if decimal.is_finite() and abs(decimal.adjusted()) < 40 else str(value)


_NORMAL: Mapping[str, Callable[[Any], Any]] = {
    "policy": lambda value: value,
    "alpha": _normal_alpha,
    "service": _normal_service,
    "arrivals": _normal_arrivals,
    "delay": lambda value: parse_delay(value).written,
    "sizes": lambda value: sizes_text(parse_sizes(value)),
    "schedule": _normal_schedule,
    "initial_tasks": _normal_start,
}


def written_form(name: str, value: Any) -> Any:  # noqa: ANN401
    """Return the value for a column: a number, a text, a truth value or None."""
    if name == "alpha" and value is not None:
        return float(value)
    if isinstance(value, type):
        return own_name(value)
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
