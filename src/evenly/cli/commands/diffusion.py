"""`evenly diffusion`."""

from __future__ import annotations

import typer

from evenly.cli import options
from evenly.cli.inputs import read_values
from evenly.cli.output import emit, plot_path, wants_json
from evenly.cli.progress import progress_bar
from evenly.errors import InputError

EXAMPLE = "Example: evenly diffusion --load 2.5 --pools 400 --plot diffusion.png"

_KEYS = ("limit", "pools", "horizon", "points", "paths", "seed")


def command(
    load: options.Load = None,
    pools: options.Pools = None,
    limit: options.Limit = None,
    horizon: options.PathHorizon = None,
    points: options.PathPoints = None,
    paths: options.Paths = None,
    seed: options.Seed = None,
    plot: options.Plot = None,
    json: options.Json = None,
) -> None:
    """Predict how a balanced system fluctuates: the limits for many pools."""
    values = read_values(locals())
    if "load" not in values:
        raise InputError("The diffusion limit needs --load.")
    picture = plot_path(values)

    from evenly.cli.text.diffusion import diffusion_text
    from evenly.theory.diffusion.limit import diffusion_limit

    with progress_bar("sampling"):
        facts = diffusion_limit(values["load"], **{key: values[key] for key in _KEYS if key in values})
    if picture:
        from evenly.plots import diffusion as diffusion_plot

        diffusion_plot.draw(facts, picture)
    emit(lambda: facts, lambda: typer.echo(diffusion_text(facts)), as_json=wants_json(values), files=[picture])
