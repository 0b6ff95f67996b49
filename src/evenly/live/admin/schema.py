"""The JSON that the admin port returns and accepts, with texts and examples for its documentation."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from evenly.live.balancer.lifecycle import State
from evenly.live.balancer.pool import LivePool

STATE_EXAMPLE = {
    "policy": "threshold",
    "alpha": 0.85,
    "threshold": 5,
    "pools": [
        {
            "address": "127.0.0.1:9001",
            "sessions": 6,
            "unpicked": 0,
            "elsewhere": 0,
            "state": "serving",
            "weight": 1.0,
            "source": "",
        },
        {
            "address": "127.0.0.1:9002",
            "sessions": 4,
            "unpicked": 1,
            "elsewhere": 2,
            "state": "draining",
            "weight": 1.0,
            "source": "dns://web:80",
        },
    ],
    "classes": [{"weight": 1.0, "pools": 2, "threshold": 5}],
    "sessions": 10,
    "tokens": {"green": 0, "yellow": 0},
    "messages": {"green": 31, "yellow": 12, "resync": 9, "other": 0},
    "picks": {"green": 40, "yellow": 14, "any": 2},
    "unpicked_sessions": 1,
    "moved_sessions": 0,
    "envoys": [{"admin": "127.0.0.1:9901", "reachable": True, "sessions": 8, "unknown_pools": []}],
    "store": {"fleet": "default", "available": True, "pickers": 1},
    "discovery": [{"source": "dns://web:80", "servers": 1, "age": 4.2, "failures": 0, "problem": ""}],
    "changes_survive": True,
}


_WEIGHT = "From 0.001 to 1000. A pool of weight 4 gets four times the sessions of a pool of weight 1."


class PoolView(BaseModel):
    """A pool."""

    address: Annotated[str, Field(description="HOST:PORT, as the pool was added.")]
    sessions: Annotated[int, Field(description="Open sessions, with those of other pickers.")]
    unpicked: Annotated[int, Field(description="Open sessions that the picker did not pick.")]
    elsewhere: Annotated[int, Field(description="Open sessions of other pickers that share a store.")]
    state: Annotated[
        State,
        Field(
            description="serving; warming: slow start after being added, undrained or recovering; checking: not "
            "reached so far; failing: it does not answer; draining: it gets no new sessions; leaving: removed, "
            "with sessions still open."
        ),
    ]
    weight: Annotated[float, Field(description="Its share of the sessions, relative to other pools.")]
    source: Annotated[str, Field(description="The name that DNS lists it under; empty for other pools.")] = ""


class ClassView(BaseModel):
    """The pools of one weight."""

    weight: Annotated[float, Field(description="Their weight.")]
    pools: Annotated[int, Field(description="Their number, in any state.")]
    threshold: Annotated[int | None, Field(description="Their threshold; null for a policy without one.")]


class TokensView(BaseModel):
    """The tokens that the dispatcher holds."""

    green: Annotated[int, Field(description="Pools known to have fewer sessions than the threshold.")]
    yellow: Annotated[int, Field(description="Pools known to have at most as many sessions as the threshold.")]


class MessagesView(BaseModel):
    """Messages from pools to dispatcher since the start."""

    green: Annotated[int, Field(description="A pool has fewer sessions than the threshold.")]
    yellow: Annotated[int, Field(description="A pool has as many sessions as the threshold.")]
    resync: Annotated[int, Field(description="Tokens rebuilt when the threshold changed or a pool joined.")]
    other: Annotated[int, Field(description="Messages of policies without tokens.")]


class EnvoyView(BaseModel):
    """An Envoy that asks the picker."""

    admin: Annotated[str, Field(description="Its admin address: HOST:PORT, or unix:PATH.")]
    reachable: Annotated[bool, Field(description="Whether it answers there.")]
    sessions: Annotated[int, Field(description="Open sessions through it.")]
    unknown_pools: Annotated[list[str], Field(description="Pools that it cannot send to.")]


class StoreView(BaseModel):
    """The store that pickers share their session counts through."""

    fleet: Annotated[str, Field(description="The name that the pickers share.")]
    available: Annotated[bool, Field(description="False: the counts of other pickers are the last known ones.")]
    pickers: Annotated[int, Field(description="Other pickers whose sessions are counted.")]


class DiscoveryView(BaseModel):
    """A name whose DNS records list pools."""

    source: Annotated[str, Field(description="dns://NAME:PORT or srv://NAME.")]
    servers: Annotated[int, Field(description="Servers in the answer in use.")]
    age: Annotated[float | None, Field(description="Seconds since the last good answer; null before the first.")]
    failures: Annotated[int, Field(description="Lookups since the start that failed or found no server.")]
    problem: Annotated[str, Field(description="Why the last lookup failed; empty if it did not.")]


class StateView(BaseModel):
    """The whole balancer."""

    policy: Annotated[str, Field(description="The policy's name.")]
    alpha: Annotated[float | None, Field(description="The alpha that the threshold is learned with.")]
    threshold: Annotated[
        int | None,
        Field(
            description="The threshold in force; null for a policy without one. With different weights: that of "
            "the smallest weight of a pool that can be picked."
        ),
    ]
    pools: Annotated[list[PoolView], Field(description="All pools, in the order they were added.")]
    classes: Annotated[list[ClassView], Field(description="The pools by weight, the smallest first.")]
    sessions: Annotated[int, Field(description="Open sessions of all pools.")]
    tokens: Annotated[TokensView | None, Field(description="Tokens held; null for a policy without tokens.")]
    messages: Annotated[MessagesView, Field(description="Messages from pools to dispatcher since the start.")]
    picks: Annotated[dict[str, int], Field(description="Sessions placed since the start, by the token used.")]
    unpicked_sessions: Annotated[int, Field(description="Sessions since the start that the picker did not pick.")]
    moved_sessions: Annotated[int, Field(description="Sessions served by a different pool than the one picked.")]
    envoys: Annotated[list[EnvoyView], Field(description="The Envoys that ask the picker.")]
    store: Annotated[StoreView | None, Field(description="The shared store; null without one.")] = None
    discovery: Annotated[list[DiscoveryView], Field(description="The names that are looked up in DNS.")] = []
    changes_survive: Annotated[bool, Field(description="Whether a restart keeps pools changed here.")] = False


class NewPool(BaseModel):
    """A pool to add."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [{"address": "127.0.0.1:9001", "weight": 4}]}
    )

    address: Annotated[str, Field(description="HOST:PORT, with [] around an IPv6 host.", max_length=300)]
    weight: Annotated[float, Field(description=_WEIGHT)] = 1.0


class NewWeight(BaseModel):
    """The weight of a pool."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [{"weight": 4}]})

    weight: Annotated[float, Field(description=_WEIGHT)]


class Status(BaseModel):
    """The picker's health."""

    status: Annotated[str, Field(description="`alive` or `ready`.")]


class Readiness(Status):
    """The picker's health, that of its store, and whether clients are being refused."""

    store: Annotated[
        Literal["available", "unavailable"] | None,
        Field(description="The shared store, if there is one. While it is unavailable, picks continue."),
    ] = None
    refusing: Annotated[
        bool | None,
        Field(description="True if a limit made Envoy refuse clients or requests in the last 10 s; else absent."),
    ] = None


class RefusedView(BaseModel):
    """What the Envoys refused since they started, because a limit was reached."""

    clients: Annotated[int, Field(description="Connections of clients closed at once.")]
    requests: Annotated[int, Field(description="Requests answered with 503.")]
    silent: Annotated[int, Field(description="Connections closed because no whole request came in time.")]


class Problem(BaseModel):
    """The reason why a request was rejected."""

    detail: Annotated[str, Field(description="What was given and what is allowed, in one sentence.")]


def pool_view(pool: LivePool) -> PoolView:
    """Return the current state of a pool."""
    return PoolView(
        address=str(pool.address),
        sessions=pool.sessions,
        unpicked=pool.unpicked,
        elsewhere=pool.elsewhere,
        state=pool.state,
        weight=pool.weight,
        source=pool.source,
    )
