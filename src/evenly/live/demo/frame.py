"""One moment of the demo, as plain data for whoever draws it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from evenly.live.admin.schema import StateView


@dataclass(frozen=True, slots=True)
class Side:
    """One balancer: the sessions open at each of its pools, and how even they were so far in this phase."""

    sessions: tuple[int, ...]
    spread: float
    started: int
    failed: int


@dataclass(frozen=True, slots=True)
class View:
    """Where the traffic stands, both balancers, and what the picker says (None while it says nothing)."""

    time: float
    seconds: float
    load: float
    evenly: Side
    rival: Side
    picker: StateView | None

    @property
    def optimum(self) -> int:
        """The threshold that balances the load best. Paper: Sec. 2.2."""
        return math.floor(self.load)
