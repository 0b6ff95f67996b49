"""Read a log of any format that we know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from evenly.logs.session_log import SessionLog


def read_log(
    path: Path,
    *,
    format: str | None = None,
    unit: str | None = None,
    columns: Mapping[str, str] | None = None,
    progress: Callable[[float], None] | None = None,
) -> SessionLog:
    """Return the sessions of a log, or raise InputError if no line of it is good.

    `path` may be `-`, the standard input. Without `format`, the first lines tell. `unit` (s, ms, us or ns) is the
    unit of the numbers in a CSV or Parquet file whose columns do not name one, and `columns` maps `start`,
    `duration`, `end` and `server` to the names of its columns. `progress` is called with the share read so far,
    from 0 to 1.
    """
    raise NotImplementedError
