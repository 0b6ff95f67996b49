"""nginx's access log: with our fields at the end, and the combined format with the request time added to it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from evenly.logs.batch import Batch
from evenly.logs.parser import PatternParser, Row
from evenly.logs.values import clf_times, numbers

LOG_FORMAT = (
    'log_format evenly \'$remote_addr [$time_local] "$request" $status '
    'msec=$msec request_time=$request_time upstream_addr="$upstream_addr"\';'
)
_QUOTED = r'"[^"\\]*(?:\\.[^"\\]*)*"'  # neither nginx nor Apache writes a quote of the client's as it is
_REQUEST = rf"\[(\d\d/[A-Z][a-z][a-z]/\d{{4}}:\d\d:\d\d:\d\d [-+]\d{{4}})\] {_QUOTED} \d{{3}} "
COMBINED = re.compile(_REQUEST)
_FIELD = rf'(?:[a-z_]+=)?(?:{_QUOTED}|[^\s"]+)'
_FIELDS = re.compile(rf'(?:([a-z_]+)=)?(?:({_QUOTED})|([^\s"]+))')
_TIME = re.compile(r"\d{1,9}\.\d{3}")  # nginx writes times in seconds to the millisecond
_ADDRESS = re.compile(r"(?:\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:.]+\]):\d{1,5}|unix:\S+")
_TIME_KEYS = ("rt", "request_time")
_SERVER_KEYS = ("ups", "upstream", "upstream_addr", "ua")
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


class NginxCombined(PatternParser):
    """`[$time_local] "$request" $status` and what follows, `$request_time` among it, as in ingress-nginx.

    The request time has a name (`rt=0.606`), or it is the largest of the times without one: it covers those of the
    upstream. What is in quotes, without a name that we know, is the client's.
    """

    format: ClassVar[str] = "nginx-combined"
    title: ClassVar[str] = "nginx's combined format with $request_time added"
    names_unserved = True
    whole_seconds = True
    pattern: ClassVar[re.Pattern[str]] = re.compile(rf"{_REQUEST}(?:\S+ {_QUOTED} {_QUOTED})?(.*)$")
    sign: ClassVar[re.Pattern[str] | None] = re.compile(
        rf'{_REQUEST}(?:{_FIELD} )*(?:(?:{"|".join(_TIME_KEYS)})="?)?{_TIME.pattern}(?:["\s]|$)'
    )

    def convert(self, groups: Sequence[Row], where: NDArray[np.intp], bad: list[tuple[int, str]]) -> Batch:
        """Return the sessions. nginx writes the time of the end."""
        ends, tails = groups
        found = [_time_and_server(tail) for tail in tails]
        durations = numbers([time for time, _ in found])
        return Batch(
            where=where,
            starts=clf_times(ends) - np.nan_to_num(durations),
            durations=durations,
            servers=[server for _, server in found],
            bad=bad,
        )


def _time_and_server(tail: str) -> tuple[str, str]:
    """Return the request time and the server in what follows the status; empty where there is none."""
    named, address = "", ""
    times: list[str] = []
    for key, quoted, bare in _FIELDS.findall(tail):
        if key in _TIME_KEYS:
            named = bare or quoted[1:-1]
        elif key in _SERVER_KEYS:
            address = bare or quoted[1:-1]
        elif key or quoted:
            continue
        elif address.endswith(",") or (":" in bare and _ADDRESS.match(bare)):
            address = bare  # of a list without quotes, each in its turn
        elif "." in bare and _TIME.fullmatch(bare):
            times.append(bare)
    server = last_upstream(address)
    return named or max(times, key=float, default=""), server if _ADDRESS.fullmatch(server) else ""


def last_upstream(address: str) -> str:
    """Return the server that answered: the last of those tried; none for what nginx answered itself.

    If all servers are down, nginx ends with the name of their group, which has no port.
    """
    if ", " in address or " : " in address:
        address = _SEVERAL.split(address)[-1]
    return address if ":" in address else ""  # also unix:PATH
