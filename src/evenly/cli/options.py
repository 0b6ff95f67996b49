"""The options that commands share. None means not given: the scenario file or the default decides."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

_SYSTEM = "The system"
_DEMAND = "The demand"
_RUN = "The run"
_OUTPUT = "The output"


def _flag(name: str, help_: str, panel: str) -> Any:  # noqa: ANN401
    return typer.Option(name, help=help_, rich_help_panel=panel, show_default=False, metavar="")


def _option(help_: str, panel: str, **more: Any) -> Any:  # noqa: ANN401  (typer's own option objects are untyped)
    return typer.Option(help=help_, rich_help_panel=panel, show_default=False, **more)


Policy = Annotated[
    str | None,
    _option("threshold (default), jsq, power-of-d, random, round-robin, jiq, jbt or pull.", _SYSTEM),
]
Policies = Annotated[
    str | None,
    _option("Policies to compare, with commas (default: random,power-of-d,jsq,threshold).", _SYSTEM),
]
Pools = Annotated[int | None, _option("Number of server pools.", _SYSTEM)]
Threshold = Annotated[
    int | None,
    _option(
        "Where the threshold starts; fixed there without --alpha (default: 0 with --alpha, else floor(load)).",
        _SYSTEM,
    ),
]
Alpha = Annotated[str | None, _option("Let the threshold learn, with this alpha between 0 and 1.", _SYSTEM)]
Choices = Annotated[int | None, _option("Pools sampled by power-of-d (default: 2).", _SYSTEM)]
Capacity = Annotated[
    int | None,
    _option("Tasks that fit into a pool; one sent to a full pool is lost (default: no limit).", _SYSTEM),
]
Initial = Annotated[float | None, _option("Tasks per pool at time 0, spread evenly (default: 0).", _SYSTEM)]
ServiceRate = Annotated[float | None, _option("One over the mean task time (default: 1).", _SYSTEM)]
Load = Annotated[float | None, _option("Offered load: mean number of tasks per pool.", _DEMAND)]
Schedule = Annotated[
    str | None,
    _option('Load over time, as "0:5.5,20:10,30:3"; "33:8~2/6" swings by 2 around 8 with period 6.', _DEMAND),
]
Horizon = Annotated[float | None, _option("When the run ends (default: 200).", _RUN)]
Warmup = Annotated[float | None, _option("When the averages begin (default: 0).", _RUN)]
Replications = Annotated[int | None, _option("Independent runs, on all cores (default: 1).", _RUN)]
Seed = Annotated[int | None, _option("The same seed gives the same numbers (default: 1).", _RUN)]
Batches = Annotated[
    int | None, _option("Batches of a single run, for intervals (default: 20 if it is long enough).", _RUN)
]
SteadyState = Annotated[
    bool | None,
    _flag("--steady-state", "Replace holding times by their means: less variance, for long-run averages.", _RUN),
]
ScenarioFile = Annotated[
    Path | None, _option("A TOML file with any of these options; those given here win.", _RUN, metavar="FILE.toml")
]
Plot = Annotated[Path | None, _option("Draw a picture: .png, .svg or .pdf.", _OUTPUT, metavar="FILE")]
Save = Annotated[Path | None, _option("Save the result for evenly.Result.load.", _OUTPUT, metavar="FILE.npz")]
Json = Annotated[bool | None, _flag("--json", "Print one JSON object and nothing else.", _OUTPUT)]
