"""Agents: they run with the servers of a pool, count its open sessions, and report them to a dispatcher."""

from evenly.lazy import front_door

_HOMES = {
    "evenly.live.agents.agent": "Agent PoolFullError Session",
    "evenly.live.agents.asgi": "EvenlyMiddleware",
}

__getattr__, __dir__, __all__ = front_door(__name__, _HOMES)
