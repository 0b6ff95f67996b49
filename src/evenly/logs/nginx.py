"""nginx's access log with the fields that a duration needs, and the stock formats that lack them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from evenly.logs.batch import Batch
from evenly.logs.parser import PatternParser, Row
from evenly.logs.values import numbers

LOG_FORMAT = (
    'log_format evenly \'$remote_addr [$time_local] "$request" $status '
    'msec=$msec request_time=$request_time upstream_addr="$upstream_addr"\';'
)
COMBINED = re.compile(r'^\S+ \S+ .*? \[\d\d/[A-Z][a-z][a-z]/\d{4}:\d\d:\d\d:\d\d [-+]\d{4}\] "')
_SEVERAL = re.compile(r", | : ")  # servers tried one after the other, and internal redirects


class NginxText(PatternParser):
    """Any format that ends in `msec=$msec request_time=$request_time upstream_addr="$upstream_addr"`.

    The fields come last, where nothing that a client sends can stand in for them.
    """

    format: ClassVar[str] = "nginx"
    title: ClassVar[str] = "an nginx log with msec=, request_time= and upstream_addr= at the end"
    names_unserved = True
    pattern: ClassVar[re.Pattern[str]] = re.compile(
        r'msec=(\d+\.\d+) request_time=(\d+\.\d+)(?: upstream_addr="([^"]*)")?\s*$'
    )

    def convert(self, groups: Sequence[Row], where: NDArray[np.intp], bad: list[tuple[int, str]]) -> Batch:
        """Return the sessions. nginx writes the time of the end."""
        ends, lasted, addresses = groups
        durations = numbers(lasted)
        return Batch(
            where=where,
            starts=numbers(ends) - durations,
            durations=durations,
            servers=[last_upstream(address) for address in addresses],
            bad=bad,
        )


def last_upstream(address: str) -> str:
    """Return the server that answered: the last of those tried; none for what nginx answered itself.

    If all servers are down, nginx ends with the name of their group, which has no port.
    """
    if ", " in address or " : " in address:
        address = _SEVERAL.split(address)[-1]
    return address if ":" in address else ""  # also unix:PATH
