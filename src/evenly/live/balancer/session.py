"""A session, from the pick to its end, and the ledger of the gateway it came through.

A session is the only one to change counts: where it opens, moves, is released or closes, the pool's count, the
policy and the gateway's ledger follow together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from evenly.live.addresses import Address
from evenly.live.balancer.pool import LivePool

if TYPE_CHECKING:
    from evenly.live.balancer.balancer import Balancer


class Ledger(Protocol):
    """Counts that a gateway keeps of its own sessions. Only `Session` writes to it."""

    def started(self, session: Session) -> None:
        """Count a session in at `session.pool`; it is not confirmed yet."""

    def confirmed(self, session: Session) -> None:
        """Note that the gateway said where the session is served."""

    def ended(self, session: Session) -> None:
        """Count a session out at `session.pool`."""


class Session:
    """One open session. `pool` is the pool where it is counted, None while it is counted nowhere."""

    __slots__ = ("_balancer", "_via", "pool")

    def __init__(self, balancer: Balancer, via: Ledger | None, pool: LivePool | None) -> None:
        """For the balancer's `open` and `adopt`; a `pool` that is given has counted the session already."""
        self._balancer = balancer
        self._via = via
        self.pool = pool
        if pool is not None and via is not None:
            via.started(self)

    def served_by(self, endpoint: Address | None) -> None:
        """Count the session at the pool that serves it; None if the gateway answers it by itself.

        That is another pool than the one picked if the gateway tried again elsewhere. A session that a stranger
        serves is counted nowhere.
        """
        if endpoint is not None and (self.pool is None or endpoint is not self.pool.endpoint):
            self._place(self._balancer.pool_at(endpoint))
        if self._via is not None:
            self._via.confirmed(self)

    def close(self) -> None:
        """Count the session nowhere: it has ended. To close it again changes nothing."""
        pool = self.pool
        if pool is not None:
            self._balancer.rotation.count_out(pool)
            if self._via is not None:
                self._via.ended(self)
            self.pool = None

    def release(self) -> None:
        """Count the session nowhere until `served_by` tells where it is: it has not reached its pool."""
        self.close()

    def _place(self, served: LivePool | None) -> None:
        if served is self.pool:
            return
        if served is None:
            self.release()
            return
        if self.pool is None:
            self._balancer.rotation.adopt(served)
        else:
            self._balancer.rotation.move(self.pool, served)
            if self._via is not None:
                self._via.ended(self)
        self.pool = served
        if self._via is not None:
            self._via.started(self)
