"""The dispatcher's parts together, and the questions that both of its ports ask about them."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from evenly.live.dispatcher.counters import Counters
from evenly.live.dispatcher.hub import Hub
from evenly.live.dispatcher.snapshot import FleetSnapshot
from evenly.live.dispatcher.stores import EMBEDDED, OpenStore
from evenly.live.dispatcher.views import StoreView


@dataclass(frozen=True, kw_only=True, slots=True)
class Fleet:
    """A fleet as one dispatcher sees it."""

    name: str
    open_store: OpenStore
    hub: Hub
    counters: Counters

    def store_available(self) -> bool | None:
        """Return whether the shared store can be used; None if there is none."""
        return None if self.open_store.kind == EMBEDDED else self.open_store.available()

    async def snapshot(self) -> FleetSnapshot:
        """Return the fleet as the admin port shows it."""
        state = await self.open_store.store.state()
        counters = self.counters
        return FleetSnapshot(
            fleet=self.name,
            state=state,
            connected=frozenset(self.hub.connections),
            messages=asdict(counters.messages),
            picks=dict(counters.picks),
            errors=dict(counters.errors),
            store=StoreView(
                kind=self.open_store.kind,
                available=self.open_store.available(),
                outages=self.open_store.outages(),
            ),
        )
