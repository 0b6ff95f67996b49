"""A session, from the pick to its end, and the ledger of the gateway it came through.

Only sessions change counts. When one opens, moves, is released or closes, the pool's count, the policy and the
gateway's ledger follow together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from evenly.live.addresses import Address
from evenly.live.balancer.lifecycle import Stage
from evenly.live.balancer.pool import LivePool

if TYPE_CHECKING:
    from evenly.live.balancer.balancer import Balancer


class Ledger(Protocol):
    """The counts that a gateway keeps of its own sessions. Only `Session` writes to it."""

    @property
    def checks(self) -> bool:
        """Whether the gateway tells how its health checks of the pools end."""

    def started(self, session: Session) -> None:
        """Count a session in at `session.pool`; it is not confirmed yet."""

    def confirmed(self, session: Session) -> None:
        """Note that the gateway reported which pool serves the session."""

    def ended(self, session: Session, pool: LivePool) -> None:
        """Count a session out at the pool."""


class Session:
    """One open session. `pool` is the pool where it is counted, None while it is counted nowhere."""

    __slots__ = ("_balancer", "_closed", "_opened", "_via", "pool")

    def __init__(self, balancer: Balancer, via: Ledger | None, pool: LivePool | None) -> None:
        """For `Balancer.open` and `Balancer.adopt`. A `pool` that is given has already counted the session."""
        self._balancer = balancer
        self._opened = balancer.opened()
        self._closed = False
        self._via = via
        self.pool = pool
        if pool is not None and via is not None:
            via.started(self)

    def served_by(self, endpoint: Address | None) -> None:
        """Count the session at the pool that serves it; None means that the gateway itself responded.

        A gateway that retried elsewhere reports another pool than the one picked. A session served by an unknown
        endpoint is counted nowhere. A closed session stays closed.
        """
        if self._closed:
            return
        if endpoint is not None and (self.pool is None or endpoint is not self.pool.endpoint):
            self._place(self._balancer.pool_at(endpoint))
        if endpoint is not None and not (self._via is not None and self._via.checks):
            self._reached()
        if self._via is not None:
            self._via.confirmed(self)

    def close(self) -> None:
        """End the session: count it nowhere. Idempotent."""
        if self.pool is not None:
            self._balancer.ended(self.pool, self._opened)
        self._closed = True
        self.release()

    def release(self) -> None:
        """Count the session nowhere until `served_by` is called: it has not reached its pool."""
        pool, self.pool = self.pool, None  # first, so that a failure below cannot count it out twice
        if pool is not None:
            if self._via is not None:
                self._via.ended(self, pool)
            self._balancer.rotation.count_out(pool)

    def _reached(self) -> None:
        """Note that the pool serves a session, if nothing else tells that it can be reached."""
        if self.pool is not None and self.pool.stage is Stage.CHECKING:
            self._balancer.set_well(self.pool)

    def _place(self, served: LivePool | None) -> None:
        picked = self.pool
        if served is picked:
            return
        if served is None:
            self.release()
            return
        self.pool = served
        if self._via is not None:
            if picked is not None:
                self._via.ended(self, picked)
            self._via.started(self)
        if picked is None:
            self._balancer.rotation.adopt(served)
        else:
            self._balancer.rotation.move(picked, served)
