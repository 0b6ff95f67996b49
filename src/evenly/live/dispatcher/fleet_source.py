"""The dispatcher's side of the dashboard. It shows the last look at the fleet, so it costs the store nothing."""

from __future__ import annotations

import time
from dataclasses import asdict

from evenly.live.dashboard.source import GREEN, NO_TOKEN, YELLOW, About, Figures, Part, Pools, spread_of
from evenly.live.dispatcher.fleet import Fleet
from evenly.live.dispatcher.stores import EMBEDDED
from evenly.live.dispatcher.watch import Watch
from evenly.live.store.base import FleetPool, PoolState

_STATES = tuple(PoolState)
_POSITIONS = {state: position for position, state in enumerate(_STATES)}
_MAX_AGENTS = 100  # shown one by one


class FleetSource:
    """Shows a fleet as one dispatcher sees it."""

    about = About(
        kind="dispatcher",
        states=tuple(state.value for state in _STATES),
        even_states=(PoolState.SERVING.value,),
        actions=("drain", "undrain"),
    )

    def __init__(self, fleet: Fleet, watch: Watch) -> None:
        self._fleet = fleet
        self._watch = watch

    def figures(self) -> Figures:
        """Return the figures of the last look."""
        state, counters = self._watch.last, self._fleet.counters
        pools = () if state is None else state.pools
        serving = [pool.sessions for pool in pools if pool.state is PoolState.SERVING]
        return Figures(
            policy="threshold",
            alpha=None if state is None else float(state.alpha),
            threshold=None if state is None else state.threshold,
            thresholds={},
            sessions=sum(pool.sessions for pool in pools),
            starts=sum(counters.picks.values()),
            spread=spread_of(serving),
            tokens=None if state is None else (state.green, state.yellow),
            messages=asdict(counters.messages),
        )

    def pools(self) -> Pools:
        """Return the pools of the last look."""
        state = self._watch.last
        pools = () if state is None else state.pools
        threshold = 0 if state is None else state.threshold
        return Pools(
            names=[pool.name for pool in pools],
            addresses=[pool.address for pool in pools],
            weights=[1.0] * len(pools),
            sessions=[pool.sessions for pool in pools],
            states=[_POSITIONS[pool.state] for pool in pools],
            tokens=[_token(pool, threshold) for pool in pools],
        )

    def parts(self) -> list[Part]:
        """Return the store, if it is shared, the other dispatchers, and the agents that are connected here."""
        store = self._fleet.open_store
        shared = [] if store.kind == EMBEDDED else [Part(kind="store", name="shared", reachable=store.available())]
        others = [] if store.presence is None else store.presence.others()
        shared += [
            Part(kind="dispatcher", name=each.name, reachable=not each.lost, age=each.age, heard=each.heard)
            for each in others
        ]
        now = time.monotonic()
        agents = list(self._fleet.hub.connections.items())
        shown = [
            Part(kind="agent", name=name, reachable=True, age=now - each.since, heard=now - each.heard)
            for name, each in agents[:_MAX_AGENTS]
        ]
        rest = len(agents) - len(shown)
        return shared + shown + ([Part(kind="agents", name=f"{rest} more", reachable=True)] if rest else [])


def _token(pool: FleetPool, threshold: int) -> int:
    """Return the token that follows from the estimate: what the pool reported, and clients on their way."""
    if pool.state is not PoolState.SERVING:
        return NO_TOKEN
    estimate = pool.sessions + pool.expected
    return GREEN if estimate < threshold else YELLOW if estimate == threshold else NO_TOKEN
