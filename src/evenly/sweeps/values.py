"""The values that a sweep can record of each point, by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from evenly.errors import InputError
from evenly.inputs import is_listing, shown
from evenly.sim import Result
from evenly.sim.records import Records
from evenly.sweeps.axes import did_you_mean

CI = "_ci95"  # what the column of a half-width adds to the name of its value

Number = float | int | None
_NOTHING = Records(0)


@dataclass(frozen=True)
class Value:
    """A value: how to take it from a result, the scalar whose interval it has, if any, and the records it needs.

    Counts, and the times at each threshold and with each maximum, are always recorded.
    """

    name: str
    take: Callable[[Result], Any]
    meaning: str
    interval: str | None = None
    is_list: bool = False
    needs: Records = _NOTHING


def _scalar(name: str, meaning: str, scalar: str | None = None, needs: Records = _NOTHING) -> Value:
    key = scalar or name
    return Value(name, lambda result: _number(result.scalars().get(key)), meaning, key, needs=needs)


def _count(name: str, meaning: str) -> Value:
    return Value(name, lambda result: _number(getattr(result, name)), meaning)


def _list(name: str, meaning: str, needs: Records = _NOTHING) -> Value:
    return Value(name, lambda result: getattr(result, name).tolist(), meaning, is_list=True, needs=needs)


def _number(value: float | None) -> Number:
    return None if value is None or math.isnan(value) else value


def _threshold_share(result: Result) -> list[float]:
    share = result.threshold_share
    return [share.get(level, 0.0) for level in range(max(share, default=-1) + 1)]


def _diffusion_gap(result: Result) -> Number:
    """Return how far the imbalance is from that of the diffusion limit, relative to the latter.

    At a load that is not a whole number, only one level fluctuates in the limit. Its distance from the balanced
    one is normal with the variance load / pools, and the mean of its absolute value is sqrt(2 / pi) deviations.
    """
    from evenly.theory.diffusion.fractional import is_whole, ornstein_uhlenbeck  # loads much of SciPy

    scenario = result.scenario
    if not scenario.steady or scenario.sizes is not None or is_whole(scenario.load_at_start):
        return None
    deviation = ornstein_uhlenbeck(scenario.load_at_start).occupancy_deviation(scenario.pools)
    return abs(result.imbalance / (math.sqrt(2 / math.pi) * deviation) - 1)


VALUES = {
    value.name: value
    for value in (
        _scalar("mean_tasks", "tasks per pool", needs=Records.LEVELS),
        _scalar("max_tasks", "tasks in the fullest pool"),
        _scalar("spread", "standard deviation of tasks over pools", needs=Records.SPREAD),
        _scalar("imbalance", "distance between the occupancy and the balanced one", needs=Records.IMBALANCE),
        _scalar("messages_per_task", "messages per arriving task"),
        _scalar("resync_per_task", "messages after changes of the threshold, per arriving task"),
        _scalar("lost_share", "share of arriving tasks that were lost"),
        _scalar("mean_threshold", "the threshold", "threshold"),
        Value(
            "change_rate",
            lambda result: result.change_rate if result.endings else None,
            "changes of the threshold per unit of time",
        ),
        _scalar("mean_utility", "utility per pool, with sizes"),
        _count("change_count", "changes of the threshold"),
        _count("lost_tasks", "tasks lost"),
        _count("without_token", "tasks that found no token"),
        _count("kept_share", "share of the returning clients who got the pool that they had"),
        Value(
            "diffusion_gap",
            _diffusion_gap,
            "relative distance of the imbalance from its diffusion limit",
            needs=Records.IMBALANCE,
        ),
        _list("pools_with_exactly", "share of pools with 0, 1, 2, ... tasks", Records.LEVELS),
        _list("task_share", "share of tasks in pools with 0, 1, 2, ... tasks", Records.LEVELS),
        _list("max_tasks_distribution", "share of time with 0, 1, 2, ... tasks in the fullest pool"),
        _list("class_tasks", "tasks per pool of each class, with sizes"),
        Value("threshold_share", _threshold_share, "share of time at threshold 0, 1, 2, ...", is_list=True),
    )
}
DEFAULT = tuple(VALUES)[:10]


def read_values(written: object) -> tuple[str, ...]:
    """Return the names of values in "a,b" or in a list; the default ones for None."""
    if written is None:
        return DEFAULT
    names = written.split(",") if isinstance(written, str) else list(written) if is_listing(written) else None  # type: ignore[call-overload]
    if not names or not all(isinstance(name, str) for name in names):
        raise InputError(f"values must be names separated by commas, or a list of names, not {shown(written)}.")
    return tuple(dict.fromkeys(value_name(name) for name in names))


def value_name(written: str) -> str:
    """Return the name of a value, or raise InputError with the nearest one."""
    name = written.strip().replace("-", "_")
    if name == "threshold":  # that column has the option of this name
        return "mean_threshold"
    if name not in VALUES:
        raise InputError(f"There is no value {shown(written)}{did_you_mean(name, VALUES)}")
    return name


def needed_records(names: Iterable[str]) -> Records:
    """Return the records that these values need."""
    return reduce(or_, (VALUES[name].needs for name in names), _NOTHING)


def take(result: Result, names: Sequence[str]) -> list[Any]:
    """Return the values of a result, each followed by its half-width if it has intervals."""
    widths: dict[str, float] | None = None
    found: list[Any] = []
    for name in names:
        value = VALUES[name]
        number = value.take(result)
        found.append(number)
        if value.interval is not None:
            widths = result.half_widths() if widths is None else widths
            found.append(None if number is None else _number(widths.get(value.interval)))
    return found


def columns(names: Sequence[str]) -> list[str]:
    """Return the columns of these values, in the order of `take`."""
    return [column for name in names for column in ((name, name + CI) if VALUES[name].interval else (name,))]
