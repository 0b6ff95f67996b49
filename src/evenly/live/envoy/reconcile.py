"""The counts of one Envoy: the sessions it reported, those its admin port shows, and its health checks.

Its admin port shows the requests open at each pool. Those beyond the reported sessions are unpicked: placed while
the picker was down, or by Envoy's fallback. If requests stay missing, the sessions are not at the pool we picked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evenly.live.addresses import Address
from evenly.live.balancer.pool import LivePool
from evenly.live.balancer.session import Session
from evenly.live.envoy.admin_address import AdminAddress
from evenly.live.envoy.admin_client import Host
from evenly.live.envoy.names import MERGE_S

_AGREEING = 3  # responses in a row that change a count
FIRST_CHECK_S = 1.0  # an Envoy that has just started, or got a new pool, has checked its pools by then
_WORKERS_S = 2 * MERGE_S  # after its admin port shows a healthy pool, all its workers know by then
_CONNECT_S = 4.0  # a session has reached its pool by then, with all of Envoy's retries


class _View(NamedTuple):
    """What an Envoy says of a pool, since when, and whether it was healthy there before."""

    failing: bool
    since: float
    was_healthy: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The counts when a request to the admin port was sent."""

    started: Counter[LivePool]
    ended: Counter[LivePool]


class EnvoyCounts:
    """One Envoy: the `Ledger` of the sessions that it forwards.

    `unpicked` are the sessions at each pool that only its admin port shows. `hosts` is the last response of its
    admin port, None while it does not respond. It was first seen at the time `seen`, and `answered` is when its
    admin port last did.
    """

    def __init__(self, admin: AdminAddress, seen: float = 0.0) -> None:
        self.admin = admin
        self.seen = self.answered = seen
        self.unpicked: Counter[LivePool] = Counter()
        self.hosts: dict[Address, Host] | None = None
        self._started: Counter[LivePool] = Counter()
        self._ended: Counter[LivePool] = Counter()
        self._unconfirmed: dict[Session, None] = {}  # a set that keeps the order
        self._views: dict[Address, _View] = {}
        self._surprises: dict[LivePool, list[int]] = {}
        self._short: dict[LivePool, tuple[float, int]] = {}  # since when, and by how many at least

    # --- the ledger, written by sessions only ------------------------------------------------------------------

    def started(self, session: Session) -> None:
        """Count a session in at its pool; it is not confirmed yet."""
        assert session.pool is not None
        self._started[session.pool] += 1
        self._unconfirmed[session] = None

    def confirmed(self, session: Session) -> None:
        """Note that this Envoy reported which pool serves the session."""
        self._unconfirmed.pop(session, None)

    def ended(self, session: Session, pool: LivePool) -> None:
        """Count a session out at the pool."""
        self._ended[pool] += 1
        self._unconfirmed.pop(session, None)

    # --- read-only views ---------------------------------------------------------------------------------------

    @property
    def checks(self) -> bool:
        """Whether its admin port responds, which has the results of its health checks."""
        return self.hosts is not None

    @property
    def picked(self) -> int:
        """The open sessions that it reported."""
        return self._started.total() - self._ended.total()

    @property
    def sessions(self) -> int:
        """All its open sessions."""
        return self.picked + self.unpicked.total()

    # --- answers of its admin port -----------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Copy the counts, for `compare`."""
        return Snapshot(self._started.copy(), self._ended.copy())

    def compare(self, before: Snapshot, hosts: dict[Address, Host], pools: Sequence[LivePool], now: float) -> None:
        """Find the unpicked sessions of each pool in a response to a request sent at `before`.

        Sessions may have started and ended while the request was in flight, so the response allows a range of
        counts. The count changes only if it is outside that range, and only if the next responses agree, since a
        session just picked is not open at its pool yet. The first response of an Envoy counts at once.
        """
        agreeing = 1 if self.hosts is None else _AGREEING
        self.hosts = hosts
        surprises, self._surprises = self._surprises, {}
        for pool in pools:
            host = hosts.get(pool.endpoint)
            active = 0 if host is None else host.active
            low = active - (self._started[pool] - before.ended[pool])
            high = active - (before.started[pool] - self._ended[pool])
            known = self.unpicked[pool]
            wanted = max(0, min(max(known, low), high))
            if wanted != known:
                same_way = [count for count in surprises.get(pool, []) if (count > known) == (wanted > known)]
                agreed = [*same_way, wanted]
                if len(agreed) >= agreeing:
                    self.unpicked[pool] = min(agreed, key=lambda count: abs(count - known))
                else:
                    self._surprises[pool] = agreed
            self._release_strays(pool, -high, now)

    def _release_strays(self, pool: LivePool, short: int, now: float) -> None:
        """Release sessions that have not reached the pool we picked, oldest first."""
        if short <= 0:
            self._short.pop(pool, None)
            return
        since, least = self._short.get(pool, (now, short))
        self._short[pool] = since, min(least, short)
        if now - since > _CONNECT_S:
            del self._short[pool]
            for session in [session for session in self._unconfirmed if session.pool is pool][:least]:
                session.release()

    def fails(self, endpoint: Address, now: float) -> bool | None:
        """Return True if the pool fails its health checks; None if this Envoy has not checked it.

        An Envoy that has just started shows every pool as failing until it has checked it. So a pool that it has
        never shown as healthy counts as failing only after a while.
        """
        host = None if self.hosts is None else self.hosts.get(endpoint)
        if host is None:
            return None
        view = self._views.get(endpoint)
        if view is None or view.failing != host.failing:
            was_healthy = view is not None and (view.was_healthy or not view.failing)
            view = self._views[endpoint] = _View(host.failing, now, was_healthy)
        if not host.failing:
            return False
        return True if view.was_healthy or now - view.since > FIRST_CHECK_S else None

    def reaches(self, endpoint: Address, now: float) -> bool:
        """Return whether every request can reach the pool. Call `fails` first.

        The admin port shows a healthy pool a moment before the threads that send requests know of it.
        """
        view = self._views.get(endpoint)
        return view is not None and not view.failing and now - view.since >= _WORKERS_S

    def refused(self) -> None:
        """Forget its health checks: it refused a connection, so it will have restarted when it responds again."""
        self._views.clear()

    def lost(self) -> None:
        """Forget what only its admin port showed: the Envoy is gone, and so are those sessions."""
        self.refused()
        self.hosts = None
        self.unpicked.clear()
        self._surprises = {}
        self._short = {}

    def forget_all_but(self, pools: Sequence[LivePool]) -> None:
        """Drop the counts of pools that are gone."""
        for pool in {*self._started, *self.unpicked, *self._short}.difference(pools):
            for counts in (self._started, self._ended, self.unpicked):
                del counts[pool]
            self._short.pop(pool, None)
        endpoints = {pool.endpoint for pool in pools}
        for endpoint in self._views.keys() - endpoints:
            del self._views[endpoint]
