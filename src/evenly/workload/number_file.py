"""Numbers from a file: one per line, or a column of a CSV file."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path

from evenly.errors import InputError
from evenly.files import path_text, read_text
from evenly.inputs import plain_number, shown

MAX_NUMBERS = 10**6
_MAX_BYTES = 64_000_000


def read_numbers(path: Path, column: str = "") -> tuple[float, ...]:
    """Return the numbers of a file, zero or positive and finite, or raise InputError with the line at fault.

    Without a column, each line is a number; empty lines and lines that begin with # are skipped. With a column,
    the file is a CSV file whose first line has the names of the columns.
    """
    text = read_text(path, _MAX_BYTES).removeprefix("\ufeff")  # a byte-order mark, as spreadsheets write it
    found: list[float] = []
    for line, written in _column(path, text, column) if column else _lines(text):
        number = plain_number(written)
        if not 0 <= number < math.inf:
            raise InputError(
                f"{path_text(path)}, line {line}: a time must be zero or a positive number, not {shown(written)}."
            )
        found.append(number)
        if len(found) > MAX_NUMBERS:
            raise InputError(f"{path_text(path)} has more than {MAX_NUMBERS:,} numbers.")
    if not found:
        raise InputError(f"{path_text(path)} has no numbers.")
    return tuple(found)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for line, written in enumerate(text.splitlines(), 1):
        if written.strip() and not written.strip().startswith("#"):
            yield line, written.strip()


def _column(path: Path, text: str, column: str) -> Iterator[tuple[int, str]]:
    reader = csv.reader(text.splitlines())
    try:
        names = [name.strip() for name in next(reader, [])]
        if column not in names:
            raise InputError(
                f"{path_text(path)} has no column {shown(column)}; its columns are {shown(', '.join(names))}."
            )
        place = names.index(column)
        for row in reader:
            if row:
                yield reader.line_num, row[place].strip() if place < len(row) else ""
    except csv.Error as error:
        raise InputError(f"{path_text(path)} is not a CSV file: {error}.") from None
