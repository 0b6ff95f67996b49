"""The sessions found in some lines of a log, before they are checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(kw_only=True, slots=True)
class Batch:
    """Sessions of a list of lines, one array element each: `where` is the index of its line.

    A start or a duration that could not be read is NaN; `bad` has the lines without a session, and why.
    """

    where: NDArray[np.intp]
    starts: Floats  # seconds, since 1970 UTC or since a beginning of the log's own
    durations: Floats  # seconds
    servers: list[str] | None = None  # "" where the line says that no server was reached
    keys: NDArray[np.int64] | None = None  # lines with the same key are about the same session; 0: no key
    still_open: NDArray[np.bool_] | None = None  # written before the session ended
    bad: list[tuple[int, str]] = field(default_factory=list)


def places(found: Iterable[int]) -> NDArray[np.intp]:
    """Return the indices as an array."""
    return np.fromiter(found, np.intp)


def empty_batch(bad: list[tuple[int, str]]) -> Batch:
    """Return a batch without sessions."""
    return Batch(where=np.empty(0, np.intp), starts=np.empty(0), durations=np.empty(0), bad=bad)
