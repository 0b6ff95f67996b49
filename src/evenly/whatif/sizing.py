"""How many servers a policy needs so that no server has more sessions than a limit, nearly all of the time.

The share of time within the limit need not grow with every further server: replays are random. The search is on
one seed, so that it can be repeated. The number found meets the limit, one server fewer does not, and one more
does again; for each hour as well. No number below `bound` can meet it under any policy: there would be too many
sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

TARGET = 0.999  # share of the time
_MOST_TIMES, _FEW = 16, 16  # the search goes up to this many times the bound, or these few servers

Hour = int | None  # of the day; None for all of the time
Shares = Mapping[Hour, float]  # of the time within the limit


@dataclass(frozen=True, kw_only=True)
class Sizing:
    """The servers that a policy needs for a limit.

    limit: sessions per server, not exceeded for 99.9 % of the time.
    servers: servers needed over the whole window; None if more than the search went up to.
    bound: the fewest that any policy could do with.
    by_hour: servers needed in each hour of the day of which ten minutes are measured; empty without a wall clock.
    replays: replays that the search took.
    """

    limit: int
    servers: int | None
    bound: int
    by_hour: Mapping[int, int | None]
    replays: int

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON."""
        return {
            "limit": self.limit,
            "servers": self.servers,
            "bound": self.bound,
            "by_hour": {str(hour): servers for hour, servers in self.by_hour.items()},
        }


def find_servers(measure: Callable[[int], Shares], bounds: Mapping[Hour, int], limit: int) -> Sizing:
    """Find the servers for each hour, and for all of the time.

    `measure` replays the log with some number of servers and returns the shares of time within the limit, and
    `bounds` are the fewest servers that could do.
    """
    known: dict[int, Shares] = {}

    def meets(servers: int, hour: Hour) -> bool:
        if servers not in known:
            known[servers] = measure(servers)
        return known[servers].get(hour, 1.0) >= TARGET - 1e-12

    def needed(hour: Hour, guess: int) -> int | None:
        found = _smallest(lambda servers: meets(servers, hour), bounds[hour], guess)
        while found is not None and not meets(found + 1, hour):  # met by luck: the next one does not
            found = _smallest(lambda servers: meets(servers, hour), found + 2, found + 2)
        return found

    overall = needed(None, bounds[None])
    ratio = 1.0 if overall is None else overall / bounds[None]
    by_hour = {
        hour: needed(hour, max(bound, round(ratio * bound))) for hour, bound in bounds.items() if hour is not None
    }
    return Sizing(limit=limit, servers=overall, bound=bounds[None], by_hour=by_hour, replays=len(known))


def _smallest(meets: Callable[[int], bool], bound: int, guess: int) -> int | None:
    """Return a number from `bound` on that meets the limit while the one below does not; None if it is too far."""
    most = _MOST_TIMES * max(bound, _FEW)
    low, high = bound - 1, guess  # `low` does not meet it
    step = 1
    if meets(guess):
        while high - step > low and meets(high - step):
            high -= step
            step *= 2
        low = max(low, high - step)
    else:
        while not meets(high):
            low = high
            high += step
            step *= 2
            if high > most:
                return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high
