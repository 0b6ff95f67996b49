"""`evenly equilibrium`."""

from __future__ import annotations

from typing import Any

import typer

from evenly.cli import options
from evenly.cli.inputs import read_values
from evenly.cli.output import emit, plot_path, wants_json
from evenly.errors import InputError
from evenly.policies import DEFAULT

EXAMPLE = "Example: evenly equilibrium --load 5.5 --threshold 7"

_KEYS = ("policy", "load", "threshold", "sample_size", "kind")


def command(
    policy: options.ExactPolicy = None,
    load: options.Load = None,
    threshold: options.FixedThreshold = None,
    kind: options.Kind = None,
    sample_size: options.SampleSize = None,
    plot: options.Plot = None,
    json: options.Json = None,
) -> None:
    """Predict where pools settle in the large-system limit: under a fixed threshold, or another policy."""
    values = read_values(locals())
    picture = plot_path(values)

    from evenly.cli.text.equilibrium import equilibrium_text
    from evenly.theory.equilibrium import predict_equilibrium

    _check(values)
    found = predict_equilibrium(**{key: values[key] for key in _KEYS if key in values})
    if picture:
        from evenly.plots import style

        with style.saved_figure(picture, 6.4, 4.0) as figure:
            found.plot_panels(figure=figure)
    emit(found.to_dict, lambda: typer.echo(equilibrium_text(found)), as_json=wants_json(values), files=[picture])


def _check(values: dict[str, Any]) -> None:
    """Require a load and, under policy threshold, a threshold (the library would take floor(load))."""
    policy = values.get("policy", DEFAULT)
    needed = ("load", "threshold") if policy == DEFAULT else ("load",)
    if any(name not in values for name in needed):
        options_ = " and ".join(f"--{name}" for name in needed)
        raise InputError(f"The equilibrium under policy {policy} needs {options_}.")
