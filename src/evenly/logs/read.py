"""Read a log of any format that we know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path

from evenly.errors import InputError
from evenly.files import path_text
from evenly.inputs import shown
from evenly.logs.assemble import assemble
from evenly.logs.collect import Collector
from evenly.logs.csv_lines import Recorded
from evenly.logs.detect import PARQUET, check_format, detect, make_parser
from evenly.logs.parser import Parser
from evenly.logs.record import LIVE
from evenly.logs.session_log import SessionLog
from evenly.logs.source import MAX_LINE, STDIN, Lines, is_parquet, log_name, read_lines

_MAX_WITHOUT = 2_000_000  # lines without a session, after which the format that we took it for is wrong

Progress = Callable[[float], None]


def read_log(
    path: Path,
    *,
    format: str | None = None,
    unit: str | None = None,
    columns: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> SessionLog:
    """Return the sessions of a log, or raise InputError if no line of it is good.

    `path` may be `-`, the standard input. Without `format`, the first lines tell. `unit` (s, ms, us or ns) is the
    unit of the numbers in a CSV or Parquet file whose columns do not name one, and `columns` maps `start`,
    `duration`, `end` and `server` to the names of its columns. `progress` is called with the share read so far,
    from 0 to 1.
    """
    path, name = Path(path), log_name(Path(path))
    if format is not None:
        check_format(format)
    if format == PARQUET or (format is None and is_parquet(path)):
        from evenly.logs.parquet import read_parquet  # noqa: PLC0415  (polars takes time to load)

        return read_parquet(path, unit=unit, columns=columns)
    lines = read_lines(path, progress)
    collector = Collector(name)
    begin = _first_lines(collector, lines)
    known = format or detect(begin.texts, name, columns=columns)
    parser = make_parser(known, name, unit=unit, columns=columns)
    notes: list[str] = []
    live = known == Recorded.format and begin.texts[0] == LIVE
    older = _older(path, notes) if live else []
    for each in older:
        _gather(collector, make_parser(known, log_name(each)), read_lines(each), file=each.name)
    if older:
        notes.append(f"{len(older) + 1} files were read: {name} and the older ones beside it.")
    try:
        for part in chain([begin], lines):
            _gather(collector, parser, [part], file=path.name if older else "")
            if format is None and collector.lines > _MAX_WITHOUT and not collector.sessions:
                break
        if not collector.sessions:
            raise _nothing_good(collector, parser, name)
    except InputError as error:
        raise InputError(f"{error}{_other_format(begin, name, format)}") from None
    return assemble(collector, parser, notes)


def _first_lines(collector: Collector, lines: Iterator[Lines]) -> Lines:
    """Return the first lines that tell the format: neither too long nor all empty."""
    for each in lines:
        if each.too_long:
            _reject(collector, each)
            continue
        if each.texts:
            each.texts[0] = each.texts[0].removeprefix("\ufeff")
        if any(text.strip() for text in each.texts):
            return each
        collector.count(len(each.texts))
    name = collector.name
    if collector.skipped:
        raise InputError(f"Cannot tell the format of {name}: its lines are longer than {MAX_LINE:,} bytes.")
    raise InputError(f"{name} is empty: it has no lines.")


def _reject(collector: Collector, line: Lines, file: str = "") -> None:
    """Count a line that is too long."""
    collector.count(1)
    collector.reject(line.first, line.texts[0], f"it is longer than {MAX_LINE:,} bytes", file)


def _gather(collector: Collector, parser: Parser, lines: Iterable[Lines], *, file: str = "") -> None:
    for each in lines:
        if each.too_long:
            _reject(collector, each, file)
        elif each.texts:
            collector.count(len(each.texts))
            batch = parser.parse(each.texts)
            collector.add(batch, each.texts.__getitem__, each.first, file=file, clock=parser.clock)


def _older(path: Path, notes: list[str]) -> list[Path]:
    """Return the rotated files of a live recording, oldest first: NAME.3, NAME.2, NAME.1."""
    if path == STDIN:
        return []
    found = []
    for number in range(1, 1000):
        older = path.with_name(f"{path.name}.{number}")
        if not older.is_file():
            break
        if not _is_live(older):
            notes.append(f"{path_text(older)} is left out: its first line is not {LIVE!r}.")
            break
        found.append(older)
    return found[::-1]


def _is_live(path: Path) -> bool:
    first = next(read_lines(path), None)
    return first is not None and first.texts[:1] == [LIVE]


def _nothing_good(collector: Collector, parser: Parser, name: str) -> InputError:
    if not collector.bad_lines:
        return InputError(f"{name} has no sessions: it is empty but for its header.")
    bad = collector.bad_lines[0]
    return InputError(
        f"None of the {collector.lines:,} lines of {name} is a session of {parser.title}. Line {bad.number}, "
        f"{shown(bad.text)}: {bad.reason}.{parser.hint and ' '}{parser.hint}"
    )


def _other_format(begin: Lines, name: str, format: str | None) -> str:
    """Return a sentence about the format that the lines have instead of the given one; none if that is right."""
    if format is None:
        return ""
    try:
        likely = detect(begin.texts, name)
    except InputError:
        return ""
    return "" if likely == format else f" It looks like --format {likely}."
