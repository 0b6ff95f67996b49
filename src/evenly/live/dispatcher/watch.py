"""Looks at the fleet now and then: it logs what changes, and knows whether sessions can be placed."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from math import inf, nan

from evenly.live.dispatcher.fleet import Fleet
from evenly.live.log import Log
from evenly.live.store.base import FleetState, PoolState, StoreUnavailableError
from evenly.live.threshold_log import ThresholdLog

_MAX_AGE_S = 0.05  # of a snapshot that answers a probe
_LAST_LOOK_S = 1.0  # the store may be gone


class Watch:
    """Compares snapshots of the fleet and logs what has changed between two of them.

    Anyone may send probes, and a snapshot costs the store time, so that many probes share one.
    """

    def __init__(self, fleet: Fleet, log: Log) -> None:
        self._fleet = fleet
        self._log = log
        self._threshold_log = ThresholdLog(log)
        self.last: FleetState | None = None  # the last snapshot, None before the first
        self._looked = -inf
        self._looking = asyncio.Lock()
        self.own_alpha = nan, ""  # what this dispatcher recommended last, and why
        self.serving: list[int] = []  # open sessions of each pool that gets new ones

    async def look(self, max_age: float = 0.0) -> None:
        """Take a snapshot and log the changes, unless the last one is at most `max_age` seconds old."""
        async with self._looking:  # a snapshot takes a while, and the next must not overtake it
            if time.monotonic() <= self._looked + max_age:
                return
            self._looked = time.monotonic()
            with suppress(StoreUnavailableError):
                state = await self._fleet.open_store.store.state()
                self._compare(self.last, state)
                self.last = state
                served = (PoolState.SERVING, PoolState.FULL)
                self.serving = [pool.sessions for pool in state.pools if pool.state in served]
            self._threshold_log.catch_up()
            self._log.catch_up()

    async def close(self) -> None:
        """Look for the last time, and log what was kept for a later line."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_LOOK_S):
                await self.look()
        self._threshold_log.close()

    async def why_not_ready(self) -> str | None:
        """Return why no session can be placed, None if sessions can."""
        await self.look(_MAX_AGE_S)
        pools = () if self.last is None else self.last.pools
        if any(pool.state is PoolState.SERVING for pool in pools):
            return None
        if not pools:
            return "No pool can be picked: no agent has connected, or all pools have gone."
        return "No pool can be picked: all are full, draining, leaving or silent."

    def _compare(self, before: FleetState | None, now: FleetState) -> None:
        if before is not None and before.threshold != now.threshold:
            self._threshold_log.changed(before=before.threshold, threshold=now.threshold)
        if before is not None and before.alpha != now.alpha:
            alpha, (own, reason) = float(now.alpha), self.own_alpha
            reason = reason if alpha == own else "set by another dispatcher of the fleet"
            self._log.event("alpha changed", before=float(before.alpha), alpha=alpha, reason=reason)
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
