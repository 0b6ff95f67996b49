"""Gather the sessions of many batches: check them, count what is wrong, and put them in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from evenly.errors import InputError
from evenly.logs.batch import Batch, Floats
from evenly.logs.session_log import BadLine

MAX_SESSIONS = 10_000_000  # about 50 bytes each while they are sorted
MAX_LINES = 100_000_000
MAX_SERVERS = 100_000
MAX_DURATION = 1e9  # seconds; 30 years
UNIX_FROM, UNIX_TO = 1e9, 1e11  # seconds since 1970: from 2001 on, numbers are taken for wall-clock times
_SHOWN_LINES = 3
_SHOWN = 80  # characters


@dataclass(kw_only=True, slots=True)
class Gathered:
    """The sessions of a log in the order of its lines; the arrays are those of `Batch`."""

    starts: Floats
    durations: Floats
    servers: NDArray[np.int32]  # -1: none
    keys: NDArray[np.int64]
    still_open: NDArray[np.bool_]

    def only(self, kept: NDArray[np.bool_] | NDArray[np.intp]) -> Gathered:
        """Return some of the sessions."""
        return Gathered(
            starts=self.starts[kept],
            durations=self.durations[kept],
            servers=self.servers[kept],
            keys=self.keys[kept],
            still_open=self.still_open[kept],
        )


class Collector:
    """The sessions gathered so far. `lines` counts records, `skipped` the bad ones among them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._read = 0
        self.lines = 0
        self.skipped = 0
        self.sessions = 0
        self.has_clock: bool | None = None  # starts are wall-clock times, as most of the first good ones
        self.bad_lines: list[BadLine] = []
        self.server_names: dict[str, int] = {}
        self._starts: list[Floats] = []
        self._durations: list[Floats] = []
        self._servers: list[NDArray[np.int32]] = []
        self._keys: list[NDArray[np.int64]] = []
        self._open: list[NDArray[np.bool_]] = []

    def add(
        self, batch: Batch, text_of: Callable[[int], str], first: int, *, file: str = "", clock: bool = True
    ) -> None:
        """Take in the sessions of some lines, of which the first has the number `first`.

        Without `clock`, starts are no wall-clock times, however large.
        """
        self.lines += len(batch.where) + len(batch.bad)
        good, reasons = self._checked(batch, clock)
        bad = sorted([*batch.bad, *((int(batch.where[at]), reason) for at, reason in reasons)])
        self.skipped += len(bad)
        for at, reason in bad[: _SHOWN_LINES - len(self.bad_lines)]:
            self._show(first + at, text_of(at), reason, file)
        count = int(good.sum())
        self.sessions += count
        if self.sessions > MAX_SESSIONS:
            raise InputError(f"{self.name} has more than {MAX_SESSIONS:,} sessions: cut it into parts.")
        self._starts.append(batch.starts[good])
        self._durations.append(batch.durations[good])
        servers = None if batch.servers is None else compress(batch.servers, good.tolist())
        self._servers.append(np.full(count, -1, np.int32) if servers is None else self._codes(servers))
        self._keys.append(np.zeros(count, np.int64) if batch.keys is None else batch.keys[good])
        self._open.append(np.zeros(count, np.bool_) if batch.still_open is None else batch.still_open[good])

    def gathered(self) -> Gathered:
        """Return all sessions in the order of the log."""
        return Gathered(
            starts=np.concatenate(self._starts),
            durations=np.concatenate(self._durations),
            servers=np.concatenate(self._servers),
            keys=np.concatenate(self._keys),
            still_open=np.concatenate(self._open),
        )

    def reject(self, number: int, text: str, reason: str, file: str = "") -> None:
        """Count a line as bad."""
        self.lines += 1
        self.skipped += 1
        if len(self.bad_lines) < _SHOWN_LINES:
            self._show(number, text, reason, file)

    def count(self, lines: int) -> None:
        """Count lines as they are read, empty ones too: an endless stream of them must end."""
        self._read += lines
        if self._read > MAX_LINES:
            raise InputError(f"{self.name} has more than {MAX_LINES:,} lines: cut it into parts.")

    def _show(self, number: int, text: str, reason: str, file: str) -> None:
        reason = f"{reason} (in {file})" if file else reason
        self.bad_lines.append(BadLine(number=number, text=shortened(text), reason=reason))

    def _checked(self, batch: Batch, clock: bool) -> tuple[NDArray[np.bool_], list[tuple[int, str]]]:
        """Return which sessions are good, and what is wrong with the others."""
        starts, durations = batch.starts, batch.durations
        if self.has_clock is None and clock:
            usable = (np.abs(starts) < UNIX_TO) & (durations >= 0) & (durations <= MAX_DURATION)
            late = starts[usable] >= UNIX_FROM
            self.has_clock = bool(late.mean() >= 0.5) if len(late) else None
        low, high, between = self._range()
        faults = (
            (np.isnan(starts), "its start is not a time"),
            (~((starts >= low) & (starts < high)), f"its start is not between {between}"),
            (np.isnan(durations), "its duration is not a number"),
            (durations < 0, "it ends before it starts"),
            (durations > MAX_DURATION, f"it lasts more than {MAX_DURATION:g} seconds"),
        )
        good = ~np.logical_or.reduce([wrong for wrong, _ in faults])
        reasons = []
        for at in np.flatnonzero(~good):
            reasons.append((int(at), next(reason for wrong, reason in faults if wrong[at])))
        return good, reasons

    def _range(self) -> tuple[float, float, str]:
        """Return between which starts must be, in numbers and in words."""
        if self.has_clock:
            return UNIX_FROM, UNIX_TO, "2001 and 5138, as those of other lines are"
        if self.has_clock is None:
            return -UNIX_FROM, UNIX_TO, "-1e9 and 1e11 seconds"
        return -UNIX_FROM, UNIX_FROM, "-1e9 and 1e9 seconds"

    def _codes(self, servers: Iterable[str]) -> NDArray[np.int32]:
        names = self.server_names
        codes = [names.setdefault(name, len(names)) if name else -1 for name in servers]
        if len(names) > MAX_SERVERS:
            raise InputError(
                f"{self.name} names more than {MAX_SERVERS:,} servers: is that its column of servers?"
            )
        return np.array(codes, np.int32)


def shortened(text: str) -> str:
    """Return a line as a message quotes it: cut if it is long, escaped if it would garble the terminal."""
    text = text.strip()
    cut = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
    return cut if cut.isprintable() else repr(cut)[1:-1]
