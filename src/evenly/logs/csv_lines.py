"""CSV with a line of names: our own `--record`, published traces, and tables of the user's own.

Each line is a record: a quoted field may hold commas, but no line break.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from evenly.errors import InputError
from evenly.logs.batch import Batch, Floats, empty_batch, places
from evenly.logs.parser import Parser
from evenly.logs.record import MARK, OPEN
from evenly.logs.table import Column, Layout, check_seconds, check_units, find_layout
from evenly.logs.values import is_iso, iso_times, numbers

Rows = list[list[str]]
_NOT_CSV: list[str] = []


def split_fields(text: str) -> list[str]:
    """Return the fields of a line; none if it is not CSV."""
    if '"' not in text:
        return text.split(",")
    try:
        return next(csv.reader([text], strict=True), _NOT_CSV)
    except csv.Error:
        return _NOT_CSV


class CsvParser(Parser):
    """A table of the user's own, with the columns of `table.find_layout`."""

    format: ClassVar[str] = "csv"
    title: ClassVar[str] = "a CSV file with the columns start and duration or end"
    written_at_end: bool | None = None

    def __init__(self, file: str, *, unit: str | None = None, columns: Mapping[str, str] | None = None) -> None:
        self._file = file
        self._unit = unit
        self._columns = columns
        self._header: list[str] | None = None
        self._layout: Layout | None = None
        self._iso: dict[str, bool] = {}  # by column, as most of its first values have it

    def parse(self, texts: list[str]) -> Batch:
        """Return the sessions of the lines with as many fields as there are columns."""
        quoted = any('"' in text for text in texts)
        rows = [split_fields(text) for text in texts] if quoted else [text.split(",") for text in texts]
        begin = self._read_header(texts, rows) if self._header is None else 0
        if self._header is None:
            return empty_batch([])
        width, header = len(self._header), self._header
        if begin == 0 and all(len(row) == width for row in rows) and header not in rows:
            return self._convert(rows, np.arange(len(rows)), [])
        found: list[int] = []
        bad: list[tuple[int, str]] = []
        for at in range(begin, len(rows)):
            if not texts[at].strip() or texts[at].startswith("#") or rows[at] == header:
                continue  # also the headers of files that were put one after the other
            if len(rows[at]) == width:
                found.append(at)
            else:
                bad.append((at, f"it has {len(rows[at])} fields, not {width}" if rows[at] else "it is not CSV"))
        if not found:
            return empty_batch(bad)
        return self._convert([rows[at] for at in found], places(found), bad)

    def _read_header(self, texts: list[str], rows: Rows) -> int:
        """Read the names of the columns; return the index of the line after them."""
        for at, text in enumerate(texts):
            if text.startswith("#"):
                self.comment(text)
            elif text.strip():
                self.read_names(rows[at])
                return at + 1
        return len(texts)

    def read_names(self, names: list[str]) -> Layout:
        """Take in the names of the columns; return where they are."""
        self._header = names
        self._layout = self.layout(names)
        return self._layout

    def comment(self, text: str) -> None:
        """Take in a comment before the header."""

    def layout(self, names: list[str]) -> Layout:
        """Return where the columns are."""
        return find_layout(names, file=self._file, unit=self._unit, columns=self._columns)

    def _convert(self, rows: Rows, where: NDArray[np.intp], bad: list[tuple[int, str]]) -> Batch:
        layout = self._layout
        assert layout is not None
        values = {
            column.name: self.seconds(column, [row[column.place] for row in rows]) for column in layout.times
        }
        start, duration = sessions_of(layout, values)
        return Batch(
            where=where,
            starts=start,
            durations=duration,
            servers=_texts(rows, layout.server),
            still_open=_marked_open(rows, layout.state),
            bad=bad,
        )

    def seconds(self, column: Column, texts: list[str]) -> Floats:
        """Return the seconds of some values of a column."""
        if column.name not in self._iso:
            self.decide(column, numbers(texts), sum(is_iso(text.strip()) for text in texts))
        if self._iso.get(column.name, False):
            seconds, zoned = iso_times([text.strip() for text in texts])
            self.utc_offset_known = self.utc_offset_known and zoned
            return seconds
        return numbers(texts) / column.per_second

    def decide(self, column: Column, values: Floats, iso: int) -> None:
        """Decide whether a column has ISO times or numbers, as most of what can be read, and check its unit.

        `iso` counts the ISO times. If nothing can be read, later values decide.
        """
        assert self._layout is not None
        known = values[~np.isnan(values)]
        if not (iso or len(known)):
            return
        self._iso[column.name] = iso >= len(known)
        if not self._iso[column.name]:
            check_seconds(column, known, self._file)
        times = self._layout.times
        if len(self._iso) == len(times):
            check_units([each for each in times if not self._iso[each.name]], self._file)


class _Preset(CsvParser):
    """A published trace, with its own names for the columns; times are seconds since its beginning."""

    names: ClassVar[Mapping[str, str]]
    clock = False

    def __init__(self, file: str) -> None:
        super().__init__(file, unit="s", columns=self.names)

    def layout(self, names: list[str]) -> Layout:
        """Return where the columns are. What else would fit is not meant."""
        found = super().layout(names)
        wanted = {role: getattr(found, role) if role in self.names else None for role in Layout.__slots__}
        return Layout(**wanted)


class AzureFunctions(_Preset):
    """Azure Functions Invocation Trace 2021: `app,func,end_timestamp,duration`, in seconds."""

    format: ClassVar[str] = "azure-functions"
    title: ClassVar[str] = "the Azure Functions trace of 2021, with the columns end_timestamp and duration"
    names: ClassVar[Mapping[str, str]] = {"end": "end_timestamp", "duration": "duration"}
    written_at_end = True


class BurstGpt(_Preset):
    """BurstGPT from release 2 on: `Timestamp,Session ID,Elapsed time,Model,...`, in seconds."""

    format: ClassVar[str] = "burstgpt"
    title: ClassVar[str] = "a BurstGPT trace, with the columns Timestamp and Elapsed time"
    names: ClassVar[Mapping[str, str]] = {"start": "Timestamp", "duration": "Elapsed time"}
    written_at_end = False


_OPEN_AT_START = re.compile(r", open=(\d{1,8})$")


class Recorded(CsvParser):
    """Our own log."""

    format: ClassVar[str] = "evenly"
    title: ClassVar[str] = "a log that evenly --record wrote"

    def __init__(self, file: str) -> None:
        super().__init__(file, unit="s")
        self._marked = False

    def comment(self, text: str) -> None:
        """Take in the first line: the version, and whether starts are wall-clock times."""
        if text.startswith("# evenly sessions ") and not (text + ",").startswith(f"{MARK},"):
            raise InputError(f"{self._file} was recorded by another version of evenly: {text[2:40]!r}.")
        if text.startswith(MARK):
            self._marked = True
            self.clock = "clock=unix" in text
            self.written_at_end = True if self.clock else None
            already = _OPEN_AT_START.search(text)
            self.open_at_start = int(already[1]) if already and not self.clock else 0

    def layout(self, names: list[str]) -> Layout:
        """Return where the columns are, if the first line was ours."""
        if not self._marked:
            raise InputError(
                f"{self._file} is not a log that evenly --record wrote: its first line is not {MARK!r}."
            )
        return super().layout(names)


def sessions_of(layout: Layout, times: Mapping[str, Floats]) -> tuple[Floats, Floats]:
    """Return starts and durations from two of start, duration and end, by the names of their columns."""
    start, duration, end = (
        None if column is None else times.get(column.name)
        for column in (layout.start, layout.duration, layout.end)
    )
    if start is not None and duration is not None:
        return start, duration
    assert end is not None, "a layout has two of the three"
    if start is not None:
        return start, end - start
    assert duration is not None, "a layout has two of the three"
    return end - duration, duration


def _texts(rows: Rows, column: Column | None) -> list[str] | None:
    return None if column is None else [row[column.place].strip() for row in rows]


def _marked_open(rows: Rows, column: Column | None) -> NDArray[np.bool_] | None:
    if column is None:
        return None
    return np.fromiter((row[column.place].strip() == OPEN for row in rows), np.bool_, len(rows))
