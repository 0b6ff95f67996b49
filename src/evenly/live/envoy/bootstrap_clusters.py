"""The two clusters of an Envoy that uses a picker: the pools, and the picker itself.

`bootstrap.py` lists what must not change, and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evenly.live.addresses import Address, is_ip, resolve
from evenly.live.envoy.admin_address import AdminAddress, announcement
from evenly.live.envoy.endpoint_weights import endpoint_weights
from evenly.live.envoy.limits import MAX_CONNECTIONS, Limits
from evenly.live.envoy.names import (
    ANNOUNCEMENT,
    CLUSTER,
    MERGE_S,
    NAMESPACE,
    ONCE,
    OPEN,
    PICKED,
    PICKER,
    SERVED,
)
from evenly.live.envoy.pool_protocol import PoolProtocol
from evenly.live.envoy.transport import picker_tls

EXTENSIONS = "type.googleapis.com/envoy.extensions"
KEEPALIVE = {"keepalive_time": 60, "keepalive_interval": 10, "keepalive_probes": 6}  # seconds, seconds, probes

Json = dict[str, Any]


def picker_service(admin: AdminAddress) -> Json:
    """Describe the gRPC service of the picker. Every call announces this Envoy's admin address."""
    return {
        "envoy_grpc": {"cluster_name": PICKER},
        "initial_metadata": [{"key": ANNOUNCEMENT, "value": announcement(admin)}],
    }


def pools_cluster(
    pools: Sequence[Address] | None,
    admin: AdminAddress,
    protocol: PoolProtocol,
    limits: Limits,
    *,
    weights: Sequence[float],
    once: bool,
) -> Json:
    """Describe the pools: the given ones, or those that the picker announces by EDS if `pools` is None.

    Without `weights` the pools are equal. If `once`, each connection carries one request only.
    """
    name = ONCE if once else CLUSTER
    idle = {"idle_timeout": "1s", "max_requests_per_connection": 1} if once else {"idle_timeout": "4s"}
    return {
        "name": name,
        "connect_timeout": "1s",
        "circuit_breakers": _circuit_breakers(
            max_requests=limits.sessions,
            max_pending_requests=limits.connecting,
            max_connections=limits.new_connections if once else limits.pool_connections,
        ),
        "per_connection_buffer_limit_bytes": 2**16,
        "upstream_connection_options": {"tcp_keepalive": KEEPALIVE},
        "health_checks": [_pool_check(protocol)],
        "load_balancing_policy": _override_host_policy(),
        "common_lb_config": {
            "healthy_panic_threshold": {"value": 1},  # the fallback also avoids failing pools
            # By default a second, in which a new pool is healthy for the admin port, and not for the workers.
            # With 0, each of thousands of pools that change together would cost every worker an update.
            "update_merge_window": f"{MERGE_S}s",
        },
        "typed_extension_protocol_options": _protocol(
            common_http_protocol_options=idle,  # below the keep-alive timeouts of servers
            explicit_http_config=protocol.http_config(),
        ),
        **protocol.transport(),
        **(_followed_pools(admin) if pools is None else _fixed_pools(name, pools, weights)),
    }


def _followed_pools(admin: AdminAddress) -> Json:
    """Follow the picker's pools. A removed pool leaves at once, even if it is healthy; its sessions continue."""
    back_off = {"base_interval": "0.1s", "max_interval": "1s"}
    service = picker_service(admin)
    service["envoy_grpc"]["retry_policy"] = {"retry_back_off": back_off}
    source = {"api_type": "GRPC", "transport_api_version": "V3", "grpc_services": [service]}
    return {
        "type": "EDS",
        "ignore_health_on_host_removal": True,
        "eds_cluster_config": {
            "eds_config": {
                "resource_api_version": "V3",
                "initial_fetch_timeout": "0s",  # without pools there is nothing to serve
                "api_config_source": source,
            }
        },
    }


def _pool_check(protocol: PoolProtocol) -> Json:
    """Mark a pool as failing after two failed checks in a row: within 1 s if it is dead, 1.7 s if it hangs."""
    doubt = {"unhealthy_edge_interval": "0.1s", "unhealthy_threshold": 2, "healthy_threshold": 1}
    return {**_check_every("0.4s"), "timeout": "0.6s", **doubt, **protocol.health_check()}


def _override_host_policy() -> Json:
    """Send to the picked pool, else use Envoy's least-request policy. Tell the picker which pool served.

    If no pool is healthy, least-request chooses among all of them: the checks may be wrong. It would choose
    draining pools too, so it only gets the subset of the open ones. If that is empty, clients get 503.
    """
    kind = f"{EXTENSIONS}.load_balancing_policies"
    least = typed("least-request", f"{kind}.least_request.v3.LeastRequest")
    fallback = typed(
        "subset",
        f"{kind}.subset.v3.Subset",
        fallback_policy="DEFAULT_SUBSET",
        default_subset=OPEN,
        subset_lb_policy={"policies": [{"typed_extension_config": least}]},
    )
    override = typed(
        "override-host",
        f"{kind}.override_host.v3.OverrideHost",
        override_host_sources=[{"metadata": _metadata_key(PICKED)}],
        selected_host_key=_metadata_key(SERVED),
        fallback_policy={"policies": [{"typed_extension_config": fallback}]},
    )
    return {"policies": [{"typed_extension_config": override}]}


def _metadata_key(name: str) -> Json:
    return {"key": NAMESPACE, "path": [{"key": name}]}


def picker_cluster(picker: Address, admin: AdminAddress, authorities: Path | None = None) -> Json:
    """Describe the picker. It is checked four times per second, so that sessions do not wait for a dead one.

    With `authorities`, a file, Envoy speaks TLS to it.
    """
    announced = {"header": {"key": ANNOUNCEMENT, "value": announcement(admin)}}
    check = {
        **_check_every("0.25s"),
        "timeout": "1s",
        "unhealthy_threshold": 1,
        "healthy_threshold": 1,
        "grpc_health_check": {"initial_metadata": [announced]},
    }
    return {
        "name": PICKER,
        "connect_timeout": "0.25s",
        "circuit_breakers": _circuit_breakers(),
        "upstream_connection_options": {"tcp_keepalive": KEEPALIVE},
        "health_checks": [check],
        "common_lb_config": {"healthy_panic_threshold": {"value": 0}},
        "typed_extension_protocol_options": _protocol(
            explicit_http_config={"http2_protocol_options": {"max_concurrent_streams": MAX_CONNECTIONS}}
        ),
        **({} if authorities is None else picker_tls(picker, authorities)),
        **_fixed(PICKER, [picker]),
    }


def _fixed_pools(cluster: str, pools: Sequence[Address], weights: Sequence[float]) -> Json:
    """Describe fixed pools. Each has its host as it was given: its certificate must be for that."""
    described = _fixed(cluster, [*map(resolve, pools)], weights)
    [locality] = described["load_assignment"]["endpoints"]
    for pool, endpoint in zip(pools, locality["lb_endpoints"], strict=True):
        endpoint["endpoint"]["hostname"] = pool.host
    return described


def _fixed(cluster: str, addresses: Sequence[Address], weights: Sequence[float] = ()) -> Json:
    """Describe fixed endpoints. A name resolves to one address at a time (LOGICAL_DNS): there is one picker."""
    by_number = all(is_ip(address.host) for address in addresses)
    kind = {"type": "STATIC"} if by_number else {"type": "LOGICAL_DNS", "dns_lookup_family": "V4_PREFERRED"}
    metadata = {"filter_metadata": {NAMESPACE: OPEN}}
    endpoints: list[Json] = [
        {"endpoint": {"address": socket_address(address)}, "metadata": metadata} for address in addresses
    ]
    for endpoint, weight in zip(endpoints, endpoint_weights(weights), strict=False):  # without weights: none
        if weight is not None:
            endpoint["load_balancing_weight"] = weight
    return {**kind, "load_assignment": {"cluster_name": cluster, "endpoints": [{"lb_endpoints": endpoints}]}}


def _check_every(interval: str) -> Json:
    """Set all check intervals: by default Envoy checks a cluster without traffic once per minute."""
    names = (
        "interval",
        "no_traffic_interval",
        "unhealthy_interval",
        "unhealthy_edge_interval",
        "healthy_edge_interval",
    )
    return dict.fromkeys(names, interval)


def _circuit_breakers(**limits: int) -> Json:
    names = ("max_connections", "max_pending_requests", "max_requests", "max_retries")
    return {"thresholds": [dict.fromkeys(names, MAX_CONNECTIONS) | limits]}


def _protocol(**options: object) -> Json:
    name = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    return {name: {"@type": f"type.googleapis.com/{name}", **options}}


def typed(name: str, kind: str, **fields: object) -> Json:
    """Wrap an extension of Envoy in its typed config."""
    return {"name": name, "typed_config": {"@type": kind, **fields}}


def socket_address(address: Address) -> Json:
    """Describe an IP address and a port. The address :: accepts IPv4 too."""
    both = {"ipv4_compat": True} if address.host == "::" else {}
    return {"socket_address": {"address": address.host, "port_value": address.port, **both}}
