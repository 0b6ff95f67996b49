"""The JSON of the dispatcher's admin port, with texts and examples for its documentation."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from evenly.live.admin.schema import TokensView
from evenly.live.store.base import PoolState

POOL_EXAMPLE = {
    "name": "game-7",
    "address": "wss://game-7.example:8443",
    "sessions": 6,
    "expected": 1,
    "capacity": 100,
    "state": "serving",
    "connected": True,
}
STATE_EXAMPLE = {
    "fleet": "default",
    "threshold": 5,
    "alpha": 0.85,
    "pools": [POOL_EXAMPLE],
    "sessions": 6,
    "expected": 1,
    "tokens": {"green": 0, "yellow": 0},
    "messages": {
        "green": 31,
        "yellow": 12,
        "heartbeats": 204,
        "refusals": 0,
        "leaves": 0,
    },
    "picks": {"green": 40, "yellow": 14, "any": 2},
    "errors": {"no_pools": 1},
    "expired": 3,
    "released": 1,
    "agents": 1,
    "store": {"kind": "shared", "available": True, "outages": 0},
}


class FleetPoolView(BaseModel):
    """A pool."""

    name: Annotated[str, Field(description="Its name in the fleet.")]
    address: Annotated[str, Field(description="URL that clients are sent to.")]
    sessions: Annotated[int, Field(description="Open sessions at its last report.")]
    expected: Annotated[int, Field(description="Clients that were sent there and are not reported yet.")]
    capacity: Annotated[int | None, Field(description="Most sessions that it takes; null means no limit.")]
    state: Annotated[
        PoolState,
        Field(
            description="serving; full: as many sessions as its capacity; draining: it gets no new sessions; "
            "leaving: its agent asked for none; silent: not heard for too long."
        ),
    ]
    connected: Annotated[bool, Field(description="Whether its agent is connected to this dispatcher.")]


class AgentMessagesView(BaseModel):
    """Messages from agents to this dispatcher since the start."""

    green: Annotated[int, Field(description="A pool has fewer sessions than the threshold.")]
    yellow: Annotated[int, Field(description="A pool has as many sessions as the threshold.")]
    heartbeats: Annotated[int, Field(description="Heartbeats.")]
    refusals: Annotated[int, Field(description="A pool turned a client away.")]
    leaves: Annotated[int, Field(description="A pool asked for no more sessions.")]


class StoreView(BaseModel):
    """The store."""

    kind: Annotated[str, Field(description="`embedded` or `shared`.")]
    available: Annotated[bool, Field(description="False: sessions are placed with what this dispatcher knows.")]
    outages: Annotated[int, Field(description="How often the shared store was lost since the start.")]


class FleetView(BaseModel):
    """The whole fleet as this dispatcher knows it."""

    fleet: Annotated[str, Field(description="Name of the fleet.")]
    threshold: Annotated[int, Field(description="The threshold in force.")]
    alpha: Annotated[float, Field(description="The alpha that the threshold is learned with.")]
    pools: Annotated[list[FleetPoolView], Field(description="All pools, in the order they were first heard.")]
    sessions: Annotated[int, Field(description="Open sessions of all pools.")]
    expected: Annotated[int, Field(description="Clients on their way to all pools.")]
    tokens: Annotated[TokensView, Field(description="Tokens held.")]
    messages: Annotated[AgentMessagesView, Field(description="Messages from agents to this dispatcher.")]
    picks: Annotated[
        dict[str, int],
        Field(description="Places that this dispatcher answered with, by token. Repeated answers count too."),
    ]
    errors: Annotated[dict[str, int], Field(description="Rejected requests of this dispatcher, by code.")]
    expired: Annotated[int, Field(description="Places that no client came for in time.")]
    released: Annotated[int, Field(description="Places that clients gave back.")]
    agents: Annotated[int, Field(description="Agents connected to this dispatcher.")]
    store: Annotated[StoreView, Field(description="Where tokens are kept.")]
