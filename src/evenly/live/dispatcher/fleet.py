"""The dispatcher's parts together, and the questions that both of its ports ask about them."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from evenly.live.admin.schema import TokensView
from evenly.live.dispatcher.counters import Counters
from evenly.live.dispatcher.hub import Hub
from evenly.live.dispatcher.stores import OpenStore
from evenly.live.dispatcher.views import AgentMessagesView, FleetView, StoreView, pool_view
from evenly.live.store.base import FleetState, PoolState, StoreUnavailableError


@dataclass(frozen=True, kw_only=True, slots=True)
class Fleet:
    """A fleet as one dispatcher sees it."""

    name: str
    open_store: OpenStore
    hub: Hub
    counters: Counters

    async def why_not_ready(self) -> str | None:
        """Return why no session can be placed, None if sessions can."""
        try:
            state = await self.open_store.store.state()
        except StoreUnavailableError:
            return "The store cannot be reached, and no pool is known without it."
        if not self.open_store.available():
            return "The store cannot be reached; sessions are placed with what this dispatcher knows."
        if any(pool.state is PoolState.SERVING for pool in state.pools):
            return None
        if not state.pools:
            return "No pool can be picked: no agent has connected, or all pools have gone."
        return "No pool can be picked: all are full, draining, leaving or silent."

    async def view(self) -> FleetView:
        """Return the state as the admin port shows it."""
        return self.view_of(await self.open_store.store.state())

    def view_of(self, state: FleetState) -> FleetView:
        """Return a snapshot as the admin port shows it."""
        counters, connections = self.counters, self.hub.connections
        return FleetView(
            fleet=self.name,
            threshold=state.threshold,
            epoch=state.epoch,
            settled=state.settled,
            alpha=float(state.alpha),
            pools=[pool_view(pool, connected=pool.name in connections) for pool in state.pools],
            sessions=sum(pool.sessions for pool in state.pools),
            expected=sum(pool.expected for pool in state.pools),
            tokens=TokensView(green=state.green, yellow=state.yellow),
            messages=AgentMessagesView(**asdict(counters.messages)),
            notices=counters.notices,
            picks=dict(counters.picks),
            errors=dict(counters.errors),
            expired=state.expired,
            released=state.released,
            agents=len(connections),
            store=StoreView(kind=self.open_store.kind, available=self.open_store.available()),
        )
