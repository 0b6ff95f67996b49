"""What a reader of lines is."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from evenly.logs.batch import Batch, empty_batch, places

Row = tuple[str, ...]


class Parser(ABC):
    """Finds the sessions in lines of one format. It may keep what the first lines tell about the later ones."""

    format: ClassVar[str]
    title: ClassVar[str]  # as in "no line of FILE is a line of TITLE"
    hint: ClassVar[str] = ""  # what to do if no line is
    written_at_end: bool | None = True  # None: the order of the lines tells
    repeats: bool = False  # several lines can be about one session
    names_unserved: bool = False  # a line can say that no server was reached
    clock: bool = True  # False: starts are no wall-clock times, however large
    utc_offset_known: bool = True
    whole_seconds: bool = False  # times of the lines have no fractions
    server_field: ClassVar[str] = ""  # what to log for the servers, if the format can do without
    open_at_start: int = 0  # the first sessions of the log, which were open at its time 0

    @abstractmethod
    def parse(self, texts: list[str]) -> Batch:
        """Return the sessions in these lines, the next ones of the log. Empty lines are ignored."""


class PatternParser(Parser):
    """A format whose lines match a regular expression, from which `convert` makes sessions."""

    pattern: ClassVar[re.Pattern[str]]
    sign: ClassVar[re.Pattern[str] | None] = (
        None  # tells the format from others, if lines without a session do too
    )

    def parse(self, texts: list[str]) -> Batch:
        """Return the sessions in the lines that match."""
        search = self.pattern.search
        found = [None if (match := search(text)) is None else match.groups("") for text in texts]
        rows = [row for row in found if row is not None]
        if len(rows) == len(texts):
            return self.convert(list(zip(*rows, strict=True)), np.arange(len(rows)), [])
        bad = [(at, self.why(texts[at])) for at, row in enumerate(found) if row is None and texts[at].strip()]
        if not rows:
            return empty_batch(bad)
        where = places(at for at, row in enumerate(found) if row is not None)
        return self.convert(list(zip(*rows, strict=True)), where, bad)

    @abstractmethod
    def convert(self, groups: Sequence[Row], where: NDArray[np.intp], bad: list[tuple[int, str]]) -> Batch:
        """Return the sessions whose texts are `groups`, one sequence per group of the pattern."""

    def why(self, text: str) -> str:
        """Return why a line does not match."""
        return f"it is not a line of {self.title}"
