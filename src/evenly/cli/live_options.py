"""The options that the live commands share. None means not given: the config file or the default decides."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

_ADDRESSES = "Addresses"
_DECISIONS = "Decisions"
_OPERATION = "Operation"


def _option(panel: str, help_: str, metavar: str, *names: str) -> Any:  # noqa: ANN401  (typer's are untyped)
    return typer.Option(*names, help=help_, rich_help_panel=panel, show_default=False, metavar=metavar)


Listen = Annotated[str | None, _option(_ADDRESSES, "Where clients come in; port 0 takes a free one.", "HOST:PORT")]
PickerListen = Annotated[
    str | None, _option(_ADDRESSES, "Where Envoys ask, by gRPC; port 0 takes a free one.", "HOST:PORT", "--listen")
]
Pool = Annotated[list[str] | None, _option(_ADDRESSES, "A server pool; once for each.", "HOST:PORT")]
Admin = Annotated[
    str | None,
    _option(_ADDRESSES, "Metrics, state and changes of pools (default: a free port of 127.0.0.1).", "HOST:PORT"),
]
AdminTokenFile = Annotated[
    Path | None,
    _option(
        _ADDRESSES,
        "The token that the admin port asks for, needed beyond loopback (or: EVENLY_ADMIN_TOKEN).",
        "FILE",
    ),
]
LivePolicy = Annotated[
    str | None, _option(_DECISIONS, "threshold (default), jsq, power-of-d or random.", "NAME", "--policy")
]
Alpha = Annotated[
    str | None,
    _option(_DECISIONS, "How eagerly the threshold falls, between 0 and 1 (default: advised for the pools).", "X"),
]
LoadMax = Annotated[
    float | None, _option(_DECISIONS, "The largest mean number of sessions per pool, to advise an alpha.", "X")
]
Choices = Annotated[int | None, _option(_DECISIONS, "Pools sampled by power-of-d (default: 2).", "N")]
HealthPath = Annotated[
    str | None,
    _option(_OPERATION, "Check pools by a GET of this path (default: by a TCP connection).", "PATH"),
]
SlowStart = Annotated[
    float | None,
    _option(_OPERATION, "Seconds in which a pool that comes or recovers fills up (default: 10).", "SECONDS"),
]
Drain = Annotated[
    float | None, _option(_OPERATION, "Seconds for open sessions to end when it stops (default: 30).", "SECONDS")
]
Config = Annotated[
    Path | None,
    _option(
        _OPERATION,
        "A TOML file with any of these options, watched for changes of pools; those given here win.",
        "FILE.toml",
    ),
]
State = Annotated[Path | None, _option(_OPERATION, "A file to remember changed pools in, over a restart.", "FILE")]
