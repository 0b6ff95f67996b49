"""`evenly fluid`."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

import typer

from evenly.cli import options
from evenly.cli.inputs import read_values
from evenly.cli.output import emit, plot_path, wants_json
from evenly.cli.progress import progress_bar
from evenly.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evenly.theory.fluid.path import FluidPath
    from evenly.workload.demand import Phase

EXAMPLE = "Example: evenly fluid --load 5.5 --alpha 0.93 --initial 9 --plot settling.png"

_KEYS = ("load", "schedule", "threshold", "alpha", "horizon", "points")


def command(
    load: options.Load = None,
    schedule: options.Schedule = None,
    threshold: options.Threshold = None,
    alpha: options.Alpha = None,
    initial_tasks: options.InitialTasks = None,
    horizon: options.FluidHorizon = None,
    points: options.PathPoints = None,
    scenario: options.ScenarioFile = None,
    plot: options.Plot = None,
    json: options.Json = None,
) -> None:
    """Solve the fluid limit: what very many pools do over time, without chance."""
    values = read_values(locals())
    _check(values)
    picture = plot_path(values)

    from evenly.cli.text.fluid import fluid_text, fluid_title
    from evenly.theory.fluid.inputs import demand_phases
    from evenly.theory.fluid.path import fluid

    phases = demand_phases(values.get("load"), values.get("schedule"))
    asked = {key: values[key] for key in _KEYS if key in values}
    with progress_bar("solving"):
        path = fluid(**asked | {"initial": _start(values)})
    facts = _echo(values, phases, path) | path.to_dict()
    if picture:
        from evenly.plots import fluid as fluid_plot

        fluid_plot.draw(path, phases, fluid_title(facts), picture)
    emit(lambda: facts, lambda: typer.echo(fluid_text(path, facts)), as_json=wants_json(values), files=[picture])


def _echo(values: dict[str, Any], phases: Sequence[Phase], path: FluidPath) -> dict[str, Any]:
    """What was asked, defaults filled in; as in a simulation, `load` is the one at time 0."""
    alpha = values.get("alpha")
    return {
        "load": phases[0].load,
        "schedule": ",".join(map(str, phases)) if "schedule" in values else None,
        "alpha": None if alpha is None else float(alpha),
        "first_threshold": values.get("threshold", int(path.threshold[0]) if alpha is None else 0),
        "initial": values.get("initial_tasks", 0),
        "horizon": float(path.times[-1]),
        "points": path.times.size,
    }


def _start(values: dict[str, Any]) -> float | list[float]:
    """Tasks per pool or, from a list with the tasks of each pool, the fractions of pools with at least so many."""
    from evenly.theory.fluid.inputs import MAX_LEVELS
    from evenly.theory.inputs import whole_number

    initial = values.get("initial_tasks", 0)
    if isinstance(initial, int | float) and not isinstance(initial, bool):
        return initial
    if not isinstance(initial, list) or not initial:
        raise InputError(f"initial_tasks must be tasks per pool, or a list with those of each, not {initial!r}.")
    if len(initial) != values.get("pools", len(initial)):
        raise InputError(f"initial_tasks must have {values['pools']} numbers, one per pool, not {len(initial)}.")
    tasks = sorted(whole_number("initial_tasks", count, 0, MAX_LEVELS - 1) for count in initial)
    return [1 - bisect_left(tasks, level) / len(tasks) for level in range(tasks[-1] + 1)]


def _check(values: dict[str, Any]) -> None:
    """What a scenario file may say that the fluid limit has no place for."""
    if "load" not in values and "schedule" not in values:
        raise InputError("Say what the load is: --load X or --schedule T:X,...")
    if values.get("policy", "threshold") != "threshold":
        raise InputError(f"The fluid limit is that of policy threshold, not {values['policy']}.")
    if values.get("service_rate", 1) != 1:
        raise InputError("Fluid time is measured in mean task times: service_rate must be 1.")
    if values.get("capacity") is not None:
        raise InputError("The fluid limit is that of pools without a capacity.")
