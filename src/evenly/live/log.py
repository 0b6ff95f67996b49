"""The log: one JSON object a line, one for each change of state, and never the cause of a fault of its own."""

from __future__ import annotations

import io
import json
import select
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TextIO

from evenly.live.addresses import Address

LINES_A_SECOND = 100


class Log:
    """Writes events to a stream, standard error as a rule; None, as Python has it when that is closed, is nowhere.

    What goes beyond `LINES_A_SECOND` is left out, and counted: a pool that flaps must not fill the disk.
    """

    def __init__(self, stream: TextIO | None, *, clock: Callable[[], float] = time.time) -> None:
        self._stream = stream
        self._clock = clock
        self._second = -1
        self._written = 0
        self._left_out = 0

    def event(self, name: str, /, **facts: object) -> None:
        """Write down that something happened."""
        now = self._begin()
        if self._written < LINES_A_SECOND:
            self._write(now, name, facts)
        else:
            self._left_out += 1

    def catch_up(self) -> None:
        """Say how many lines were left out; for when a flood is over and nothing else happens."""
        self._begin()

    def _begin(self) -> float:
        """Begin a new second if it is time for it; return the time."""
        now = self._clock()
        if int(now) != self._second:
            self._second, self._written = int(now), 0
            left_out, self._left_out = self._left_out, 0
            if left_out:
                self._write(now, "lines left out", {"lines": left_out})
        return now

    def _write(self, now: float, name: str, facts: dict[str, object]) -> None:
        self._written += 1
        if self._stream is None:
            return
        try:
            if _has_room(self._stream):
                self._stream.write(_line(now, name, facts))
                self._stream.flush()
            else:
                self._left_out += 1
        except (OSError, ValueError):  # nobody reads, or the stream is closed: there is nobody to tell
            pass


def _has_room(stream: TextIO) -> bool:
    """Whether a line can be written at once; a pipe that nobody empties must not hold us up."""
    try:
        number = stream.fileno()
    except io.UnsupportedOperation:  # no file at all
        return True
    asked = select.poll()
    asked.register(number, select.POLLOUT)
    return bool(asked.poll(0))


def _line(now: float, name: str, facts: dict[str, object]) -> str:
    moment = datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
    line = {"time": moment, "event": name, **{key: _known(value) for key, value in facts.items()}}
    try:
        return json.dumps(line, default=str, allow_nan=False) + "\n"
    except (TypeError, ValueError):  # a key that is no word, a number that JSON lacks
        return json.dumps({key: str(value) for key, value in line.items()}) + "\n"


def _known(value: object) -> object:
    """An address is a tuple, which JSON would take for a list."""
    return str(value) if isinstance(value, Address) else value
