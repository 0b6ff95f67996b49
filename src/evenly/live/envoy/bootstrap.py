"""The config of an Envoy whose sessions a picker places, as the plain dicts that `envoy -c` takes in JSON.

What must not change, and why:

- `response_trailer_mode` SEND, bodies NONE: only then does the picker's stream live as long as the session, and
  the stream's end is how the picker learns of the session's.
- `override_host` reads metadata, which a picker alone can set, and never the header, which a client can forge.
- The circuit breakers stand far above their default of 1024, past which Envoy would leave the picker out silently.
- Nothing that is merely quiet is cut off. A peer that vanished is found by TCP keep-alive, and its session ends.
"""

from __future__ import annotations

import ipaddress
from base64 import b64encode
from collections.abc import Sequence

from evenly.errors import InputError
from evenly.live.addresses import Address, resolve
from evenly.live.envoy.bootstrap_clusters import (
    EXTENSIONS,
    KEEPALIVE,
    MOST_CONNECTIONS,
    Json,
    picker_cluster,
    picker_service,
    pools_cluster,
    socket_address,
    typed,
)
from evenly.live.envoy.names import CLUSTER, NAMESPACE

_LARGEST_RETRIED = 2**20  # bytes of a request's body that are kept for another try
STAT_PREFIX = "gateway"  # of the listener's statistics


def envoy_config(
    *,
    listen: Address,
    picker: Address,
    pools: Sequence[Address] | None,
    admin: Address,
    health_path: str | None,
    connections: int = MOST_CONNECTIONS,
) -> Json:
    """The bootstrap of an Envoy that listens, asks the picker, and forwards to pools.

    Without pools it learns them from the picker, and follows when they change. A TCP connection checks a pool,
    or a GET of the health path. `admin` is announced to the picker, which reads the open sessions there.
    Clients beyond `connections` are turned away.
    """
    admin = _reachable(resolve(admin))
    return {
        "node": {"id": f"evenly-{admin}", "cluster": "evenly"},
        "admin": _admin(admin),
        "overload_manager": {"resource_monitors": [_connection_limit(connections)]},
        "static_resources": {
            "listeners": [_listener(resolve(listen), admin)],
            "clusters": [pools_cluster(pools, admin, health_path), picker_cluster(picker, admin)],
        },
    }


def _reachable(admin: Address) -> Address:
    if ipaddress.ip_address(admin.host).is_unspecified or admin.port == 0:
        raise InputError(
            f"The picker reads Envoy's admin port at the address given, so {admin} must name a host and a port."
        )
    return admin


def _admin(admin: Address) -> Json:
    """Envoy's admin port, which can stop Envoy: others than this machine may only read what the picker reads."""
    limits = {} if admin.loopback else {"allow_paths": [{"prefix": path} for path in ("/clusters", "/ready")]}
    return {"address": socket_address(admin), "ignore_global_conn_limit": True, **limits}


def _connection_limit(connections: int) -> Json:
    kind = f"{EXTENSIONS}.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig"
    return typed(
        "envoy.resource_monitors.global_downstream_max_connections",
        kind,
        max_active_downstream_connections=connections,
    )


def _listener(listen: Address, admin: Address) -> Json:
    """A second Envoy on the same port must fail, not share it: no reuse_port; the workers balance by a lock."""
    return {
        "name": "sessions",
        "address": socket_address(listen),
        "enable_reuse_port": False,
        "connection_balance_config": {"exact_balance": {}},
        "tcp_keepalive": KEEPALIVE,
        "per_connection_buffer_limit_bytes": 2**16,
        "filter_chains": [{"filters": [_connection_manager(admin)]}],
    }


def _connection_manager(admin: Address) -> Json:
    return typed(
        "http",
        f"{EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix=STAT_PREFIX,
        codec_type="AUTO",
        use_remote_address=True,  # pools learn the client's address from x-forwarded-for
        upgrade_configs=[{"upgrade_type": "websocket"}],
        http2_protocol_options={
            "allow_connect": True,  # WebSocket over HTTP/2
            "initial_stream_window_size": 2**16,
            "initial_connection_window_size": 2**20,
        },
        request_headers_timeout="10s",  # not of a session, which has begun when its headers are there
        stream_idle_timeout="0s",
        delayed_close_timeout="0.2s",  # a WebSocket's client waits for it after the last word
        route_config={"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": _routes()}]},
        http_filters=[_ask_picker(admin), typed("router", f"{EXTENSIONS}.filters.http.router.v3.Router")],
    )


def _routes() -> list[Json]:
    """Every request goes to the pools. A WebSocket over HTTP/2 has no key; the pool's HTTP/1.1 asks for one."""
    upgrade = {"name": "upgrade", "string_match": {"exact": "websocket", "ignore_case": True}}
    without_key = {"name": "sec-websocket-key", "present_match": False}
    key = {"header": {"key": "sec-websocket-key", "value": b64encode(b"a key's 16 bytes").decode()}}
    to_pool = {"route": _forward(), "request_body_buffer_limit": _LARGEST_RETRIED}
    return [
        {"match": {"prefix": "/", "headers": [upgrade, without_key]}, "request_headers_to_add": [key], **to_pool},
        {"match": {"prefix": "/"}, **to_pool},
    ]


def _forward() -> Json:
    """A pool that just died costs no session, because another one is tried."""
    other_pool = typed(
        "envoy.retry_host_predicates.previous_hosts",
        f"{EXTENSIONS}.retry.host.previous_hosts.v3.PreviousHostsPredicate",
    )
    retries = {
        "retry_on": "connect-failure,refused-stream,reset-before-request",
        "num_retries": 2,
        "retry_host_predicate": [other_pool],
        "host_selection_retry_max_attempts": 100,  # few pools: the fallback likes the dead one, which is empty
    }
    return {"cluster": CLUSTER, "timeout": "0s", "retry_policy": retries}


def _ask_picker(admin: Address) -> Json:
    """The filter that asks for a pool, and whose stream to the picker lives as long as the session.

    Without the picker, or when it is late, the session goes on through the fallback of the pools' cluster.
    """
    return typed(
        "picker",
        f"{EXTENSIONS}.filters.http.ext_proc.v3.ExternalProcessor",
        grpc_service=picker_service(admin) | {"timeout": "0s"},
        failure_mode_allow=True,
        message_timeout="1s",  # in a burst, Envoy itself is too busy to read an answer that came in time
        processing_mode={
            "request_header_mode": "SEND",
            "response_header_mode": "SEND",
            "request_body_mode": "NONE",
            "response_body_mode": "NONE",
            "request_trailer_mode": "SKIP",
            "response_trailer_mode": "SEND",
        },
        metadata_options={
            "receiving_namespaces": {"untyped": [NAMESPACE]},
            "forwarding_namespaces": {"untyped": [NAMESPACE]},
        },
        forward_rules={
            "allowed_headers": {"patterns": [{"exact": ":method"}]}
        },  # the rest is none of its business
    )
