"""`evenly exact`."""

from __future__ import annotations

import json as json_

import typer

from evenly.cli import options
from evenly.cli.progress import progress_bar
from evenly.cli.request import PICTURES
from evenly.errors import InputError
from evenly.files import check_writable

EXAMPLE = "Example: evenly exact --policy threshold --pools 5 --load 1.5 --alpha 0.7"


def command(
    policy: options.Policy = None,
    pools: options.Pools = None,
    load: options.Load = None,
    threshold: options.Threshold = None,
    alpha: options.Alpha = None,
    choices: options.Choices = None,
    capacity: options.Capacity = None,
    plot: options.Plot = None,
    json: options.Json = None,
) -> None:
    """Solve a small system exactly, without chance: threshold, jsq, power-of-d or random."""
    if pools is None or load is None:
        raise InputError("An exact solution needs --pools and --load.")
    if plot is not None:
        if plot.suffix.lower() not in PICTURES:
            raise InputError(f"plot must name a file that ends in {' or '.join(PICTURES)}, not {str(plot)!r}.")
        check_writable(plot)

    from evenly.cli import show
    from evenly.theory.exact import exact_law

    with progress_bar("solving"):
        law = exact_law(
            policy=policy or "threshold",
            pools=pools,
            load=load,
            threshold=threshold,
            alpha=alpha,
            choices=choices,
            capacity=capacity,
        )
    if plot:
        from evenly.plots import law as law_plot

        law_plot.draw(law, plot)
    if json:
        typer.echo(json_.dumps(law.to_dict()))
        return
    typer.echo(show.exact_text(law))
    if plot:
        typer.echo(f"wrote {plot}")
