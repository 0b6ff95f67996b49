"""Pools of different sizes: classes of pools, and the utility of the tasks that share a pool.

A pool of size s splits s units of some resource evenly among its x tasks, and each task gets the quality g(s / x).
The utility of the pool is u(x) = x * g(s / x), which is concave in x if g is concave. The marginal utility of one
more task, u(x + 1) - u(x), falls strictly with x for the functions g listed here.

Paper: Sec. 2, where all pools have size 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

from evenly.errors import InputError
from evenly.inputs import is_listing, number_from, shown, whole_number

MAX_POOLS = 10**9
MAX_CLASSES = 64
SIZES = (0.001, 1000.0)  # of a pool
_PART = re.compile(r"\s*([0-9]{1,10})\s*\*\s*([0-9.eE+-]{1,40})\s*")
_BITS = 2.0**40  # of a marginal utility: rounding makes those equal that differ by rounding errors alone


@dataclass(frozen=True)
class PoolClass:
    """`count` pools of one size."""

    count: int
    size: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", whole_number("The number of pools of a class", self.count, 1, MAX_POOLS))
        object.__setattr__(self, "size", checked_size(self.size))

    def __str__(self) -> str:
        return f"{self.count}*{repr(self.size).removesuffix('.0')}"


def checked_size(size: object, name: str = "The size of a pool") -> float:
    """Return the size as a plain float, or raise InputError unless a pool can have it."""
    return number_from(name, size, *SIZES)


def parse_sizes(sizes: object) -> tuple[PoolClass, ...]:
    """Return the classes of a text such as "80*1,20*4", or of a list of classes or of (count, size) pairs."""
    if isinstance(sizes, str):
        if sizes.count(",") >= MAX_CLASSES:
            raise InputError(_TOO_MANY)
        return _checked([_parse_class(part) for part in sizes.split(",")])
    if not is_listing(sizes):
        raise InputError(_not_sizes(sizes))
    assert isinstance(sizes, Iterable)
    given = list(islice(sizes, MAX_CLASSES + 1))
    if len(given) > MAX_CLASSES:
        raise InputError(_TOO_MANY)
    return _checked([each if isinstance(each, PoolClass) else _pair(each) for each in given])


def sizes_text(classes: Iterable[PoolClass]) -> str:
    """Return the classes as the option --sizes takes them."""
    return ",".join(map(str, classes))


_TOO_MANY = f"sizes must have at most {MAX_CLASSES} classes."


def _not_sizes(given: object) -> str:
    return (
        f"sizes must list count*size, as in 80*1,20*4 for 80 pools of size 1 and 20 of size 4, not {shown(given)}."
    )


def _parse_class(text: str) -> PoolClass:
    match = _PART.fullmatch(text)
    try:
        found = None if match is None else (int(match[1]), float(match[2]))
    except ValueError:
        found = None
    if found is None:
        raise InputError(_not_sizes(text))
    return PoolClass(*found)


def _pair(pair: object) -> PoolClass:
    values = list(islice(pair, 3)) if is_listing(pair) and isinstance(pair, Iterable) else []
    if len(values) != 2:
        raise InputError(f"A class of pools is a pair of count and size, such as (80, 1), not {shown(pair)}.")
    return PoolClass(*values)


def _checked(classes: list[PoolClass]) -> tuple[PoolClass, ...]:
    if not classes:
        raise InputError(_not_sizes(classes))
    seen: set[float] = set()
    for each in classes:
        if each.size in seen:
            raise InputError(f"sizes must list each size once, not {each.size:.12g} twice: add up the counts.")
        seen.add(each.size)
    if sum(each.count for each in classes) > MAX_POOLS:
        raise InputError(f"sizes must have at most {MAX_POOLS} pools in all.")
    return tuple(classes)


@dataclass(frozen=True)
class Utility:
    """A utility by name: `quality(share)` is g, `marginal(size, tasks)` is u(tasks + 1) - u(tasks).

    Marginal utilities are rounded to 40 bits. Those of different sizes can be equal, such as those of the first
    task in a pool of size 1 and of the second in one of size 4 under `log`. They must also compare as equal.
    """

    name: str
    title: str
    quality: Callable[[float], float]
    exact_marginal: Callable[[float, int], float]

    def marginal(self, size: float, tasks: int) -> float:
        """Return what one more task adds to the utility of a pool of this size that has `tasks` tasks."""
        return rounded(self.exact_marginal(size, tasks))

    def total(self, size: float, tasks: int) -> float:
        """Return the utility of a pool of this size with `tasks` tasks; 0 without tasks."""
        return tasks * self.quality(size / tasks) if tasks else 0.0


def rounded(value: float) -> float:
    """Return the value to 40 bits."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(mantissa * _BITS), exponent - 40)


# Differences of nearly equal utilities would lose digits. These forms keep them.


def _log_marginal(size: float, tasks: int) -> float:
    gain = math.log(size / (tasks + 1)) - (tasks * math.log1p(1 / tasks) if tasks else 0.0)
    return round(gain * _BITS) / _BITS  # near 0, errors are as large as elsewhere


def _sqrt_marginal(size: float, tasks: int) -> float:
    return math.sqrt(size) / (math.sqrt(tasks + 1) + math.sqrt(tasks))


def _rate_marginal(size: float, tasks: int) -> float:
    first = math.log1p(size / (tasks + 1))
    return first - (tasks * math.log1p(size / (tasks * (tasks + 1 + size))) if tasks else 0.0)


UTILITIES = {
    utility.name: utility
    for utility in (
        Utility("log", "log of a task's share, which is proportional fairness", math.log, _log_marginal),
        Utility("sqrt", "square root of a task's share", math.sqrt, _sqrt_marginal),
        Utility("rate", "log(1 + share), as the rate of a noisy channel", math.log1p, _rate_marginal),
    )
}
DEFAULT_UTILITY = "log"


def find_utility(name: object) -> Utility:
    """Return the utility of this name, or raise InputError."""
    if not isinstance(name, str) or name not in UTILITIES:
        raise InputError(f"utility must be one of {', '.join(UTILITIES)}, not {shown(name)}.")
    return UTILITIES[name]
