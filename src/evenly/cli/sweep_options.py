"""The options of `evenly sweep`: those of `simulate`, each with a list or a range, and those of a grid."""

from __future__ import annotations

from copy import copy
from typing import Annotated, Any, get_args

from evenly.cli import options
from evenly.cli.options import option

_GRID = "The grid"
_ENGINE = "The engine"
_OUTPUT = "The output"


def _swept(alias: Any, metavar: str = "X,...") -> Any:  # noqa: ANN401  (typer's are untyped)
    """Return an option of `simulate` as one that takes a text: a value, a list or a range."""
    found = copy(get_args(alias)[1])
    found.parser, found.metavar = None, metavar
    return found


Policy = Annotated[str | None, _swept(options.Policy, "NAME,...")]
Pools = Annotated[str | None, _swept(options.Pools, "N,...")]
Sizes = Annotated[str | None, _swept(options.Sizes, "SIZES;...")]
Utility = Annotated[str | None, _swept(options.Utility, "NAME,...")]
Load = Annotated[str | None, _swept(options.Load)]
Schedule = Annotated[str | None, _swept(options.Schedule, "SCHEDULE;...")]
Threshold = Annotated[str | None, _swept(options.Threshold, "N,...")]
Alpha = Annotated[str | None, _swept(options.Alpha)]
SampleSize = Annotated[str | None, _swept(options.SampleSize, "N,...")]
Capacity = Annotated[str | None, _swept(options.Capacity, "N,...")]
InitialTasks = Annotated[str | None, _swept(options.InitialTasks)]
ServiceRate = Annotated[str | None, _swept(options.ServiceRate)]
Service = Annotated[str | None, _swept(options.Service, "LAW;...")]
Arrivals = Annotated[str | None, _swept(options.Arrivals, "PROCESS;...")]
Delay = Annotated[str | None, _swept(options.Delay)]
ReportInterval = Annotated[str | None, _swept(options.ReportInterval)]
Sticky = Annotated[str | None, _swept(options.Sticky)]
StickyMargin = Annotated[str | None, _swept(options.StickyMargin, "N,...")]
Horizon = Annotated[str | None, _swept(options.Horizon)]
Warmup = Annotated[str | None, _swept(options.Warmup)]
Replications = Annotated[str | None, _swept(options.Replications, "N,...")]
Seed = Annotated[str | None, _swept(options.Seed, "N,...")]
Batches = Annotated[str | None, _swept(options.Batches, "N,...")]

Zip = Annotated[
    list[str] | None,
    option(_GRID, "Options that vary together, value by value, instead of in all combinations.", "NAME,NAME"),
]
Values = Annotated[
    str | None,
    option(
        _GRID,
        "Values to record, such as spread,max_tasks,threshold_share (default: all that are single averages).",
        "NAME,...",
    ),
]
Until = Annotated[
    str | None,
    option(
        _GRID,
        'Add replications to a point until the half-width of a value is small enough: "spread < 0.005" or '
        '"spread < 1%".',
        "GOAL",
    ),
]
DryRun = Annotated[
    bool | None, options.flag(_GRID, "Print points, events, minutes and megabytes, and run nothing.", "--dry-run")
]
Engine = Annotated[
    str | None, option(_ENGINE, "local (default) for processes on this machine, ray or gpu.", "NAME")
]
Workers = Annotated[
    int | None,
    option(
        _ENGINE,
        "Processes of the local engine (default: one per core).",
        "N",
        parser=options.whole_number_or_text,
    ),
]
RayAddress = Annotated[
    str | None,
    option(_ENGINE, "Ray cluster to join: auto, or HOST:PORT (default: start Ray on this machine).", "ADDRESS"),
]
FailFast = Annotated[
    bool | None,
    options.flag(_ENGINE, "Stop at the first point that fails; otherwise its error is its row.", "--fail-fast"),
]
Out = Annotated[
    str | None,
    option(
        _OUTPUT,
        "Folder of Parquet files, created if needed; points in it are not run again (default: evenly-sweep).",
        "FOLDER",
    ),
]
X = Annotated[str | None, option(_OUTPUT, "Option along the plot's horizontal axis.", "NAME", "--x")]
Y = Annotated[str | None, option(_OUTPUT, "Option along the plot's vertical axis.", "NAME", "--y")]
Facet = Annotated[str | None, option(_OUTPUT, "Option with a panel of the plot for each value.", "NAME")]
Value = Annotated[
    str | None, option(_OUTPUT, "Values that the plot shows (default: the first of --values).", "NAME,...")
]
