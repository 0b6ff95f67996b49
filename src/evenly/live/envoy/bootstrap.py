"""The bootstrap config of an Envoy that uses a picker, as plain dicts for the JSON that `envoy -c` reads.

What must not change, and why:

- `response_trailer_mode` SEND, bodies NONE: only then does the picker's stream live as long as the session. The
  end of the stream tells the picker that the session has ended.
- `override_host` reads metadata, which only the picker can set, and never the header, which a client can forge.
- The responses of Envoy itself bypass the picker. It would hold them too long, and clients would get nothing.
- A request that a pool may have processed is sent again only if its method is safe. All others travel on a new
  connection, since a pool may close an idle one at any time. They have a cluster of their own, in which each
  connection carries one request. A connection pool per request would not do: Envoy opens the first connection of a
  pool whatever the limit, and a client that resets its requests leaves them behind, until Envoy is out of files.
- The circuit breakers of the picker are far above their default of 1024. Beyond that Envoy would silently skip it.
- The circuit breakers of the pools keep Envoy within its open files: `limits.py` derives them.
- Idle sessions are never cut off. TCP keep-alive detects peers that have vanished, and their sessions end.
"""

from __future__ import annotations

import ipaddress
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

from evenly.errors import InputError
from evenly.live.addresses import Address, resolve
from evenly.live.envoy.admin_address import SOCKET_MODE, AdminAddress, AdminSocket, announcement
from evenly.live.envoy.bootstrap_clusters import (
    EXTENSIONS,
    KEEPALIVE,
    Json,
    picker_cluster,
    picker_service,
    pools_cluster,
    socket_address,
    typed,
)
from evenly.live.envoy.bootstrap_replies import answer_to_ping, except_local_replies
from evenly.live.envoy.limits import MAX_STREAMS, Limits, derive_limits
from evenly.live.envoy.names import CLUSTER, NAMESPACE, ONCE, PICKER, SUBSET_NAMESPACE
from evenly.live.envoy.overload import overload_manager
from evenly.live.envoy.pool_protocol import PoolProtocol
from evenly.live.sticky_rule import StickyRule

_NOT_SENT = "connect-failure,refused-stream,reset-before-request"  # no pool can have processed the request
STAT_PREFIX = "gateway"  # of the listener's statistics
_FIRST_BYTES_TIMEOUT = "5s"  # for the request line of a new connection, or the preface of HTTP/2
# What the picker and operators read. Envoy compares the path with its query, and POST /stats/recentlookups/...
# would change something.
_READABLE = (
    *({"prefix": path} for path in ("/clusters", "/ready", "/stats?", "/stats/prometheus")),
    {"exact": "/stats"},
)


def envoy_config(
    *,
    listen: Address,
    picker: Address,
    pools: Sequence[Address] | None,
    admin: AdminAddress,
    health_path: str | None = None,
    protocol: PoolProtocol | None = None,
    tls: Json | None = None,
    picker_authorities: Path | None = None,
    limits: Limits | None = None,
    weights: Sequence[float] = (),
    sticky: StickyRule | None = None,
) -> Json:
    """Return the bootstrap of an Envoy that listens, asks the picker, and forwards to pools.

    Without `pools` it follows the picker's list (EDS). `weights` are those of the pools, in the same order, for
    Envoy's own policy; by default they are equal. `protocol` is what they speak; without it, that is
    HTTP/1.1, and health checks send a GET of `health_path`. `tls` is what
    `listener_tls` returns, if clients speak TLS. With `picker_authorities`, a file, the picker does. `admin` is
    announced to the picker, which reads the open sessions there. Envoy refuses what is beyond the `limits`, by
    default those of a machine with 65,536 open files and 4 GiB of memory. With `sticky`, the picker sees where
    clients were before.
    """
    admin = admin if isinstance(admin, AdminSocket) else _reachable(resolve(admin))
    limits = limits or derive_limits()
    protocol = protocol or PoolProtocol(health_path=health_path)
    return {
        "node": {"id": f"evenly-{announcement(admin)}", "cluster": "evenly"},
        "admin": _admin(admin),
        "overload_manager": overload_manager(limits),
        "static_resources": {
            "listeners": [_listener(resolve(listen), admin, limits, protocol, tls, sticky)],
            "clusters": [
                *(
                    pools_cluster(pools, admin, protocol, limits, weights=weights, once=once)
                    for once in ((False,) if protocol.http2 else (False, True))
                ),
                picker_cluster(picker, admin, picker_authorities),
            ],
        },
    }


def _reachable(admin: Address) -> Address:
    if ipaddress.ip_address(admin.host).is_unspecified or admin.port == 0:
        raise InputError(
            f"The picker reads Envoy's admin port at this address, so {admin} must name a host and a port."
        )
    return admin


def _admin(admin: AdminAddress) -> Json:
    """Describe Envoy's admin interface. It can stop Envoy, and a port has no owner: every local user can open it.

    So only reading is allowed.
    """
    address = _admin_socket(admin) if isinstance(admin, AdminSocket) else socket_address(admin)
    return {"address": address, "ignore_global_conn_limit": True, "allow_paths": [*_READABLE]}


def _admin_socket(admin: AdminSocket) -> Json:
    return {"pipe": {"path": str(admin.path), "mode": SOCKET_MODE}}


def _listener(
    listen: Address,
    admin: AdminAddress,
    limits: Limits,
    protocol: PoolProtocol,
    tls: Json | None,
    sticky: StickyRule | None,
) -> Json:
    """Describe the listener. Without reuse_port a second Envoy on the port fails instead of sharing it, and the
    workers balance connections by a lock.
    """
    return {
        "name": "sessions",
        "address": socket_address(listen),
        "enable_reuse_port": False,
        "connection_balance_config": {"exact_balance": {}},
        "tcp_keepalive": KEEPALIVE,
        "per_connection_buffer_limit_bytes": 2**16,
        "listener_filters": [_await_request() if tls is None else _await_hello()],
        "listener_filters_timeout": _FIRST_BYTES_TIMEOUT,
        "filter_chains": [
            {
                "filters": [_connection_manager(admin, limits, protocol, sticky)],
                **(tls or {}),
            }
        ],
    }


def _await_request() -> Json:
    """Describe the filter that recognizes HTTP. It makes Envoy close clients that send no request line in time."""
    kind = f"{EXTENSIONS}.filters.listener.http_inspector.v3.HttpInspector"
    return typed("envoy.filters.listener.http_inspector", kind)


def _await_hello() -> Json:
    """Describe the filter that recognizes TLS. It makes Envoy close clients that do not begin it in time."""
    kind = f"{EXTENSIONS}.filters.listener.tls_inspector.v3.TlsInspector"
    return typed("envoy.filters.listener.tls_inspector", kind)


def _connection_manager(
    admin: AdminAddress, limits: Limits, protocol: PoolProtocol, sticky: StickyRule | None
) -> Json:
    return typed(
        "http",
        f"{EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix=STAT_PREFIX,
        codec_type="AUTO",
        use_remote_address=True,  # pools learn the client's address from x-forwarded-for
        upgrade_configs=[{"upgrade_type": "websocket"}],
        http2_protocol_options={
            "allow_connect": True,  # WebSocket over HTTP/2
            "max_concurrent_streams": MAX_STREAMS,
            "initial_stream_window_size": 2**16,
            "initial_connection_window_size": 2**20,
        },
        request_headers_timeout="10s",  # does not limit sessions: they begin after the headers
        stream_idle_timeout="0s",
        common_http_protocol_options={"idle_timeout": "900s"},  # without a request; shorter if clients are many
        delayed_close_timeout="0.2s",  # a WebSocket client waits this long after the close frame
        http_protocol_options={
            "accept_http_10": True,
            "default_host_for_http_10": "localhost",  # HTTP/1.1 of the pool requires one
        },
        proxy_100_continue=True,  # a pool can reject a body before the client sends it
        local_reply_config={"mappers": [answer_to_ping()]},
        route_config={"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": _routes(limits, protocol)}]},
        http_filters=[
            except_local_replies(_ask_picker(admin, sticky)),
            typed("router", f"{EXTENSIONS}.filters.http.router.v3.Router"),
        ],
    )


def _routes(limits: Limits, protocol: PoolProtocol) -> list[Json]:
    """Send every request to the pools. WebSocket over HTTP/2 has no key, but HTTP/1.1 of the pool requires one.

    A pool may close an idle connection at the moment in which a request goes out on it. Envoy cannot tell whether
    the pool has read the request. Requests with a safe method are sent again. All others might do harm, so each
    of them gets a new connection, which no pool closes before the request. Over HTTP/2, a pool that closes a
    connection names the last request that it has read, so all requests share connections.
    """
    safe = {"name": ":method", "string_match": {"safe_regex": {"regex": "GET|HEAD|OPTIONS"}}}
    upgrade = {"name": "upgrade", "string_match": {"exact": "websocket", "ignore_case": True}}
    without_key = {"name": "sec-websocket-key", "present_match": False}
    key = _set_header("sec-websocket-key", b64encode(b"a key's 16 bytes").decode())
    close = _set_header("connection", "close")  # else the new connection would stay open, unused
    body = {"request_body_buffer_limit": limits.retry_body}
    again = {"route": _forward(CLUSTER, f"{_NOT_SENT},reset"), **body}
    if protocol.http2:
        shared = {"route": _forward(CLUSTER, _NOT_SENT), **body}
        return [{"match": {"prefix": "/", "headers": [safe]}, **again}, {"match": {"prefix": "/"}, **shared}]
    once = {"route": _forward(ONCE, _NOT_SENT), **body}
    return [
        {
            "match": {"prefix": "/", "headers": [safe, upgrade, without_key]},
            "request_headers_to_add": [key],
            **again,
        },
        {"match": {"prefix": "/", "headers": [safe]}, **again},
        {"match": {"prefix": "/"}, "request_headers_to_add": [close], **once},
    ]


def _set_header(name: str, value: str) -> Json:
    return {"header": {"key": name, "value": value}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}


def _forward(cluster: str, retry_on: str) -> Json:
    """Retry at another pool, so that a pool that has just died costs no session."""
    other_pool = typed(
        "envoy.retry_host_predicates.previous_hosts",
        f"{EXTENSIONS}.retry.host.previous_hosts.v3.PreviousHostsPredicate",
    )
    retries = {
        "retry_on": retry_on,
        "num_retries": 2,
        "retry_host_predicate": [other_pool],
        "host_selection_retry_max_attempts": 100,  # the fallback prefers the dead pool, since it is empty
    }
    return {"cluster": cluster, "timeout": "0s", "retry_policy": retries}


def _ask_picker(admin: AdminAddress, sticky: StickyRule | None) -> Json:
    """Describe the filter that asks the picker for a pool. Its stream lives as long as the session.

    If the picker is down or late, the fallback policy of the pools' cluster places the session. The picker sees no
    headers but the method, and with sticky sessions the one that shows the client's pool, and the scheme: cookies
    of clients that use TLS are marked as secure.
    """
    seen = [":method"] if sticky is None else [":method", ":scheme", sticky.header]
    return typed(
        PICKER,
        f"{EXTENSIONS}.filters.http.ext_proc.v3.ExternalProcessor",
        grpc_service=picker_service(admin) | {"timeout": "0s"},
        failure_mode_allow=True,
        message_timeout="1s",  # generous: in a burst Envoy itself is late to read a response
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
            "forwarding_namespaces": {"untyped": [NAMESPACE, SUBSET_NAMESPACE]},
        },
        forward_rules={"allowed_headers": {"patterns": [{"exact": name} for name in seen]}},
    )
