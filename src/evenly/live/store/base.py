"""What a dispatcher needs of a store, and what it gets from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from evenly.core.messages import Color
from evenly.core.protocol import ToDispatcher, ToPool
from evenly.core.protocol.records import MAX_POOLS
from evenly.errors import InputError

DISCONNECT_GRACE_S = 0.5  # for an agent whose connection broke to come back, here or elsewhere


class NoPoolsError(Exception):
    """No pool has been heard of lately."""


class AllUnavailableError(Exception):
    """There are pools, but all are full, draining, leaving or excluded."""


class OutdatedError(InputError):
    """An agent of the pool that started later is connected, here or to another dispatcher."""

    def __init__(self) -> None:
        super().__init__("An agent of this pool that started later is connected.")


class StoreUnavailableError(Exception):
    """The store cannot be reached, and no pool is known without it."""


class UnplacedError(StoreUnavailableError):
    """The store does not know where the pool is: its agent must be registered again."""


class PoolState(StrEnum):
    """The word for a pool in `/state`, `/metrics` and the log."""

    SERVING = "serving"
    FULL = "full"  # as many sessions as its capacity
    DRAINING = "draining"  # the operator wants it to empty
    LEAVING = "leaving"  # its agent asked for no more sessions
    SILENT = "silent"  # not heard for too long; clients may still be on their way


class Order(NamedTuple):
    """An operator's order: to drain a pool, or to end that. A newer one has a higher version."""

    version: int
    drained: bool


Orders = Mapping[str, Order]
"""The last order for each pool."""


def keep_newest(orders: dict[str, Order], pool: str, order: Order) -> bool:
    """Keep an order if it is the newest for its pool. Return True then.

    Where there are too many, only those to drain are kept.
    """
    known = orders.get(pool)
    if known is not None and order.version <= known.version:
        return False
    orders[pool] = order
    if len(orders) > MAX_POOLS:
        for other in [each for each, kept in orders.items() if not kept.drained]:
            del orders[other]
    return True


def next_order(known: Order | None, *, drained: bool) -> Order:
    """Return an order that is newer than the one that is known."""
    now = time.time_ns() // 1_000_000
    return Order(now if known is None else max(now, known.version + 1), drained)


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetSettings:
    """Settings that all dispatchers of a fleet should share. Times are in seconds; `alpha` as it was written."""

    alpha: str
    lease: float
    silence: float
    memory: float
    heartbeat: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """A place for a session: `expires_in` seconds are left until it is given to others."""

    pool: str
    address: str
    ticket: int
    expires_in: float
    color: Color | None
    threshold: int


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetPool:
    """A pool of the fleet: `sessions` were open at its last report, `expected` clients are on their way."""

    name: str
    address: str
    capacity: int | None
    sessions: int
    expected: int
    state: PoolState


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetState:
    """A snapshot."""

    threshold: int
    alpha: str
    green: int
    yellow: int
    pools: tuple[FleetPool, ...]
    expired: int  # places since the start that no client came for in time
    released: int  # places since the start that clients gave back
    orders: Orders  # the operators', for pools that are there or not


class Store(Protocol):
    """The members, tokens and open tickets of a fleet.

    All methods may be called concurrently. Only `place` raises the errors above; `StoreUnavailableError` comes
    from the others too.
    """

    on_lapse: Callable[[], None]
    """Called when the newest sessions and tickets may be forgotten: the agents should report at once."""

    @property
    def key(self) -> bytes:
        """The key that session ids are signed with."""
        ...

    async def place(self, *, count: int, exclude: frozenset[str], key: str | None) -> tuple[Placement, ...]:
        """Find places for sessions, for all or for none. The same request key gets the same answer.

        Raises KeyReusedError if the key was used for another request, TooManyPicksError if there were too many
        picks within one lease.
        """
        ...

    async def release(self, pool: str, ticket: int) -> None:
        """Give back a place whose client will not come. Idempotent."""
        ...

    async def register(self, pool: str, *, incarnation: int, address: str, capacity: int | None) -> None:
        """Note where the pool is. Before its first message, and whenever one of these changes.

        Raises OutdatedError if an agent that started later has registered; so does `receive`.
        """
        ...

    async def receive(self, message: ToDispatcher) -> ToPool | None:
        """Take in a message of a pool's agent, and return the reply if it gets one."""
        ...

    async def disconnected(self, pool: str) -> None:
        """Take the pool for dead if no agent of it is heard within `DISCONNECT_GRACE_S`."""
        ...

    async def order(self, pool: str, order: Order) -> None:
        """Give the pool no new sessions, or sessions again, unless a newer order is known."""
        ...

    def use_alpha(self, alpha: str) -> None:
        """Learn the threshold with this alpha from now on."""
        ...

    async def tick(self) -> None:
        """Let time pass. To be called several times per heartbeat."""
        ...

    async def state(self) -> FleetState:
        """Return a snapshot."""
        ...
