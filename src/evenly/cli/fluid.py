"""`evenly fluid`."""

from __future__ import annotations

from typing import Any

import typer

from evenly.cli import options
from evenly.cli.delivery import deliver, wanted_picture, wants_json
from evenly.cli.progress import progress_bar
from evenly.cli.request import read_values
from evenly.errors import InputError

EXAMPLE = "Example: evenly fluid --load 5.5 --alpha 0.93 --initial 9 --plot settling.png"

_KEYS = ("load", "schedule", "threshold", "alpha", "initial", "horizon", "points")


def command(
    load: options.Load = None,
    schedule: options.Schedule = None,
    threshold: options.Threshold = None,
    alpha: options.Alpha = None,
    initial: options.Initial = None,
    horizon: options.FluidHorizon = None,
    points: options.PathPoints = None,
    scenario: options.ScenarioFile = None,
    plot: options.Plot = None,
    json: options.Json = None,
) -> None:
    """Solve the fluid limit: what very many pools do over time, without chance."""
    values = read_values(locals())
    _check(values)
    picture = wanted_picture(values)

    from evenly.cli.show import fluid_text
    from evenly.theory.fluid import fluid

    with progress_bar("solving"):
        path = fluid(**{key: values[key] for key in _KEYS if key in values})
    if picture:
        from evenly.plots import fluid as fluid_plot

        fluid_plot.draw(path, picture)
    deliver(path.to_dict(), lambda: typer.echo(fluid_text(path)), as_json=wants_json(values), files=[picture])


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
