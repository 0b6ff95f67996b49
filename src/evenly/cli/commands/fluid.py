"""`evenly fluid`."""

from __future__ import annotations

from typing import Any

import typer

from evenly.cli import options
from evenly.cli.inputs import name_left_out, read_values
from evenly.cli.output import emit, plot_path, wants_json
from evenly.cli.progress import progress_bar
from evenly.errors import InputError

EXAMPLE = "Example: evenly fluid --load 5.5 --alpha 0.93 --initial-tasks 9 --plot settling.png"

_KEYS = ("load", "schedule", "threshold", "alpha", "initial_tasks", "horizon", "points")


def command(
    load: options.Load = None,
    schedule: options.Schedule = None,
    threshold: options.LearningThreshold = None,
    alpha: options.Alpha = None,
    initial_tasks: options.InitialTasks = None,
    horizon: options.FluidHorizon = None,
    points: options.PathPoints = None,
    scenario: options.ScenarioFile = None,
    plot: options.Plot = None,
    json: options.Json = None,
) -> None:
    """Predict what pools do over time in the large-system limit."""
    values = read_values(locals())
    _check(values)
    name_left_out(values, _KEYS)
    picture = plot_path(values)

    from evenly.cli.text.fluid import fluid_text
    from evenly.theory.fluid.predict import predict_fluid

    with progress_bar("solving", estimate=True) as progress:
        path = predict_fluid(**{key: values[key] for key in _KEYS if key in values}, progress=progress)
    if picture:
        from evenly.plots import style

        with style.saved_figure(picture, 8.0, 7.0) as figure:
            path.plot_panels(figure=figure)
    emit(path.to_dict, lambda: typer.echo(fluid_text(path)), as_json=wants_json(values), files=[picture])


def _check(values: dict[str, Any]) -> None:
    """Reject keys of a scenario file with which the times, or all of the path, would be another system's."""
    if "load" not in values and "schedule" not in values:
        raise InputError("Give the load: --load X or --schedule T:X,...")
    if values.get("policy", "threshold") != "threshold":
        raise InputError(f"The fluid limit covers policy threshold, not {values['policy']}.")
    if values.get("service_rate", 1) != 1:
        raise InputError("Fluid time is measured in mean task times: service_rate must be 1.")
    initial, pools = values.get("initial_tasks"), values.get("pools")
    if isinstance(initial, list) and initial and pools is not None and len(initial) != pools:
        raise InputError(f"initial_tasks must have {pools} numbers, one per pool, not {len(initial)}.")
