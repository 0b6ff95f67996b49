"""Parquet with the columns of a CSV log. Its types tell times from numbers; numbers need a unit as in CSV."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from evenly.errors import InputError
from evenly.logs.assemble import assemble
from evenly.logs.batch import Batch, Floats
from evenly.logs.collect import MAX_SESSIONS, Collector
from evenly.logs.csv_lines import CsvParser, sessions_of
from evenly.logs.session_log import SessionLog
from evenly.logs.source import STDIN, log_name
from evenly.logs.table import Column, Layout, check_seconds, check_units, find_layout
from evenly.logs.values import is_iso, iso_times

if TYPE_CHECKING:
    import polars

_NS = 1e9


class _Parquet(CsvParser):
    """What is known about the format; its columns are read whole."""

    format: ClassVar[str] = "parquet"
    title: ClassVar[str] = "a Parquet file with the columns start and duration or end"


def read_parquet(path: Path, *, unit: str | None = None, columns: Mapping[str, str] | None = None) -> SessionLog:
    """Return the sessions of a Parquet file."""
    name = log_name(path)
    if path == STDIN:
        raise InputError("Parquet cannot be read from standard input: give the file.")
    try:
        import polars  # noqa: PLC0415  (takes time to load)
    except ModuleNotFoundError as error:
        if error.name != "polars":
            raise
        raise InputError("Parquet needs polars: run pip install '.[frames]' in a checkout of evenly.") from None
    parser = _Parquet(name)
    try:
        table = polars.scan_parquet(path, glob=False)
        names = table.collect_schema().names()
        layout = find_layout(names, file=name, unit=unit, columns=columns)
        rows = int(table.select(polars.len()).collect().item())
        if rows > MAX_SESSIONS:
            raise InputError(f"{name} has more than {MAX_SESSIONS:,} sessions: cut it into parts.")
        wanted = [column.name for column in (*layout.times, layout.server, layout.state) if column is not None]
        frame = table.select(wanted).collect()
    except (polars.exceptions.PolarsError, OSError) as error:
        reason = (str(error).splitlines() or ["it is damaged"])[0].rstrip(".")
        raise InputError(f"Cannot read {name}: {reason}.") from None
    if not rows:
        raise InputError(f"{name} has no sessions: it is empty but for its header.")
    collector = Collector(name)
    batch = _batch(frame, layout, parser, name)
    collector.add(batch, lambda at: _row_text(frame, at), 1)
    if not collector.sessions:
        bad = collector.bad_lines[0]
        raise InputError(f"None of the {rows:,} rows of {name} is a session. Row 1, {bad.text}: {bad.reason}.")
    return assemble(collector, parser, [])


def _batch(frame: polars.DataFrame, layout: Layout, parser: _Parquet, name: str) -> Batch:
    times = {column.name: _seconds(frame[column.name], column, parser, name) for column in layout.times}
    check_units([column for column in layout.times if frame[column.name].dtype.is_numeric()], name)
    start, duration = sessions_of(layout, times)
    servers = None
    if layout.server is not None:
        servers = ["" if server is None else str(server) for server in frame[layout.server.name].to_list()]
    state = None if layout.state is None else frame[layout.state.name].to_list()
    return Batch(
        where=np.arange(len(frame)),
        starts=start,
        durations=duration,
        servers=servers,
        still_open=None if state is None else np.array([each == "open" for each in state], np.bool_),
    )


def _seconds(values: polars.Series, column: Column, parser: _Parquet, name: str) -> Floats:
    """Return the seconds of a column of times, of durations, of numbers or of text."""
    import polars  # noqa: PLC0415

    kind = values.dtype
    if isinstance(kind, polars.Datetime):
        parser.utc_offset_known = parser.utc_offset_known and kind.time_zone is not None
        return _floats(values.dt.cast_time_unit("ns").to_physical()) / _NS
    if isinstance(kind, polars.Duration):
        return _floats(values.dt.cast_time_unit("ns").to_physical()) / _NS
    if kind == polars.String:
        texts = values.fill_null("").to_list()
        if texts and is_iso(texts[0]):
            seconds, zoned = iso_times(texts)
            parser.utc_offset_known = parser.utc_offset_known and zoned
            return seconds
    if not (kind.is_numeric() or kind == polars.String):
        raise InputError(f"{name}: column {column.name} must hold times or numbers, not {kind}.")
    found = _floats(values.cast(polars.Float64, strict=False))
    if column.unit in ("", "s"):
        check_seconds(column, float(found[0]), name)
    return found / column.per_second


def _floats(values: polars.Series) -> Floats:
    import polars  # noqa: PLC0415

    return values.cast(polars.Float64).fill_null(float("nan")).to_numpy()


def _row_text(frame: polars.DataFrame, at: int) -> str:
    return ", ".join(f"{name}={value}" for name, value in frame.row(at, named=True).items())
