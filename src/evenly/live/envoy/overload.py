"""Envoy's overload manager: what it does when clients or memory become too many.

A client beyond the limit is disconnected at once. From half the limit on, connections without a request are closed
earlier, so that they cannot keep other clients out. As the heap fills up, Envoy first returns free memory to the
system, then lets connections end, then answers 503 to every new request. Open sessions continue.
"""

from __future__ import annotations

from evenly.live.envoy.bootstrap_clusters import EXTENSIONS, Json, typed
from evenly.live.envoy.limits import Limits

_CLIENTS = "envoy.resource_monitors.global_downstream_max_connections"
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
        _CLIENTS,
        f"{monitors}.downstream_connections.v3.DownstreamConnectionsConfig",
        max_active_downstream_connections=limits.clients,
    )
    heap = typed(_HEAP, f"{monitors}.fixed_heap.v3.FixedHeapConfig", max_heap_size_bytes=limits.heap)
    return {
        "refresh_interval": "0.25s",
        "resource_monitors": [clients, heap],
        "actions": [*(_action(name, threshold) for name, threshold in _ACTIONS.items()), _close_idle_clients()],
    }


def _action(name: str, threshold: float) -> Json:
    trigger = {"name": _HEAP, "threshold": {"value": threshold}}
    return {"name": f"envoy.overload_actions.{name}", "triggers": [trigger]}


def _close_idle_clients() -> Json:
    """Lower the idle timeout of clients from its full length at half the limit to 2 s at nine tenths of it."""
    trigger = {"name": _CLIENTS, "scaled": {"scaling_threshold": 0.5, "saturation_threshold": 0.9}}
    idle = {"timer": "HTTP_DOWNSTREAM_CONNECTION_IDLE", "min_timeout": "2s"}
    kind = "type.googleapis.com/envoy.config.overload.v3.ScaleTimersOverloadActionConfig"
    action = typed("envoy.overload_actions.reduce_timeouts", kind, timer_scale_factors=[idle])
    return {**action, "triggers": [trigger]}
