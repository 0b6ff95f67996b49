"""From options with lists and ranges to a plan whose points are possible, before anything runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from numbers import Real
from typing import Any

from evenly import __version__
from evenly.errors import InputError
from evenly.inputs import is_listing, shown
from evenly.own_policy import find_class
from evenly.policies import is_own
from evenly.sim import Scenario
from evenly.sim.scenario import checked_scenario
from evenly.sweeps.axes import defaults, option_name, option_names, read_all
from evenly.sweeps.goal import read_goal
from evenly.sweeps.gpu_values import check_gpu_scenario, read_gpu_values
from evenly.sweeps.grid import Grid, Group, make_grid
from evenly.sweeps.point import Plan, prepare
from evenly.sweeps.schedule import point_text
from evenly.sweeps.values import read_values

_CHECK_ALL = 5000  # points: up to this many are all tried out, in about half a second
_MAX_CORNERS = 5000
_MAX_TRIED = 2000  # values of one option


def make_plan(
    given: Mapping[str, Any],
    zipped: object = None,
    values: object = None,
    until: object = None,
    *,
    gpu: bool = False,
) -> Plan:
    """Return the plan of a sweep over these options, each a value, a list or a range; raises InputError.

    Options that are not given have their defaults. Every point is possible, or nearly: see `check_points`.
    """
    axes: dict[str, Sequence[Any]] = {
        name: read_all(name, given[name]) if given.get(name) is not None else (default,)
        for name, default in defaults().items()
    }
    if gpu:
        _check_gpu_options(axes, until)
    names = read_gpu_values(values) if gpu else read_values(values)
    plan = Plan(make_grid(axes, _read_zip(zipped, given)), names, read_goal(until), __version__, gpu=gpu)
    for policy in axes["policy"]:
        if is_own(policy):
            find_class(policy)
    return replace(plan, samples=tuple(check_points(plan)))


def plan_over(
    scenario: Scenario,
    over: Mapping[str, Any],
    *,
    zip: object = None,
    values: object = None,
    until: object = None,
    gpu: bool = False,
    **runs: object,
) -> Plan:
    """Return the plan of a sweep over some options of a scenario; `runs` says how each point is run."""
    system = checked_scenario(scenario)
    if not isinstance(over, Mapping):
        raise InputError(f"over must be a mapping from options to lists of values, not {shown(over)}.")
    varied = {option_name(str(name)): given for name, given in over.items()}
    shared = {field.name: getattr(system, field.name) for field in fields(Scenario)} | runs
    for name, rival in (("schedule", "load"), ("load", "schedule"), ("sizes", "pools")):
        if name in varied and rival not in varied:
            shared.pop(rival, None)
    fixed = {name: [value] for name, value in shared.items() if value is not None}
    return make_plan({**fixed, **varied}, zip, values, until, gpu=gpu)


def _check_gpu_options(axes: Mapping[str, Sequence[Any]], until: object) -> None:
    """Reject options whose work a GPU does not do: its intervals come from replications, in one go."""
    if until is not None:
        raise InputError("until is not for engine gpu: give replications, as many as you like.")
    if axes["batches"] != (None,):
        raise InputError("batches is not for engine gpu: its intervals come from replications.")


def _read_zip(written: object, given: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the groups of options that vary together, from "a,b", a list of such texts, or a list of lists."""
    if written is None:
        return []
    groups = [written] if isinstance(written, str) else list(written) if is_listing(written) else None  # type: ignore[call-overload]
    if groups and all(isinstance(each, str) and "," not in each for each in groups):
        groups = [groups]  # one group as a list of names
    found = []
    for group in groups or ():
        names = group.split(",") if isinstance(group, str) else list(group) if is_listing(group) else []
        if len(names) < 2 or not all(isinstance(name, str) for name in names):
            break
        found.append(tuple(option_name(name.strip()) for name in names))
    if not found or len(found) < len(groups or ()):
        raise InputError(f'zip must name at least two options, as in "alpha,pools", not {shown(written)}.')
    for name in itertools.chain.from_iterable(found):
        if given.get(name) is None:
            raise InputError(f"zip names {name}, which has no values: give them too.")
    return found


def check_points(plan: Plan) -> list[Scenario]:
    """Reject a plan with impossible points, before anything runs. Return a scenario for each kernel.

    Up to 5,000 points are all tried out. Of more, each value of each option is tried, up to 2,000 of them, and all
    combinations of the smallest and the largest numbers with everything that is not a number: a scenario's limits,
    such as the capacity that a threshold must stay below, are monotone in its numbers. A point that is impossible
    all the same becomes a row with its error.
    """
    points = range(len(plan.grid)) if len(plan.grid) <= _CHECK_ALL else _typical_points(plan.grid)
    kernels: dict[Any, Scenario] = {}
    for index in points:
        try:
            scenario, _ = prepare(plan, plan.grid.values(index), 0)
            if plan.gpu:
                check_gpu_scenario(scenario)
        except InputError as error:
            named = str(error).partition(" ")[0]  # the option that is wrong, if its value is wrong by itself
            if len(plan.grid) == 1 or (named in option_names() and named not in plan.grid.axes):
                raise
            raise InputError(f"The point {point_text(plan, index)} is impossible. {error}") from None
        if plan.gpu:
            continue
        kernels.setdefault((scenario.info.name, scenario.networked, scenario.memoryless, scenario.sized), scenario)
    return list(kernels.values())


def _typical_points(grid: Grid) -> Iterator[int]:
    """Yield each value of each option with the first ones of all others, and the corners of the grid."""
    start = 0
    for block in grid.blocks:
        sizes = [len(group.rows) for group in block.groups]
        strides = [math.prod(sizes[place + 1 :]) for place in range(len(sizes))]
        for stride, size in zip(strides, sizes, strict=True):
            step = math.ceil(size / _MAX_TRIED)
            yield from (start + row * stride for row in range(0, size, step))
        corners = [_extremes(group) for group in block.groups]
        for rows in itertools.islice(itertools.product(*corners), _MAX_CORNERS):
            yield start + sum(row * stride for row, stride in zip(rows, strides, strict=True))
        start += block.size


def _extremes(group: Group) -> Sequence[int]:
    """Return the rows with the smallest and the largest number of an option; all rows if it has other values."""
    found: set[int] = set()
    for column in zip(*group.rows, strict=True):
        numbers = [_as_number(value) for value in column]
        if any(math.isnan(number) for number in numbers):
            return range(len(group.rows))
        found |= {numbers.index(min(numbers)), numbers.index(max(numbers))}
    return sorted(found)


def _as_number(value: object) -> float:
    if isinstance(value, Real) or (isinstance(value, str) and value.replace(".", "", 1).isdecimal()):
        return float(value)
    return math.nan
