"""Envoy's overload manager: what it does when clients or memory become too many.

A client beyond the limit is disconnected at once. As the heap fills up, Envoy first returns free memory to the
system, then lets connections end, then answers 503 to every new request. Open sessions continue.
"""

from __future__ import annotations

from evenly.live.envoy.bootstrap_clusters import EXTENSIONS, Json, typed
from evenly.live.envoy.limits import Limits

_HEAP = "envoy.resource_monitors.fixed_heap"
_ACTIONS = {  # by the share of the heap in use
    "shrink_heap": 0.8,
    "disable_http_keepalive": 0.9,
    "stop_accepting_requests": 0.95,
}


def overload_manager(limits: Limits) -> Json:
    """Describe the overload manager."""
    monitors = f"{EXTENSIONS}.resource_monitors"
    clients = typed(
        "envoy.resource_monitors.global_downstream_max_connections",
        f"{monitors}.downstream_connections.v3.DownstreamConnectionsConfig",
        max_active_downstream_connections=limits.clients,
    )
    heap = typed(_HEAP, f"{monitors}.fixed_heap.v3.FixedHeapConfig", max_heap_size_bytes=limits.heap)
    return {
        "refresh_interval": "0.25s",
        "resource_monitors": [clients, heap],
        "actions": [_action(name, threshold) for name, threshold in _ACTIONS.items()],
    }


def _action(name: str, threshold: float) -> Json:
    trigger = {"name": _HEAP, "threshold": {"value": threshold}}
    return {"name": f"envoy.overload_actions.{name}", "triggers": [trigger]}
