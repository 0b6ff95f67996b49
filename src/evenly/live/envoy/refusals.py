"""What Envoys refused because a limit was reached, from the statistics of their admin ports."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from dataclasses import asdict, astuple, dataclass
from urllib.parse import quote

from evenly.live.envoy.admin_address import AdminAddress
from evenly.live.envoy.admin_client import BadResponseError, fetch
from evenly.live.envoy.bootstrap import STAT_PREFIX
from evenly.live.envoy.names import CLUSTER, ONCE
from evenly.live.log import Log

RECENT_S = 10.0  # clients are being refused if one was within this time
_LOG_S = 60.0
_POOLS = rf"cluster\.({CLUSTER}|{ONCE})"
_HTTP = rf"http\.{STAT_PREFIX}"
_NAMES = {  # Envoy's counters, by what they count
    "clients": r"listener\..*\.downstream_(global_cx_overflow|cx_overload_reject)",
    "requests": rf"{_POOLS}\.upstream_rq_(pending|active)_overflow|{_HTTP}\.downstream_rq_overload_close",
    "silent": rf"listener\..*\.downstream_pre_cx_timeout|{_HTTP}\.downstream_rq_header_timeout",
}
_PATH = "/stats?format=json&filter=" + quote(f"^({'|'.join(_NAMES.values())})$")


@dataclass(frozen=True, slots=True)
class Refusals:
    """Counts: clients that were disconnected, requests that got 503, and clients that sent no request in time."""

    clients: int = 0
    requests: int = 0
    silent: int = 0

    def since(self, earlier: Refusals) -> Refusals:
        """Return what was counted after `earlier`. A count that fell was restarted at 0, with its Envoy."""
        pairs = zip(astuple(self), astuple(earlier), strict=True)
        return Refusals(*(now - before if now >= before else now for now, before in pairs))

    def plus(self, other: Refusals) -> Refusals:
        """Return the sums."""
        return Refusals(*(map(sum, zip(astuple(self), astuple(other), strict=True))))


async def fetch_refusals(admin: AdminAddress, seconds: float) -> Refusals:
    """Fetch the counts of an Envoy since its start. Raises the same errors as `fetch_hosts`."""
    return parse_refusals(await fetch(admin, _PATH, seconds))


def parse_refusals(answer: bytes) -> Refusals:
    """Parse the body of a response to `/stats?format=json`."""
    try:
        entries = [entry for entry in json.loads(answer)["stats"] if "name" in entry]  # one has all histograms
        values = {str(entry["name"]): int(entry["value"]) for entry in entries}
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise BadResponseError(f"{type(error).__name__}: {error}") from None
    sums = {
        kind: sum(value for name, value in values.items() if re.fullmatch(names, name))
        for kind, names in _NAMES.items()
    }
    return Refusals(**sums)


class RefusalTally:
    """The refusals of all Envoys since the picker saw them, and a log line at most once per minute."""

    def __init__(self, log: Log) -> None:
        self.total = Refusals()
        self._log = log
        self._seen: dict[Hashable, Refusals] = {}
        self._logged = Refusals()
        self._next_line = self._last = float("-inf")

    def update(self, envoy: Hashable, counts: Refusals, now: float) -> None:
        """Take in the counts of one Envoy."""
        new = counts.since(self._seen.get(envoy, Refusals()))
        self._seen[envoy] = counts
        self.total = self.total.plus(new)
        if new.clients or new.requests:
            self._last = now
        unreported = self.total.since(self._logged)
        if now >= self._next_line and (unreported.clients or unreported.requests):
            self._log.event("clients refused", **asdict(unreported))
            self._logged, self._next_line = self.total, now + _LOG_S

    def forget(self, envoy: Hashable) -> None:
        """Forget an Envoy that is gone. What it refused stays counted."""
        self._seen.pop(envoy, None)

    def recent(self, now: float) -> bool:
        """Return whether an Envoy has refused a client or a request in the last 10 s."""
        return now - self._last < RECENT_S
