"""Envoy's access log in its default text format, and in Istio's, which adds fields to it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from evenly.logs.batch import Batch, Floats
from evenly.logs.parser import PatternParser, Row
from evenly.logs.values import iso_times, numbers

_MS = 1e3
NONE = "-"


class EnvoyText(PatternParser):
    """`[START_TIME] "REQUEST" CODE FLAGS RECEIVED SENT DURATION SERVICE_TIME "..." "..." "ID" "..." "UPSTREAM"`.

    Quotes in a header are not escaped, so what a client sends may look like fields. The start and the duration
    come before its headers, and the upstream host after them: the pattern is anchored at both ends.
    """

    format: ClassVar[str] = "envoy"
    title: ClassVar[str] = "Envoy's default access log"
    names_unserved = True
    repeats = True
    pattern: ClassVar[re.Pattern[str]] = re.compile(
        r'^\[([^\]]+)\] "[^"]*" \S+ \S+ (?:\S+ \S+ "[^"]*" )?(?:\d+|-) (?:\d+|-) (\d+|-) \S+ '
        r'"[^"]*" ".*" "([^"]*)" "[^"]*" "([^"]*)"(?: [^"]*)?$'
    )

    def convert(self, groups: Sequence[Row], where: NDArray[np.intp], bad: list[tuple[int, str]]) -> Batch:
        """Return the sessions."""
        times, lasted, ids, hosts = groups
        starts, zoned = iso_times(times)
        self.utc_offset_known = self.utc_offset_known and zoned
        durations, still_open = envoy_durations(lasted)
        return Batch(
            where=where,
            starts=starts,
            durations=durations,
            servers=["" if host == NONE else host for host in hosts],
            keys=stream_keys(times, ids),
            still_open=still_open,
            bad=bad,
        )


def envoy_durations(texts: Sequence[str]) -> tuple[Floats, NDArray[np.bool_]]:
    """Return durations in seconds, and which lines have none: they were written before the session ended."""
    if NONE not in texts:
        return numbers(texts) / _MS, np.zeros(len(texts), np.bool_)
    still_open = np.fromiter((text == NONE for text in texts), np.bool_, len(texts))
    return numbers(["0" if text == NONE else text for text in texts]) / _MS, still_open


def stream_keys(times: Sequence[str], ids: Sequence[str]) -> NDArray[np.int64]:
    """Return a key for each stream: its start and its id. Without an id, nothing tells repeated lines apart."""
    keys = (0 if name in ("", NONE) else hash((time, name)) for time, name in zip(times, ids, strict=True))
    return np.fromiter(keys, np.int64, len(times))
