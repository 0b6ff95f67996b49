"""What every reader returns: the sessions of a log, and what was wrong with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class BadLine:
    """A line that could not be used: its number in its file, its text (shortened) and the reason.

    The reason names the file if the log consists of several.
    """

    number: int
    text: str
    reason: str


@dataclass(frozen=True, kw_only=True, eq=False)
class SessionLog:
    """Sessions of a log in order of their starts."""

    starts: NDArray[np.float64]  # seconds since `origin`, ascending; equal starts keep the order of the log
    durations: NDArray[np.float64]  # seconds, zero or positive, finite
    origin: float  # seconds since 1970 UTC of time 0, the earliest start; 0.0 if the log has no wall clock
    servers: NDArray[np.int32] | None  # index into `server_names`, -1 where a line names none; None if all do
    server_names: tuple[str, ...]
    format: str  # a name of `evenly.logs.FORMATS`
    lines: int  # records read, good or bad
    skipped: int  # bad lines
    bad_lines: tuple[BadLine, ...]  # the first three
    notes: tuple[str, ...]  # sentences for the user
    written_at_end: bool  # each line is written when its session ends, so sessions open at the cut are missing
    has_clock: bool  # starts are wall-clock times
    utc_offset_known: bool  # False where the log's times name no time zone; they are then read as UTC
    open_at_start: int = 0  # the first sessions, if the log marks them: open at time 0, where durations count from
    still_open: int = 0  # sessions that the log itself marks as open when it stopped; durations run up to then

    def __len__(self) -> int:
        return len(self.starts)

    def __repr__(self) -> str:
        servers = f", {len(self.server_names)} servers" if self.servers is not None else ""
        return f"SessionLog({self.format}: {len(self):,} sessions{servers}, {self.skipped:,} bad lines)"
