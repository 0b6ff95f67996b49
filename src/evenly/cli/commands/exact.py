"""`evenly exact`."""

from __future__ import annotations

import typer

from evenly.cli import options
from evenly.cli.inputs import name_left_out, read_values
from evenly.cli.output import emit, plot_path, wants_json
from evenly.cli.progress import progress_bar
from evenly.errors import InputError

EXAMPLE = "Example: evenly exact --policy threshold --pools 5 --load 1.5 --alpha 0.7"

_KEYS = ("policy", "pools", "load", "threshold", "alpha", "sample_size", "capacity", "max_states")


def command(
    policy: options.ExactPolicy = None,
    pools: options.Pools = None,
    load: options.Load = None,
    threshold: options.LearningThreshold = None,
    alpha: options.Alpha = None,
    sample_size: options.SampleSize = None,
    capacity: options.Capacity = None,
    max_states: options.MaxStates = None,
    scenario: options.ScenarioFile = None,
    plot: options.Plot = None,
    json: options.Json = None,
) -> None:
    """Compute the exact stationary distribution of a small system."""
    values = read_values(locals())
    if "sizes" in values and "pools" not in values:
        raise InputError("An exact solution is for pools of one size: give --pools in place of the file's sizes.")
    if "pools" not in values or "load" not in values:
        raise InputError("An exact solution needs --pools and --load.")
    name_left_out(values, _KEYS)
    picture = plot_path(values)

    from evenly.cli.text.exact import exact_text
    from evenly.theory.exact.law import solve_exact

    asked = {key: values[key] for key in _KEYS if key in values}
    with progress_bar("solving", estimate=True) as progress:
        law = solve_exact(**asked, progress=progress)
    if picture:
        from evenly.plots import style

        with style.saved_figure(picture, 3.2 * (3 if law.threshold_share else 2), 3.2) as figure:
            law.plot_panels(figure=figure)
    emit(law.to_dict, lambda: typer.echo(exact_text(law)), as_json=wants_json(values), files=[picture])
