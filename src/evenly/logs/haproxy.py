"""HAProxy's `option httplog`, `option httpslog` and `option tcplog`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from evenly.logs.batch import Batch
from evenly.logs.parser import PatternParser, Row
from evenly.logs.values import haproxy_times, numbers

_MS = 1e3
_HEAD = r"\[(\d\d/[A-Z][a-z][a-z]/\d{4}:\d\d:\d\d:\d\d(?:\.\d+)?)\] \S+ ([^/\s]+/\S+) (?:-?\d+/){2,4}"
_ANY_END = re.compile(_HEAD + r"(\+?-?\d+) ")


class HAProxy(PatternParser):
    """`... [DATE] FRONTEND BACKEND/SERVER TIMERS ...`, the last timer being the total in milliseconds.

    Whatever syslog puts before is ignored. What a client controls comes after the timers.
    """

    format: ClassVar[str] = "haproxy"
    title: ClassVar[str] = "HAProxy's httplog or tcplog"
    names_unserved = True
    utc_offset_known = False
    pattern: ClassVar[re.Pattern[str]] = re.compile(_HEAD + r"(\d+) ")
    sign: ClassVar[re.Pattern[str] | None] = _ANY_END

    def convert(self, groups: Sequence[Row], where: NDArray[np.intp], bad: list[tuple[int, str]]) -> Batch:
        """Return the sessions."""
        dates, servers, lasted = groups
        return Batch(
            where=where,
            starts=haproxy_times(dates),
            durations=numbers(lasted) / _MS,
            servers=["" if "/<" in server else server for server in servers],  # <NOSRV>, <STATS>
            bad=bad,
        )

    def why(self, text: str) -> str:
        """Return why a line has no session."""
        timers = _ANY_END.search(text)
        if timers is None:
            return super().why(text)
        if timers[3].startswith("+"):
            return "it was written before the session ended (option logasap), so its duration is not known"
        return f"its total time is {timers[3]}, which means that there is none"
