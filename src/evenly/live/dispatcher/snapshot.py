"""The fleet at one moment, as the admin port shows it. Its text is made in pieces: there may be many pools."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evenly.live.admin.json_pieces import json_pieces
from evenly.live.dispatcher.views import StoreView
from evenly.live.store.base import FleetPool, FleetState


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetSnapshot:
    """The store's state, and what this dispatcher counts. `connected` are the pools whose agents are connected."""

    fleet: str
    state: FleetState
    connected: frozenset[str]
    messages: dict[str, int]
    picks: dict[str, int]
    errors: dict[str, int]
    store: StoreView

    @property
    def alpha(self) -> float:
        """The alpha that the threshold is learned with."""
        return float(self.state.alpha)

    @property
    def tokens(self) -> dict[str, int]:
        """The tokens held, by color."""
        return {"green": self.state.green, "yellow": self.state.yellow}

    def json(self) -> Iterator[str]:
        """Yield the JSON of a `FleetView`."""
        state = self.state
        return json_pieces(
            {
                "fleet": self.fleet,
                "threshold": state.threshold,
                "alpha": self.alpha,
                "pools": (pool_json(pool, connected=pool.name in self.connected) for pool in state.pools),
                "sessions": sum(pool.sessions for pool in state.pools),
                "expected": sum(pool.expected for pool in state.pools),
                "tokens": self.tokens,
                "messages": self.messages,
                "picks": self.picks,
                "errors": self.errors,
                "expired": state.expired,
                "released": state.released,
                "agents": len(self.connected),
                "store": self.store.model_dump(),
            }
        )


def pool_json(pool: FleetPool, *, connected: bool) -> dict[str, object]:
    """Return the fields of a `FleetPoolView`."""
    return {
        "name": pool.name,
        "address": pool.address,
        "sessions": pool.sessions,
        "expected": pool.expected,
        "capacity": pool.capacity,
        "state": pool.state,
        "connected": connected,
    }
