"""What is known of one Envoy: the sessions that it told us of, those that its admin port shows, and its checks.

Its admin port tells the requests open at each pool. Those beyond the sessions that it told us of were picked
without us, while we were away or by its fallback. Those short of them, for long, are not where we picked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from evenly.live.addresses import Address
from evenly.live.balancer.pool import LivePool
from evenly.live.envoy.admin_client import Host

_AGREEING = 3  # answers in a row that move a count
_FIRST_CHECK = 1.0  # seconds in which an Envoy that starts has checked its pools
_CONNECTED = 4.0  # seconds in which a session has reached a pool, with all of Envoy's tries


class Unsure(Protocol):
    """A session whose pool has not answered yet, so that nobody knows who serves it."""

    @property
    def pool(self) -> LivePool | None:
        """Where it is counted."""

    def disown(self) -> None:
        """Count it nowhere, until its pool answers."""


@dataclass(frozen=True, slots=True)
class Before:
    """The counts when a question was asked."""

    started: Counter[LivePool]
    ended: Counter[LivePool]


class Envoy:
    """One Envoy."""

    def __init__(self, admin: Address) -> None:
        self.admin = admin
        self.started: Counter[LivePool] = Counter()
        self.ended: Counter[LivePool] = Counter()
        self.unpicked: Counter[LivePool] = Counter()
        self.unsure: dict[Unsure, None] = {}  # a set that keeps the order
        self.hosts: dict[Address, Host] | None = None  # None as long as it does not answer
        self._well: set[Address] = set()
        self._unwell_since: dict[Address, float] = {}
        self._surprises: dict[LivePool, list[int]] = {}
        self._short: dict[LivePool, tuple[float, int]] = {}  # since when, and by how many at least

    @property
    def sessions(self) -> int:
        """Its open sessions."""
        return self.started.total() - self.ended.total() + self.unpicked.total()

    def before(self) -> Before:
        """Remember the counts, for `compare`."""
        return Before(self.started.copy(), self.ended.copy())

    def compare(self, before: Before, hosts: dict[Address, Host], pools: Sequence[LivePool], now: float) -> None:
        """Take in an answer to a question asked at `before`: how many sessions at each pool are not ours.

        Sessions came and went while the question travelled, so there is a range: the count moves only if it lies
        outside, and only if the next answers agree, for a session just picked is not open at the pool yet. The
        first answer of an Envoy is believed at once.
        """
        agreeing = 1 if self.hosts is None else _AGREEING
        self.hosts = hosts
        surprises, self._surprises = self._surprises, {}
        for pool in pools:
            host = hosts.get(pool.endpoint)
            active = 0 if host is None else host.active
            low = active - (self.started[pool] - before.ended[pool])
            high = active - (before.started[pool] - self.ended[pool])
            known = self.unpicked[pool]
            wanted = max(0, min(max(known, low), high))
            if wanted != known:
                same_way = [count for count in surprises.get(pool, []) if (count > known) == (wanted > known)]
                agreed = [*same_way, wanted]
                if len(agreed) >= agreeing:
                    self.unpicked[pool] = min(agreed, key=lambda count: abs(count - known))
                else:
                    self._surprises[pool] = agreed
            self._look_for_strays(pool, -high, now)

    def _look_for_strays(self, pool: LivePool, short: int, now: float) -> None:
        """Fewer sessions are open at the pool than we picked it for: after a while they are elsewhere."""
        if short <= 0:
            self._short.pop(pool, None)
            return
        since, least = self._short.get(pool, (now, short))
        self._short[pool] = since, min(least, short)
        if now - since > _CONNECTED:
            del self._short[pool]
            for session in [session for session in self.unsure if session.pool is pool][:least]:
                session.disown()

    def fails(self, endpoint: Address, now: float) -> bool | None:
        """Whether it finds that the pool fails; None if it does not know the pool, or has not checked it yet.

        An Envoy that starts calls every pool failing until it has checked it. So at first it is believed after a
        while only.
        """
        host = None if self.hosts is None else self.hosts.get(endpoint)
        if host is None:
            return None
        if not host.failing:
            self._well.add(endpoint)
            self._unwell_since.pop(endpoint, None)
            return False
        since = self._unwell_since.setdefault(endpoint, now)
        return True if endpoint in self._well or now - since > _FIRST_CHECK else None

    def refused(self) -> None:
        """It has died, or is about to: when it answers again, it starts."""
        self._well.clear()
        self._unwell_since.clear()

    def lost(self) -> None:
        """It is gone, and with it the sessions that only its admin port told us of."""
        self.refused()
        self.hosts = None
        self.unpicked.clear()
        self._surprises = {}
        self._short = {}

    def forget_all_but(self, pools: Sequence[LivePool]) -> None:
        """Keep no counts of pools that are no more."""
        for pool in {*self.started, *self.unpicked, *self._short}.difference(pools):
            for counts in (self.started, self.ended, self.unpicked):
                del counts[pool]
            self._short.pop(pool, None)
        endpoints = {pool.endpoint for pool in pools}
        self._well &= endpoints
        for endpoint in self._unwell_since.keys() - endpoints:
            del self._unwell_since[endpoint]
