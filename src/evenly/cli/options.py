"""The options that commands share. None means not given: the scenario file or the default applies."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from evenly.policies import COMPARED, DEFAULT, EXACT, POLICIES

_SYSTEM = "The system"
_DEMAND = "The demand"
_RUN = "The run"
_OUTPUT = "The output"


def number_or_text(text: str) -> float | str:
    """Return the number, or the text if it is none: the library rejects that in the same words as a bad number."""
    try:
        return float(text) if _is_plain(text) else text
    except ValueError:
        return text


def whole_number_or_text(text: str) -> int | str:
    """Return the whole number, or the text if it is none."""
    try:
        return int(text) if _is_plain(text) else text
    except ValueError:
        return text


def _is_plain(text: str) -> bool:
    """Return False for spellings that Python accepts and other programs do not: 1_000, digits of other scripts."""
    return str(text).isascii() and "_" not in str(text)  # a default is a number already


def file_path(text: str) -> Path:
    """Return the path. An empty one is rejected: Path would take it for the current folder."""
    if not text.strip():
        raise typer.BadParameter(f"it must name a file, not {text!r}.")
    return Path(text)


def option(panel: str, help_: str, metavar: str, *names: str, **more: Any) -> Any:  # noqa: ANN401  (typer's are untyped)
    """Return an option in a panel of the help."""
    return typer.Option(*names, help=help_, rich_help_panel=panel, show_default=False, metavar=metavar, **more)


def _whole(panel: str, help_: str, *names: str) -> Any:  # noqa: ANN401
    return option(panel, help_, "N", *names, parser=whole_number_or_text)


def _number(panel: str, help_: str, *names: str) -> Any:  # noqa: ANN401
    return option(panel, help_, "X", *names, parser=number_or_text)


def policy_help(names: Iterable[str]) -> str:
    """Return the policies to choose from, with the default marked."""
    *others, last = [f"{name} (default)" if name == DEFAULT else name for name in names]
    return f"{', '.join(others)} or {last}."


def flag(panel: str, help_: str, name: str) -> Any:  # noqa: ANN401
    """Return a flag in a panel of the help."""
    return typer.Option(name, help=help_, rich_help_panel=panel, show_default=False, metavar="")


_OWN = "Or your own policy: module:Class, which is imported from the current folder."
Policy = Annotated[str | None, option(_SYSTEM, f"{policy_help(POLICIES)} {_OWN}", "NAME")]
ExactPolicy = Annotated[str | None, option(_SYSTEM, policy_help(EXACT), "NAME")]
Policies = Annotated[
    str | None,
    option(
        _SYSTEM,
        f"Policies to compare (default: {','.join(COMPARED)}); module:Class for your own.",
        "NAME,NAME,...",
    ),
]
Pools = Annotated[int | None, _whole(_SYSTEM, "Number of server pools (default: those of --sizes).")]
Sizes = Annotated[
    str | None,
    option(_SYSTEM, 'Pools of different sizes: "80*1,20*4" is 80 pools of size 1 and 20 of size 4.', "N*X,..."),
]
Utility = Annotated[
    str | None, option(_SYSTEM, "Worth of a task's share of its pool: log (default), sqrt or rate.", "NAME")
]
Threshold = Annotated[
    int | None,
    _whole(
        _SYSTEM,
        "Initial threshold; stays fixed without --alpha "
        "(default: 0 with --alpha, else floor(load), or floor(load) + 1 for jbt).",
    ),
]
LearningThreshold = Annotated[
    int | None,
    _whole(_SYSTEM, "Initial threshold; stays fixed without --alpha (default: 0 with --alpha, else floor(load))."),
]
FixedThreshold = Annotated[int | None, _whole(_SYSTEM, "Fixed threshold.")]
Kind = Annotated[
    str | None, option(_SYSTEM, "Require this kind of equilibrium: large, small or balanced.", "NAME")
]
Alpha = Annotated[str | None, option(_SYSTEM, "Learn the threshold, with this alpha (between 0 and 1).", "X")]
GivenAlpha = Annotated[
    str | None, option(_SYSTEM, "Evaluate this alpha (between 0 and 1) instead of recommending one.", "X")
]
SampleSize = Annotated[
    int | None, _whole(_SYSTEM, "Pools sampled by power-of-d (default: 2).", "--sample-size", "--choices")
]
Capacity = Annotated[
    int | None,
    _whole(_SYSTEM, "Most tasks a pool can hold; a task sent to a full pool is lost (default: no limit)."),
]
InitialTasks = Annotated[
    float | None,
    _number(_SYSTEM, "Tasks per pool at time 0, spread evenly (default: 0).", "--initial-tasks", "--initial"),
]
InitialLoad = Annotated[
    float | None,
    _number(_SYSTEM, "Tasks per pool at time 0 (default: 0).", "--initial-tasks", "--initial-load"),
]
ServiceRate = Annotated[float | None, _number(_SYSTEM, "Service rate: 1 / mean task time (default: 1).")]
Service = Annotated[
    str | None,
    option(
        _SYSTEM,
        "How task times vary around their mean: exponential (default), deterministic, erlang:stages=3, "
        "hyperexponential:cv=4, coxian:means=0.5/4,next=0.2, lognormal:cv=4, weibull:shape=0.5, "
        "pareto:shape=1.5,ratio=1000, empirical:FILE or empirical:FILE,column=NAME.",
        "LAW",
    ),
]
Arrivals = Annotated[
    str | None,
    option(
        _DEMAND,
        "How arrivals vary around the load: poisson (default), renewal:cv=2, renewal:LAW, "
        "bursty:ratio=10,share=0.1,length=2, recorded:FILE or recorded:FILE,column=NAME.",
        "PROCESS",
    ),
]
Delay = Annotated[
    str | None,
    option(
        _SYSTEM,
        "How long tasks and messages are on the way, in mean task times; exponential:X for a random time "
        "with mean X (default: 0).",
        "X",
    ),
]
ReportInterval = Annotated[
    float | None,
    _number(_SYSTEM, "Mean task times between two reports of a pool, for stale-reports (default: 0.1)."),
]
Sticky = Annotated[
    float | None,
    _number(_SYSTEM, "Share of the arrivals that are clients who return to the pool that they had (default: 0)."),
]
StickyMargin = Annotated[
    int | None,
    _whole(_SYSTEM, "A client gets its pool if that has at most the threshold plus this many tasks (default: 2)."),
]
Load = Annotated[float | None, _number(_DEMAND, "Offered load: mean number of tasks per pool.", "--load", "--rho")]
LoadMax = Annotated[float | None, _number(_DEMAND, "Highest load to plan for, in tasks per pool.")]
Schedule = Annotated[
    str | None,
    option(_DEMAND, 'Load over time: "0:5.5,20:10"; "33:8~2/6" swings by 2 around 8 with period 6.', "T:X,..."),
]
Horizon = Annotated[
    float | None,
    _number(_RUN, "Simulate until this time, where a task takes 1 / service rate on average (default: 200)."),
]
FluidHorizon = Annotated[float | None, _number(_RUN, "End of the path, in mean task times (default: 20).")]
Warmup = Annotated[
    float | None, _number(_RUN, "Leave out of the averages what happens before this time (default: 0).")
]
Replications = Annotated[int | None, _whole(_RUN, "Independent runs, on all cores (default: 1).")]
Seed = Annotated[
    int | None, _whole(_RUN, "Random seed; on one machine, the same seed gives the same numbers (default: 1).")
]
Batches = Annotated[
    int | None,
    _whole(_RUN, "Batches for the intervals of a single run (default: 50, fewer or none if it is short)."),
]
SteadyState = Annotated[
    bool | None,
    flag(_RUN, "Replace random holding times by their means: less noise in long-run averages.", "--steady-state"),
]
MaxStates = Annotated[
    int | None,
    _whole(_RUN, "Reject a system with more states than this (default: 400000; at most 1000000, about 1 GB)."),
]
Limit = Annotated[
    str | None,
    option(_SYSTEM, "Require this limit: ornstein-uhlenbeck or reflected (default: chosen by the load).", "NAME"),
]
PathHorizon = Annotated[float | None, _number(_RUN, "End of the paths, in mean task times (default: 10).")]
PathPoints = Annotated[int | None, _whole(_RUN, "Points on a path, including both ends (default: 201).")]
Paths = Annotated[int | None, _whole(_RUN, "Random paths from the balanced state (default: 5; 0 for none).")]
ScenarioFile = Annotated[
    Path | None,
    option(
        _RUN, "TOML file with any of these options; the command line overrides it.", "FILE.toml", parser=file_path
    ),
]
Figures = Annotated[
    list[str] | None,
    typer.Argument(help="Only draw these figures, fig1 to fig6.", metavar="FIGURE"),
]
Quick = Annotated[bool, flag(_RUN, "Measure less: wider intervals, same verdicts.", "--quick")]
Out = Annotated[str, option(_OUTPUT, "Folder to write to, created if needed (default: evenly-paper).", "FOLDER")]
Plot = Annotated[
    Path | None, option(_OUTPUT, "Save a plot to this file (.png, .svg or .pdf).", "FILE", parser=file_path)
]
Save = Annotated[
    Path | None, option(_OUTPUT, "Save the result for evenly.Result.read.", "FILE.npz", parser=file_path)
]
Record = Annotated[
    Path | None,
    option(_OUTPUT, "Write the sessions of the run to this log, for evenly whatif.", "FILE", parser=file_path),
]
Json = Annotated[bool | None, flag(_OUTPUT, "Print one JSON object and nothing else.", "--json")]
