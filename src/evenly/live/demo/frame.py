"""One moment of the demo as plain data, for the screen."""

from __future__ import annotations

from dataclasses import dataclass

from evenly.live.admin.schema import StateView


@dataclass(frozen=True, slots=True)
class Side:
    """One balancer: the open sessions of each pool, and the mean spread so far in this phase."""

    sessions: tuple[int, ...]
    spread: float
    started: int
    failed: int


@dataclass(frozen=True, slots=True)
class Frame:
    """The traffic so far, both balancers, the picker's state (None if it does not answer), and its dashboard."""

    time: float
    seconds: float
    load: float
    evenly: Side
    rival: Side
    picker: StateView | None
    dashboard: str
