"""`evenly diffusion`."""

from __future__ import annotations

import json as json_

import typer

from evenly.cli import options
from evenly.cli.progress import progress_bar
from evenly.cli.request import flag, picture_path, read_values
from evenly.errors import InputError
from evenly.files import check_writable

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
    picture = picture_path(values.get("plot"))
    if picture is not None:
        check_writable(picture)

    from evenly.cli import show
    from evenly.theory.limits import diffusion_limit

    with progress_bar("sampling"):
        facts = diffusion_limit(values["load"], **{key: values[key] for key in _KEYS if key in values})
    if picture:
        from evenly.plots import diffusion as diffusion_plot

        diffusion_plot.draw(facts, picture)
    if flag("json", values.get("json", False)):
        typer.echo(json_.dumps(facts))
        return
    typer.echo(show.diffusion_text(facts))
    if picture:
        typer.echo(f"wrote {picture}")
