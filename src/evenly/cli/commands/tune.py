"""`evenly tune`."""

from __future__ import annotations

from evenly.cli import options
from evenly.cli.inputs import read_values
from evenly.cli.output import emit, plot_path, wants_json
from evenly.cli.progress import progress_bar
from evenly.errors import InputError

EXAMPLE = "Example: evenly tune --load-max 10 --pools 100; evenly tune --load 5.5 --alpha 0.93 --initial-tasks 9"

_KEYS = ("load_max", "load", "alpha", "initial_tasks", "pools", "seed", "delay")


def command(
    load_max: options.LoadMax = None,
    load: options.Load = None,
    alpha: options.GivenAlpha = None,
    initial_tasks: options.InitialLoad = None,
    pools: options.Pools = None,
    seed: options.Seed = None,
    delay: options.Delay = None,
    plot: options.Plot = None,
    json: options.Json = None,
) -> None:
    """Find an alpha for loads up to --load-max, or predict what --alpha does under --load.

    Without --pools the answer is for the large-system limit.
    """
    values = read_values(locals())
    searches = "pools" in values and "load" not in values
    if "plot" in values and not searches:
        raise InputError("--plot draws the candidates for alpha: use it with --load-max and --pools only.")
    picture = plot_path(values)

    from evenly.advice.tune_report import tune
    from evenly.cli.text.tune import print_report

    with progress_bar("measuring" if searches else "predicting") as progress:
        report = tune(**{key: values[key] for key in _KEYS if key in values}, progress=progress)
    if picture:
        from evenly.plots import style

        with style.saved_figure(picture, 9, 4.2) as figure:
            report.plot_panels(figure=figure)
    emit(report.to_dict, lambda: print_report(report), as_json=wants_json(values), files=[picture])
