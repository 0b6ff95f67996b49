"""The events that the balancer reports: one frozen dataclass per kind.

Callers react to the type of an event, never to its text. Its text in the log is decided in `picker/event_log.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from evenly.live.addresses import Address
from evenly.live.balancer.lifecycle import State


@dataclass(frozen=True, kw_only=True)
class BalancerEvent:
    """The base class of all events."""


@dataclass(frozen=True, kw_only=True)
class PoolEvent(BalancerEvent):
    """A change that endpoint discovery and the state file may have to follow."""

    pool: Address


@dataclass(frozen=True, kw_only=True)
class PoolAdded(PoolEvent):
    """A pool was added, or added again while it was leaving. `source` is the name that DNS lists it under."""

    endpoint: Address
    weight: float = 1.0
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class PoolStateChanged(PoolEvent):
    """The state shown for a pool changed; `sessions` are the sessions open there."""

    before: State
    state: State
    sessions: int


@dataclass(frozen=True, kw_only=True)
class PoolFailed(PoolStateChanged):
    """A pool fails.

    It was well `seconds` ago, None if it never was. `lost` is by how much its sessions have fallen in the last one
    or two seconds.
    """

    reason: str
    seconds: float | None
    lost: int


@dataclass(frozen=True, kw_only=True)
class PoolWeightChanged(PoolEvent):
    """The weight of a pool changed."""

    before: float
    weight: float


@dataclass(frozen=True, kw_only=True)
class PoolGone(PoolEvent):
    """The last session of a removed pool ended, and the balancer has forgotten the pool."""


@dataclass(frozen=True, kw_only=True)
class ThresholdChanged(BalancerEvent):
    """The threshold is another one than at the last report."""

    before: int
    threshold: int


@dataclass(frozen=True, kw_only=True)
class AlphaChanged(BalancerEvent):
    """The alpha used for learning changed."""

    before: float
    alpha: float
    reason: str
