"""`--record`: one line per session in a file, written by a thread of its own so that no pick waits for the disk.

What it costs is bounded: `MAX_PENDING` sessions in memory, `MAX_FILES` files of `MAX_BYTES` on disk. If the disk
is full or slow, sessions are left out of the file and counted, and the balancer goes on.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from evenly.errors import InputError
from evenly.files import check_writable, path_text
from evenly.live.log import Log
from evenly.logs.record import record_header, record_line

MAX_PENDING = 100_000  # sessions that wait for the disk
MAX_BYTES = 64_000_000  # of one file, about a million sessions
MAX_FILES = 6  # FILE, and FILE.1 to FILE.5, the oldest
_PERIOD_S = 0.5  # between two writes
_CLOSE_S = 5.0  # for the last write: a disk that hangs must not keep the process
_DIGITS = 6  # of a second
_OURS = record_header().partition("\n")[0].encode()  # a recorded simulation has another clock
_LINES = 256  # of one write; making them takes less than a millisecond


class Recorder:
    """Writes the sessions that have ended to a file. Its methods are for the thread of the event loop."""

    def __init__(
        self, path: Path, log: Log, *, max_bytes: int = MAX_BYTES, clock: Callable[[], float] = time.time
    ) -> None:
        check_record(path)
        self._file = RotatingFile(path, max_bytes)
        self._log = log
        self._clock = clock
        self._pending: deque[tuple[float, float, object, bool]] = deque()  # safe to use from two threads
        self._stopping = False
        self._stop = threading.Event()
        self._overflowed = 0  # each of the counts has one thread that changes it
        self._failed = 0
        self._reported = 0
        self._reason = ""
        self._thread = threading.Thread(target=self._run, name="evenly recorder", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> int:
        """The sessions so far that are in no file."""
        return self._overflowed + self._failed

    def ended(self, server: object, duration: float, *, ago: float = 0.0) -> None:
        """Note a session that ended `ago` seconds ago, after `duration` seconds. `server` is named by its text."""
        if len(self._pending) < MAX_PENDING:
            self._pending.append((self._clock() - ago, duration, server, self._stopping))
        else:
            self.left_out(1, "the disk is too slow")

    def left_out(self, sessions: int, reason: str = "an agent had too many to report") -> None:
        """Note that some sessions will be in no file."""
        if sessions:
            self._overflowed += sessions
            self._reason = reason

    def stopping(self) -> None:
        """Take the sessions that end from now on for open ones: only their recording ends."""
        self._stopping = True

    def report(self) -> None:
        """Log how many sessions were not written since the last call."""
        lost = self.lost
        if lost > self._reported:
            self._log.event("sessions not recorded", sessions=lost - self._reported, reason=self._reason)
            self._reported = lost

    def close(self) -> None:
        """Write what is left, and close the file."""
        self._stop.set()
        self._thread.join(_CLOSE_S)
        self.report()

    def _run(self) -> None:
        while not self._stop.wait(_PERIOD_S):
            self._write()
        self._write()
        self._file.close()

    def _write(self) -> None:
        """Write what is there, a few lines at a time: the event loop goes on during a write, not before it."""
        left = len(self._pending)
        while left > 0:
            batch = [self._pending.popleft() for _ in range(min(left, _LINES))]
            left -= len(batch)
            try:
                self._file.append("".join(map(_line, batch)).encode())
            except OSError as error:
                self._reason = error.strerror or str(error)
                self._failed += len(batch)


def _line(session: tuple[float, float, object, bool]) -> str:
    end, duration, server, still_open = session
    start = round(end - duration, _DIGITS)
    return record_line(start, round(duration, _DIGITS), str(server), still_open=still_open)


@contextmanager
def recording(path: Path | None, log: Log) -> Iterator[Recorder | None]:
    """Record while the block runs, if there is a file to record in."""
    recorder = None if path is None else Recorder(path, log)
    try:
        yield recorder
    finally:
        if recorder is not None:
            recorder.close()


class RotatingFile:
    """A file that only grows, up to a size; then it is renamed and a new one begins. The oldest are deleted."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._number: int | None = None  # the file's descriptor

    def append(self, data: bytes) -> None:
        """Write the data after what is there: all of it or, with an OSError, nothing."""
        number = self._opened()
        size = os.fstat(number).st_size
        if size == 0:
            data = record_header().encode() + data
        elif size + len(data) > self._max_bytes:
            self._rotate()
            self.append(data)
            return
        try:
            written = 0
            while written < len(data):
                written += os.write(number, data[written:])
        except OSError:
            with suppress(OSError):
                os.ftruncate(number, size)  # half a line would spoil the next one
            raise

    def close(self) -> None:
        """Close the file."""
        if self._number is not None:
            os.close(self._number)
            self._number = None

    def _opened(self) -> int:
        """Return the descriptor of the file at the path, which others may have moved away."""
        if self._number is not None:
            ours = os.fstat(self._number)
            with suppress(FileNotFoundError):
                there = self._path.stat()
                if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino):
                    return self._number
            self.close()
        self._number = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        return self._number

    def _rotate(self) -> None:
        self.close()
        for older in range(MAX_FILES - 1, 0, -1):
            name = self._path if older == 1 else _older(self._path, older - 1)
            with suppress(FileNotFoundError):
                name.replace(_older(self._path, older))


def check_record(path: Path) -> None:
    """Reject a file that cannot be written, or that holds something else than our sessions."""
    check_writable(path)
    try:
        with path.open("rb") as file:
            begin = file.read(len(_OURS))
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(
            f"Cannot record in {path_text(path)}: {(error.strerror or str(error)).lower()}."
        ) from None
    if begin and begin != _OURS:
        raise InputError(
            f"Cannot record in {path_text(path)}: it exists and is no record of sessions. Name another file."
        )


def _older(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")
