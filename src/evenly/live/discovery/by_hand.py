"""What the operator decided about pools by hand, at the admin port: DNS must not undo it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from evenly.live.addresses import MAX_POOLS, Address
from evenly.live.balancer.lifecycle import Event

KEPT_S = 3600.0  # after DNS last listed it: restarts are over by then, and addresses may belong to other servers

_REFRESH_S = 60.0  # the state file is written whenever a time changes


class Hold(NamedTuple):
    """A pool that the operator removed, else drained. `listed` is when DNS last listed it, in seconds."""

    removed: bool
    listed: float


class ByHand:
    """The pools that the operator has drained or removed."""

    def __init__(self, clock: Callable[[], float], holds: Iterable[tuple[Address, Hold]] = ()) -> None:
        self._clock = clock
        self._holds: dict[Address, Hold] = dict(holds)

    @property
    def holds(self) -> dict[Address, Hold]:
        """A copy, for the state file."""
        return dict(self._holds)

    def note(self, address: Address, event: Event) -> None:
        """Take what the operator did."""
        self._holds.pop(address, None)
        if event in (Event.REMOVE, Event.DRAIN):
            self._holds[address] = Hold(event is Event.REMOVE, self._clock())
        while len(self._holds) > MAX_POOLS:
            del self._holds[next(iter(self._holds))]

    def listed(self, addresses: Iterable[Address]) -> None:
        """Forget the pools that DNS had not listed for long, and keep those that it lists now."""
        if not self._holds:
            return
        now = self._clock()
        self._holds = {a: hold for a, hold in self._holds.items() if now - hold.listed < KEPT_S}
        for address in addresses:
            hold = self._holds.get(address)
            if hold is not None and now - hold.listed > _REFRESH_S:
                self._holds[address] = hold._replace(listed=now)

    def removed(self, address: Address) -> bool:
        """Return whether the operator removed the pool."""
        hold = self._holds.get(address)
        return hold is not None and hold.removed

    def drained(self, address: Address) -> bool:
        """Return whether the operator drained the pool."""
        hold = self._holds.get(address)
        return hold is not None and not hold.removed
