"""What a dispatcher needs of a store, and what it gets from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from evenly.core.messages import Color
from evenly.core.protocol import ToDispatcher, ToPool

DISCONNECT_GRACE_S = 0.5  # for an agent whose connection broke to come back, here or elsewhere


class NoPoolsError(Exception):
    """No pool has been heard of lately."""


class AllUnavailableError(Exception):
    """There are pools, but all are full, draining, leaving or excluded."""


class StoreUnavailableError(Exception):
    """The store cannot be reached, and no pool is known without it."""


class PoolState(StrEnum):
    """The word for a pool in `/state`, `/metrics` and the log."""

    SERVING = "serving"
    FULL = "full"  # as many sessions as its capacity
    DRAINING = "draining"  # the operator wants it to empty
    LEAVING = "leaving"  # its agent asked for no more sessions
    SILENT = "silent"  # not heard for too long; clients may still be on their way


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
    drained: frozenset[str]  # names of pools that the operator drains, whether they are there or not


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

    async def register(self, pool: str, *, address: str, capacity: int | None) -> None:
        """Note where the pool is. Before its first message, and whenever one of these changes."""
        ...

    async def receive(self, message: ToDispatcher) -> ToPool | None:
        """Take in a message of a pool's agent, and return the reply if it gets one."""
        ...

    async def disconnected(self, pool: str) -> None:
        """Take the pool for dead if no agent of it is heard within `DISCONNECT_GRACE_S`."""
        ...

    async def drain(self, pool: str) -> None:
        """Give the pool no new sessions until `undrain`."""
        ...

    async def undrain(self, pool: str) -> None:
        """Give the pool sessions again."""
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
