"""The store in the dispatcher's own process: a `DispatcherPeer` with addresses."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace

from evenly.core import Choose, LearningRule
from evenly.core.protocol import DispatcherPeer, KnownPool, ToDispatcher, ToPool
from evenly.live.signing import new_key
from evenly.live.steps import in_steps
from evenly.live.store.base import (
    DISCONNECT_GRACE_S,
    AllUnavailableError,
    FleetPool,
    FleetSettings,
    FleetState,
    NoPoolsError,
    Order,
    Placement,
    PoolState,
    keep_newest,
)

_FIRST_TERM = 1_577_836_800  # seconds: 2020-01-01


def term_now() -> int:
    """Return a term for a dispatcher that starts now. Should the clock go back, agents know a later one."""
    return max(1, int(time.time()) - _FIRST_TERM)


class LocalStore:
    """Tokens in process. After a restart, they are rebuilt from what the agents report.

    `catch_up` raises the threshold to the median number of sessions two heartbeats after the start: a dispatcher
    that starts against busy pools need not learn it one by one.
    """

    def __init__(
        self,
        settings: FleetSettings,
        *,
        term: int,
        threshold: int = 0,
        key: bytes | None = None,
        choose: Choose | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.key = new_key() if key is None else key
        self.on_lapse: Callable[[], None] = lambda: None  # it forgets nothing
        self._settings = settings
        self._choose = random.Random().choice if choose is None else choose
        self._clock = clock
        self._addresses: dict[str, tuple[str, int | None]] = {}
        self._orders: dict[str, Order] = {}
        self._connected: set[str] = set()  # registered; their addresses are needed at their next message
        self._peer = DispatcherPeer(
            threshold,
            LearningRule(settings.alpha),
            term=term,
            lease=settings.lease,
            silence=settings.silence,
            memory=settings.memory,
        )
        self._catch_up_at: float | None = clock() + 2 * settings.heartbeat

    async def place(self, *, count: int, exclude: frozenset[str], key: str | None) -> tuple[Placement, ...]:
        """Find places for sessions."""
        now = self._clock()
        picks = self._peer.pick_many(now, self._choose, count, key, exclude)
        if not picks:
            raise AllUnavailableError if any(True for _ in self._peer.known_pools()) else NoPoolsError
        if any(pick.pool not in self._addresses for pick in picks):  # an answer from before the pool was forgotten
            raise AllUnavailableError
        return tuple(
            Placement(
                pool=str(pick.pool),
                address=self._addresses[str(pick.pool)][0],
                ticket=pick.ticket,
                expires_in=max(0.0, pick.expires - now),
                color=pick.color,
                threshold=pick.threshold,
            )
            for pick in picks
        )

    async def release(self, pool: str, ticket: int) -> None:
        """Give back a place whose client will not come."""
        self._peer.release(self._clock(), pool, ticket)

    async def register(self, pool: str, *, incarnation: int, address: str, capacity: int | None) -> None:
        """Note where the pool is. The caller has one agent of each pool, the one that started last."""
        self._peer.set_capacity(pool, capacity)
        self._addresses[pool] = address, capacity
        self._connected.add(pool)

    async def receive(self, message: ToDispatcher) -> ToPool | None:
        """Take in a message of a pool's agent."""
        return self._peer.receive(self._clock(), message)

    async def disconnected(self, pool: str) -> None:
        """Take the pool for dead if it is not heard soon."""
        self._connected.discard(pool)
        self._peer.disconnect(self._clock(), pool, min(DISCONNECT_GRACE_S, self._settings.heartbeat))

    async def order(self, pool: str, order: Order) -> None:
        """Give the pool no new sessions, or sessions again, unless a newer order is known."""
        if keep_newest(self._orders, pool, order):
            (self._peer.drain if order.drained else self._peer.undrain)(pool)

    def use_alpha(self, alpha: str) -> None:
        """Learn the threshold with this alpha from now on."""
        self._peer.rule = LearningRule(alpha)
        self._settings = replace(self._settings, alpha=alpha)

    async def tick(self) -> None:
        """Let time pass."""
        now = self._clock()
        self._peer.tick(now)
        if self._catch_up_at is not None and now >= self._catch_up_at:
            self._catch_up_at = None
            self._peer.catch_up()
        self._forget_addresses()

    async def state(self) -> FleetState:
        """Return a snapshot. The pools are read in steps, so that picks go on: each is as it is at its turn."""
        pools = await in_steps(
            self._pool(known) for known in self._peer.known_pools() if str(known.pool) in self._addresses
        )
        green, yellow = self._peer.tokens
        return FleetState(
            threshold=self._peer.threshold,
            alpha=self._settings.alpha,
            green=green,
            yellow=yellow,
            pools=tuple(pools),
            expired=self._peer.expired,
            released=self._peer.released,
            orders=dict(self._orders),
        )

    def _pool(self, known: KnownPool) -> FleetPool:
        address, capacity = self._addresses[str(known.pool)]
        return FleetPool(
            name=str(known.pool),
            address=address,
            capacity=capacity,
            sessions=known.tasks,
            expected=known.open_tickets,
            state=pool_state(known),
        )

    def _forget_addresses(self) -> None:
        if len(self._addresses) > 2 * len(self._connected) + 100:
            known = self._connected.union(str(each.pool) for each in self._peer.known_pools())
            self._addresses = {pool: where for pool, where in self._addresses.items() if pool in known}


def pool_state(known: KnownPool) -> PoolState:
    """Return the word for a pool."""
    if known.draining:
        return PoolState.DRAINING
    if known.leaving:
        return PoolState.LEAVING
    if not known.member:
        return PoolState.SILENT
    return PoolState.FULL if known.full else PoolState.SERVING
