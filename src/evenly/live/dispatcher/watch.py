"""The log of what changes in the fleet: pools, the threshold, alpha, and whether the store is there."""

from __future__ import annotations

from contextlib import suppress

from evenly.live.dispatcher.fleet import Fleet
from evenly.live.log import Log
from evenly.live.store.base import FleetState, PoolState, StoreUnavailableError


class Watch:
    """Compares snapshots of the fleet and logs what has changed between two of them."""

    def __init__(self, fleet: Fleet, log: Log) -> None:
        self._fleet = fleet
        self._log = log
        self._available = True
        self._last: FleetState | None = None
        self.serving: list[int] = []  # open sessions of each pool that gets new ones

    async def look(self) -> None:
        """Take a snapshot and log the changes."""
        state: FleetState | None = None
        with suppress(StoreUnavailableError):
            state = await self._fleet.open_store.store.state()
        available = state is not None and self._fleet.open_store.available()
        if available != self._available:
            self._available = available
            self._log.event("store back" if available else "store lost", store=self._fleet.open_store.kind)
        if state is not None:
            self._compare(self._last, state)
            self._last = state
            served = (PoolState.SERVING, PoolState.FULL)
            self.serving = [pool.sessions for pool in state.pools if pool.state in served]
        self._log.catch_up()

    def _compare(self, before: FleetState | None, now: FleetState) -> None:
        if before is not None and before.threshold != now.threshold:
            self._log.event("threshold changed", before=before.threshold, threshold=now.threshold, epoch=now.epoch)
        if before is not None and before.alpha != now.alpha:
            self._log.event("alpha changed", alpha=float(now.alpha))
        known = {} if before is None else {pool.name: pool.state for pool in before.pools}
        for pool in now.pools:
            was = known.pop(pool.name, None)
            if was is None:
                self._log.event("pool added", pool=pool.name, state=pool.state.value, sessions=pool.sessions)
            elif was is not pool.state:
                self._log.event(
                    f"pool {pool.state.value}", pool=pool.name, before=was.value, sessions=pool.sessions
                )
        for name in known:
            self._log.event("pool gone", pool=name)
