"""The output folder of a sweep: a manifest, Parquet shards, and a lock. Only the sweep itself writes into it.

A shard is written under another name, flushed to the disk and renamed, so that a kill at any moment leaves whole
shards only. Many small ones are merged into one as the sweep goes on. A point may be in several shards, after a
kill between a merge and the removal of what it merged, or because it ran again for other values.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from evenly.errors import InputError
from evenly.files import atomic_write, ensure_folder, path_text
from evenly.inputs import shown
from evenly.sweeps import table
from evenly.sweeps.identity import Lanes, lanes_of_keys
from evenly.sweeps.manifest import MANIFEST, check_same, describe, read_manifest
from evenly.sweeps.point import Plan, Row

if TYPE_CHECKING:
    import polars as pl

LOCK = ".lock"
FLUSH_S = 5.0  # a finished point is on the disk after at most this long
FLUSH_ROWS = 20_000
MANY_SHARDS = 48  # small ones; more are merged
LARGE_SHARD = 100_000  # rows from which on a shard is left alone
_SHARD = re.compile(r"points-(\d{6,9})\.parquet")
_READS = 20  # attempts, while a sweep merges what is being read


class Folder:
    """The folder of a running sweep, locked until it is closed."""

    def __init__(self, path: Path, plan: Plan) -> None:
        table.polars()
        self.path = ensure_folder(path)
        self._plan = plan
        self._waiting: list[Row] = []
        self._since = 0.0
        self._lock = _locked(self.path)
        try:
            self._open()
        except BaseException:
            self._lock.close()
            raise

    def _open(self) -> None:
        manifest = read_manifest(self.path)
        if manifest is None and (foreign := _foreign(self.path)):
            raise InputError(
                f"{path_text(self.path)} is not the folder of a sweep: it holds {shown(foreign)}. "
                "Give --out another folder."
            )
        if manifest is not None:
            check_same(self.path, manifest, describe(self._plan))
            if manifest["version"] != self._plan.version:
                self._set_aside(str(manifest["version"]))
        for leftover in self.path.glob(".points-*.tmp"):
            leftover.unlink(missing_ok=True)
        with atomic_write(self.path / MANIFEST) as temporary:
            temporary.write_text(json.dumps(describe(self._plan, manifest)) + "\n", encoding="utf-8")
        self._sizes = {path: table.shard_shape(path)[1] for path in shards(self.path)}
        self._next = max((_number(path) for path in self._sizes), default=0) + 1

    def _set_aside(self, version: str) -> None:
        """Move the shards of an earlier version into a folder of their own: their points run again."""
        older = ensure_folder(self.path / f"version-{version}")
        for path in shards(self.path):
            path.replace(older / path.name)

    def done(self) -> Lanes:
        """Return the identities of all points that are done: without error, and with all values asked for."""
        return _done(self._plan, self._sizes)

    def add(self, rows: Sequence[Row]) -> None:
        """Keep rows, and write them soon."""
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting += rows
        if len(self._waiting) >= FLUSH_ROWS:
            self.flush()

    def tick(self) -> None:
        """Write what has waited for long enough."""
        if self._waiting and time.monotonic() - self._since > FLUSH_S:
            self.flush()

    def flush(self) -> None:
        """Write all rows that wait. They still wait if that fails."""
        if self._waiting:
            self._write(table.make_frame(self._plan, self._waiting))
            self._waiting = []
            small = [path for path, rows in self._sizes.items() if rows < LARGE_SHARD]
            if len(small) >= MANY_SHARDS:
                self._merge(small)

    def merge(self) -> None:
        """Merge the small shards, at the end of a sweep."""
        small = [path for path, rows in self._sizes.items() if rows < LARGE_SHARD]
        if len(small) > 1:
            self._merge(small)

    def _merge(self, paths: Sequence[Path]) -> None:
        self._write(table.one_row_each(table.read_shard(path) for path in paths))
        for path in paths:
            path.unlink()
            del self._sizes[path]

    def _write(self, frame: pl.DataFrame) -> None:
        path = self.path / f"points-{self._next:06d}{table.SUFFIX}"
        try:
            table.write_shard(frame, path)
        except OSError as error:
            raise InputError(
                f"Cannot write {path_text(path)}: {(error.strerror or str(error)).lower()}. "
                "What was written before is safe: make room, and run the same command again."
            ) from error
        self._sizes[path] = len(frame)
        self._next += 1

    def close(self) -> None:
        """Release the lock. Does not write."""
        self._lock.close()


def known_points(folder: Path, plan: Plan) -> Lanes:
    """Return the identities of the points in a folder that are done, without changing anything in it."""
    manifest = read_manifest(folder) if folder.is_dir() else None
    if manifest is None:
        return _done(plan, ())
    check_same(folder, manifest, describe(plan))
    return _done(plan, shards(folder) if manifest["version"] == plan.version else ())


def _done(plan: Plan, paths: Iterable[Path]) -> Lanes:
    """Return the identities of all points without error and with all values asked for, sorted."""
    found = [np.zeros((0, 2), np.uint64)]
    for path in paths:
        frame = table.read_shard(path, [table.KEY, table.RECORDED, "error"])
        kinds = [kind for kind in frame[table.RECORDED].unique() if {*plan.values} <= {*kind.split(",")}]
        done = frame["error"].is_null() & frame[table.RECORDED].is_in(kinds)
        found.append(lanes_of_keys(frame.filter(done)[table.KEY].to_list()))
    lanes = np.concatenate(found)
    return lanes[np.argsort(lanes[:, 0])]


def shards(folder: Path) -> list[Path]:
    """Return the shards of a folder, the oldest first."""
    return sorted((path for path in folder.iterdir() if _SHARD.fullmatch(path.name)), key=_number)


def _number(path: Path) -> int:
    match = _SHARD.fullmatch(path.name)
    assert match is not None
    return int(match[1])


def read_rows(folder: Path) -> pl.DataFrame:
    """Return the rows of a folder, one per point, also while a sweep writes into it and merges shards."""
    for _ in range(_READS):
        paths = shards(folder)
        try:
            return table.one_row_each([table.read_shard(path) for path in paths])
        except InputError:
            if shards(folder) == paths:  # nothing was merged meanwhile: a file is broken
                raise
    raise InputError(f"Cannot read {path_text(folder)}: it changes too fast.")


def _foreign(folder: Path) -> str:
    """Return the name of something in the folder that no sweep has written; empty if there is nothing."""
    names = sorted(path.name for path in folder.iterdir() if path.name != LOCK)
    return names[0] if names else ""


def _locked(folder: Path) -> IO[str]:
    """Lock the folder. The system releases the lock with the process, however that ends."""
    file = (folder / LOCK).open("a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        holder = file.read(200).strip() or "another process"
        file.close()
        raise InputError(
            f"Another sweep writes into {path_text(folder)} ({holder}): wait for it, or give --out another folder."
        ) from None
    with suppress(OSError):  # on a full disk, the lock holds all the same
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
    return file
