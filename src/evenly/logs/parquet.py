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
from evenly.logs.record import OPEN
from evenly.logs.session_log import SessionLog
from evenly.logs.source import STDIN, log_name
from evenly.logs.table import Column, Layout
from evenly.logs.values import within_reach

if TYPE_CHECKING:
    import polars

_NS = 1e9


class _Parquet(CsvParser):
    """What is known about the format; its columns are read whole."""

    format: ClassVar[str] = "parquet"
    title: ClassVar[str] = "a Parquet file with the columns start and duration or end"

    def batch(self, frame: polars.DataFrame, layout: Layout) -> Batch:
        """Return the sessions of all rows."""
        start, duration = sessions_of(
            layout, {column.name: self._series(frame[column.name], column) for column in layout.times}
        )
        servers = state = None
        if layout.server is not None:
            names = frame[layout.server.name].to_list()
            servers = ["" if name is None else str(name) for name in names]
        if layout.state is not None:
            state = np.array([each == OPEN for each in frame[layout.state.name].to_list()], np.bool_)
        return Batch(
            where=np.arange(len(frame)), starts=start, durations=duration, servers=servers, still_open=state
        )

    def _series(self, values: polars.Series, column: Column) -> Floats:
        """Return the seconds of a column of times, of durations, of numbers or of text."""
        import polars  # noqa: PLC0415

        kind = values.dtype
        if isinstance(kind, polars.Datetime | polars.Duration):
            if isinstance(kind, polars.Datetime):
                self.utc_offset_known = self.utc_offset_known and kind.time_zone is not None
            self.decide(column, np.empty(0), len(values))
            return _floats(values.dt.cast_time_unit("ns").to_physical()) / _NS
        if kind == polars.String:
            return self.seconds(column, values.fill_null("").to_list())
        if not kind.is_numeric():
            raise InputError(f"{self._file}: column {column.name} must hold times or numbers, not {kind}.")
        found = _floats(values)
        self.decide(column, found, 0)
        return found / column.per_second


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
    parser = _Parquet(name, unit=unit, columns=columns)
    try:
        table = polars.scan_parquet(path, glob=False)
        layout = parser.read_names(table.collect_schema().names())
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
    collector.add(parser.batch(frame, layout), lambda at: _row_text(frame, at), 1)
    if not collector.sessions:
        bad = collector.bad_lines[0]
        raise InputError(f"None of the {rows:,} rows of {name} is a session. Row 1, {bad.text}: {bad.reason}.")
    return assemble(collector, parser, [])


def _floats(values: polars.Series) -> Floats:
    import polars  # noqa: PLC0415

    return within_reach(values.cast(polars.Float64).fill_null(float("nan")).to_numpy())


def _row_text(frame: polars.DataFrame, at: int) -> str:
    return ", ".join(f"{name}={value}" for name, value in frame.row(at, named=True).items())
