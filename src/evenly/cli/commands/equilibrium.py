"""`evenly equilibrium`."""

from __future__ import annotations

from typing import Any

import typer

from evenly.cli import options
from evenly.cli.inputs import read_values
from evenly.cli.output import emit, plot_path, wants_json
from evenly.errors import InputError

EXAMPLE = "Example: evenly equilibrium --load 5.5 --threshold 7"

_KEYS = ("threshold", "kind", "sample_size")


def command(
    policy: options.ExactPolicy = None,
    load: options.Load = None,
    threshold: options.FixedThreshold = None,
    kind: options.Kind = None,
    sample_size: options.SampleSize = None,
    plot: options.Plot = None,
    json: options.Json = None,
) -> None:
    """Predict where very many pools settle: under a fixed threshold, or under another policy."""
    values = read_values(locals())
    picture = plot_path(values)

    from evenly.cli.text.equilibrium import equilibrium_text

    facts = _facts(values)
    if picture:
        from evenly.plots import equilibrium as equilibrium_plot

        equilibrium_plot.draw(facts, picture)
    emit(lambda: facts, lambda: typer.echo(equilibrium_text(facts)), as_json=wants_json(values), files=[picture])


def _facts(values: dict[str, Any]) -> dict[str, Any]:
    """The equilibrium of the policy asked for."""
    from evenly.theory.other_policies import describe_equilibrium

    policy = values.get("policy", "threshold")
    needed = ("load", "threshold") if policy == "threshold" else ("load",)
    if any(name not in values for name in needed):
        options_ = " and ".join(f"--{name}" for name in needed)
        raise InputError(f"The equilibrium under policy {policy} needs {options_}.")
    return describe_equilibrium(policy, values["load"], **{key: values[key] for key in _KEYS if key in values})
