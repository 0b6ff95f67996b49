"""The log: one JSON object per line, one line per change of state. Writing it never fails and never blocks."""

from __future__ import annotations

import io
import json
import select
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple, TextIO

from evenly.live.addresses import Address

MAX_LINES_PER_SECOND = 100
KEPT_LINES = 500  # for the dashboard
# The level of a line follows from its name, in all processes alike, unless `level` is among its facts. What is not
# listed is "info".
_ERRORS = ("fault", "envoy died", "envoy killed", "envoy cannot start", "picker died", "picker cannot start")
_WARNINGS = (
    *("pool failing", "pool silent", "pool not added", "pool rejected", "pool speaks another protocol"),
    *("weights not changed", "no advice on alpha", "discovery failing", "servers refused"),
    *("envoy lost", "envoy silent", "envoy not believed", "no more envoys", "endpoints refused"),
    *("clients refused", "sessions not recorded", "sessions of the gateway before not known"),
    *("store lost", "picker forgotten", "picker ignored", "not announced"),
    *("settings not used", "certificate not used", "lines left out"),
    *("state not used", "state not written", "changes will be forgotten"),
    *("gateway before does not drain", "take-over given up", "no take-over possible"),
    *("agent rejected", "dispatcher lost", "server down"),
)
LEVELS = dict.fromkeys(_ERRORS, "error") | dict.fromkeys(_WARNINGS, "warning")


class Line(NamedTuple):
    """A line of the log. Its `number` counts from 1; `time` is in seconds since the epoch."""

    number: int
    time: float
    name: str
    facts: Mapping[str, object]


class Log:
    """Writes events to a stream; None writes nowhere, since `sys.stderr` is None where standard error is closed.

    Lines beyond `MAX_LINES_PER_SECOND` are left out and counted: a pool that flaps must not fill the disk. The
    last `KEPT_LINES` lines are in `recent`, whether the stream took them or not. `copy` gets each of them as well.
    """

    def __init__(
        self,
        stream: TextIO | None,
        *,
        clock: Callable[[], float] = time.time,
        copy: Callable[[Line], None] = lambda _: None,
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._copy = copy
        self._second = -1
        self._written = 0
        self._left_out = 0
        self.recent: deque[Line] = deque(maxlen=KEPT_LINES)

    def event(self, name: str, /, **facts: object) -> None:
        """Write an event with its facts, unless the limit is reached or the reader is slow."""
        self.offer(name, **facts)

    def offer(self, name: str, /, **facts: object) -> bool:
        """Write an event with its facts. Return False if its line was left out, so that it can be repeated."""
        now = self._begin()
        if self._written < MAX_LINES_PER_SECOND:
            return self._write(now, name, facts)
        self._left_out += 1
        return False

    def catch_up(self) -> None:
        """Write how many lines were left out, if a flood is over and no other event followed it."""
        self._begin()

    def adopt(self, line: Line) -> None:
        """Keep a line that another process has written: it is among the `recent`, and not written again."""
        self._keep(line.time, line.name, line.facts)

    def moment(self, seconds_ago: float) -> str:
        """Return a moment of the past as the lines of the log write their time."""
        return _moment(self._clock() - seconds_ago)

    def _begin(self) -> float:
        """Begin a new second if its time has come. Return the time."""
        now = self._clock()
        if int(now) != self._second:
            self._second, self._written = int(now), 0
            left_out, self._left_out = self._left_out, 0
            if left_out:
                self._write(now, "lines left out", {"lines": left_out})
        return now

    def _write(self, now: float, name: str, facts: dict[str, object]) -> bool:
        self._written += 1
        self._copy(self._keep(now, name, facts))
        if self._stream is None:
            return True
        try:
            if not _has_room(self._stream):
                self._left_out += 1
                return False
            self._stream.write(_line(now, name, facts))
            self._stream.flush()
        except (OSError, ValueError):  # the reader is gone or the stream closed: there is nowhere to report it
            pass
        return True

    def _keep(self, now: float, name: str, facts: Mapping[str, object]) -> Line:
        line = Line(self.recent[-1].number + 1 if self.recent else 1, now, name, facts)
        self.recent.append(line)
        return line


def _has_room(stream: TextIO) -> bool:
    """Return whether a line can be written at once: a pipe that is not read must not block us."""
    try:
        number = stream.fileno()
    except io.UnsupportedOperation:  # not a file
        return True
    poller = select.poll()
    poller.register(number, select.POLLOUT)
    return bool(poller.poll(0))


def _line(now: float, name: str, facts: dict[str, object]) -> str:
    line: dict[str, object] = {"time": _moment(now), "event": name, "level": LEVELS.get(name, "info")}
    line |= {key: _plain(value) for key, value in facts.items()}
    try:
        return json.dumps(line, default=str, allow_nan=False) + "\n"
    except (TypeError, ValueError):  # a key that is not a string, a number that JSON lacks
        return json.dumps({key: str(value) for key, value in line.items()}) + "\n"


def _moment(time_: float) -> str:
    return datetime.fromtimestamp(time_, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def _plain(value: object) -> object:
    """Write an address as text; JSON would make a list of the tuple."""
    return str(value) if isinstance(value, Address) else value
