"""`evenly diffusion`."""

from __future__ import annotations

import typer

from evenly.cli import options
from evenly.cli.inputs import read_values
from evenly.cli.output import emit, plot_path, wants_json
from evenly.cli.progress import progress_bar
from evenly.errors import InputError

EXAMPLE = "Example: evenly diffusion --load 2.5 --pools 400 --plot diffusion.png"

_KEYS = ("load", "limit", "pools", "horizon", "points", "paths", "seed")


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
    """Predict how a balanced system fluctuates, from the diffusion limit."""
    values = read_values(locals())
    if "load" not in values:
        raise InputError("The diffusion limit needs --load.")
    picture = plot_path(values)

    from evenly.cli.text.diffusion import diffusion_text
    from evenly.theory.diffusion.limit import predict_diffusion

    with progress_bar("sampling"):
        found = predict_diffusion(**{key: values[key] for key in _KEYS if key in values})
    if picture:
        from evenly.plots import style

        with style.saved_figure(picture, 8.0, 5.6 if found.limit == "reflected" else 3.8) as figure:
            found.plot_panels(figure=figure)
    emit(found.to_dict, lambda: typer.echo(diffusion_text(found)), as_json=wants_json(values), files=[picture])
