"""The options of `evenly whatif`. None means not given: the default applies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenly.cli.options import file_path, number_or_text, option, whole_number_or_text

_LOG = "The log"
_SYSTEM = "The servers and the policies"
_OUTPUT = "The output"

Log = Annotated[
    Path,
    typer.Argument(
        help="Log of sessions: nginx, HAProxy, Envoy, CSV, Parquet, or what --record wrote; - for standard input.",
        metavar="LOG",
        parser=file_path,
        show_default=False,
    ),
]
Format = Annotated[str | None, option(_LOG, "Format of the log (default: detected).", "NAME")]
Unit = Annotated[
    str | None, option(_LOG, "Unit of the numbers in a CSV or Parquet file: s, ms, us or ns.", "NAME")
]
Columns = Annotated[
    str | None,
    option(_LOG, "Columns of a CSV or Parquet file, such as start=begin,server=host.", "ROLE=NAME,..."),
]
Warmup = Annotated[
    float | None,
    option(
        _LOG,
        "Leave out the first seconds of the log (default: until all but 1 % of the open sessions are known).",
        "SECONDS",
        parser=number_or_text,
    ),
]
Until = Annotated[
    float | None,
    option(
        _LOG,
        "End the replay this many seconds after the log's beginning (default: where too many are missing).",
        "SECONDS",
        parser=number_or_text,
    ),
]
Servers = Annotated[
    int | None,
    option(_SYSTEM, "Number of servers (default: those that the log names).", "N", parser=whole_number_or_text),
]
Policies = Annotated[
    str | None,
    option(
        _SYSTEM,
        "Policies to replay (default: round-robin,random,power-of-d,jsq,threshold); module:Class for your own, "
        "observed for what really happened.",
        "NAME,NAME,...",
    ),
]
Alpha = Annotated[
    str | None, option(_SYSTEM, "Learn the threshold with this alpha, between 0 and 1 (default: tuned).", "X")
]
Threshold = Annotated[
    int | None,
    option(
        _SYSTEM, "Initial threshold; stays fixed without --alpha (default: 0).", "N", parser=whole_number_or_text
    ),
]
SampleSize = Annotated[
    int | None, option(_SYSTEM, "Servers sampled by power-of-d (default: 2).", "N", parser=whole_number_or_text)
]
ReportInterval = Annotated[
    float | None,
    option(
        _SYSTEM,
        "Seconds between two reports of a server, for stale-reports (default: 5).",
        "SECONDS",
        parser=number_or_text,
    ),
]
Capacity = Annotated[
    int | None,
    option(
        _SYSTEM,
        "Most sessions a server can hold; one more is lost (default: no limit).",
        "N",
        parser=whole_number_or_text,
    ),
]
Delay = Annotated[
    str | None,
    option(
        _SYSTEM,
        "Seconds that sessions and messages are on the way; exponential:X for a random time with mean X "
        "(default: 0).",
        "SECONDS",
    ),
]
Limit = Annotated[
    int | None,
    option(
        _SYSTEM,
        "Find the number of servers with at most this many sessions on each, for 99.9 % of the time.",
        "N",
        parser=whole_number_or_text,
    ),
]
Html = Annotated[
    Path | None, option(_OUTPUT, "Write a report to this HTML file, complete in itself.", "FILE", parser=file_path)
]
