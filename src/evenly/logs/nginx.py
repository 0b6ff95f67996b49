"""nginx's access log: with our fields at the end, and the combined format with the request time added to it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenly.inputs import shown
from evenly.logs.batch import Batch
from evenly.logs.parser import PatternParser, Row
from evenly.logs.values import clf_times, numbers

LOG_FORMAT = (
    'log_format evenly \'$remote_addr [$time_local] "$request" $status '
    'msec=$msec request_time=$request_time upstream_addr="$upstream_addr"\';'
)
_QUOTED = r'"[^"\\]*(?:\\.[^"\\]*)*"'  # neither nginx nor Apache writes a quote of the client's as it is
_REQUEST = rf"\[(\d\d/[A-Z][a-z][a-z]/\d{{4}}:\d\d:\d\d:\d\d [-+]\d{{4}})\] {_QUOTED} \d{{3}} "
_FIELDS = re.compile(rf'(?:([a-z_]+)=)?(?:({_QUOTED})|([^\s"]+))')
_TIME = re.compile(r"\d{1,9}\.\d{3}")  # nginx writes times in seconds to the millisecond
_SECONDS = re.compile(r"\d{1,9}(?:\.\d{1,9})?")  # the same under a name: it need not be told from other numbers
_MSEC = re.compile(r"\d{10}\.\d{3}")  # and $msec since 1970, in ten digits since 2001
_QUOTED_TIME = re.compile(r'(?:^|\s)"(\d{1,9}\.\d{3})"\s*$')
_OTHER_TIME = re.compile(r"\d+[.,]\d+(?:[mu]?s)?|\d+[mu]?s")  # as other programs write durations
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
    upstream. What is in quotes, without a name that we know, is the client's, unless most lines end in a time in
    quotes and have no other: one client cannot send that. The end is `$msec` where that is logged.
    """

    format: ClassVar[str] = "nginx-combined"
    title: ClassVar[str] = "nginx's combined format with $request_time added"
    hint: ClassVar[str] = (
        "The stock formats of nginx and Apache have no request time. After the status, nginx's $request_time is "
        "read, as 0.606, rt=0.606 or request_time=0.606. Or add this line to http { } and use it with access_log "
        f"PATH evenly: {LOG_FORMAT}"
    )
    names_unserved = True
    server_field = "$upstream_addr"
    pattern: ClassVar[re.Pattern[str]] = re.compile(rf"{_REQUEST}(?:(?:\d+|-) {_QUOTED} {_QUOTED})?(.*)$")

    def convert(self, groups: Sequence[Row], where: NDArray[np.intp], bad: list[tuple[int, str]]) -> Batch:
        """Return the sessions. nginx writes the time of the end."""
        seconds, tails = groups
        found = [_fields(tail) for tail in tails]
        untimed = [at for at, fields in enumerate(found) if not fields.time]
        in_quotes = {at: match[1] for at in untimed if (match := _QUOTED_TIME.search(tails[at]))}
        if 2 * len(in_quotes) > len(tails):
            for at, time in in_quotes.items():
                found[at] = found[at]._replace(time=time)
        for at in untimed:
            if not found[at].time:
                bad.append((int(where[at]), _why_untimed(tails[at])))
        timed = [at for at, fields in enumerate(found) if fields.time]
        exact = numbers([found[at].msec or "nan" for at in timed])
        rough = np.isnan(exact)
        self.whole_seconds = self.whole_seconds or bool(rough.any())
        ends = np.where(rough, clf_times([seconds[at] for at in timed]), exact)
        durations = numbers([found[at].time for at in timed])
        return Batch(
            where=where[timed],
            starts=ends - durations,
            durations=durations,
            servers=[found[at].server for at in timed],
            bad=bad,
        )


class _Fields(NamedTuple):
    """What follows the status; empty where it is not there."""

    time: str
    server: str
    msec: str


def _fields(tail: str) -> _Fields:
    """Return the request time, the server and `$msec`."""
    named, address, msec = "", "", ""
    times: list[str] = []
    for key, quoted, bare in _FIELDS.findall(tail):
        if key in _TIME_KEYS:
            named = bare or quoted[1:-1]
        elif key in _SERVER_KEYS:
            address = bare or quoted[1:-1]
        elif (key == "msec" or not key) and "." in bare and _MSEC.fullmatch(bare):
            msec = bare
        elif key or quoted:
            continue
        elif address.endswith(",") or (":" in bare and _ADDRESS.match(bare)):
            address = bare  # of a list without quotes, each in its turn
        elif "." in bare and _TIME.fullmatch(bare):
            times.append(bare)
    server = last_upstream(address)
    time = named or max(times, key=float, default="")
    return _Fields(time if _SECONDS.fullmatch(time) else "", server if _ADDRESS.fullmatch(server) else "", msec)


def _why_untimed(tail: str) -> str:
    """Return why a line has no session."""
    for key, quoted, bare in _FIELDS.findall(tail):
        value = bare or quoted[1:-1]
        if key in _TIME_KEYS or (not key and _OTHER_TIME.fullmatch(value) and not _TIME.fullmatch(value)):
            return f"its time {shown(value)} is not as nginx writes it: seconds with three decimals, 0.606"
    return "it has no request time"


def last_upstream(address: str) -> str:
    """Return the server that answered: the last of those tried; none for what nginx answered itself.

    If all servers are down, nginx ends with the name of their group, which has no port.
    """
    if ", " in address or " : " in address:
        address = _SEVERAL.split(address)[-1]
    return address if ":" in address else ""  # also unix:PATH
