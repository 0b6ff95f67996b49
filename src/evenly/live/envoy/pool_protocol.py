"""What Envoy speaks to the pools, and how it finds out that a pool does not speak it.

`bootstrap.py` lists what must not change, and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evenly.errors import InputError
from evenly.inputs import shown
from evenly.live.addresses import WeightedPool, common_protocol
from evenly.live.envoy.transport import PoolTls, Secrets, pools_tls
from evenly.live.pool_options import check_names, check_pool_options, check_service, check_sni
from evenly.live.pool_scheme import PROTOCOLS, is_http2, is_tls
from evenly.live.tls import KeyPair

_WINDOWS = {"initial_stream_window_size": 2**16, "initial_connection_window_size": 2**20}  # bytes
_ANY_STATUS = [{"start": 100, "end": 600}]
# Servers of gRPC answer no other requests. They do not have this method, and other servers do not have this path.
_AS_GRPC = [("content-type", "application/grpc"), ("te", "trailers")]
_NO_METHOD = "/evenly.Check/Check"

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolProtocol:
    """The protocol of the pools, one of `pool_scheme.PROTOCOLS`, and their health checks.

    A check sends a GET of `health_path`, or asks gRPC's health service about `health_grpc`, which is the whole
    server if empty. Without either, a check finds out whether the pool speaks the protocol. Of HTTP/1.1 without
    TLS, it only finds out whether the pool accepts connections: a request would fill the logs of servers for
    WebSocket, which take it for a broken handshake. The picker looks for other protocols there.
    """

    name: str = "http"
    health_path: str | None = None
    health_grpc: str | None = None
    tls: PoolTls | None = None
    secrets: Secrets = field(default_factory=Secrets)

    @property
    def http2(self) -> bool:
        """Whether pools speak HTTP/2. Then many requests share a connection."""
        return is_http2(self.name)

    def health_check(self) -> Json:
        """Describe the health check, without its times."""
        codec = {"codec_client_type": "HTTP2" if self.http2 else "HTTP1"}
        if self.health_grpc is not None:
            return {"grpc_health_check": {"service_name": self.health_grpc}}
        if self.health_path is not None:
            return {"http_health_check": {"path": self.health_path, **codec}}
        if self.http2:
            asked = {"method": "POST", "path": _NO_METHOD, "request_headers_to_add": [*map(_header, _AS_GRPC)]}
            return {"http_health_check": {**asked, "expected_statuses": _ANY_STATUS, **codec}}
        if self.name == "https":
            return {"http_health_check": {"path": "/", "expected_statuses": _ANY_STATUS, **codec}}
        return {"tcp_health_check": {}}

    def http_config(self) -> Json:
        """Describe HTTP/1.1 or HTTP/2."""
        if self.http2:
            return {"http2_protocol_options": {"allow_connect": True, **_WINDOWS}}
        return {"http_protocol_options": {}}

    def transport(self) -> Json:
        """Describe TLS, if pools speak it."""
        return {} if self.tls is None else pools_tls(self.name, self.tls, self.secrets)


def read_protocol(
    pools: Sequence[WeightedPool],
    followed: str | None,
    *,
    health_path: str | None,
    health_grpc: str | None,
    authorities: Path | None,
    pair: KeyPair | None,
    sni: str | None,
) -> PoolProtocol:
    """Read the options of an Envoy elsewhere, whose files are there. `followed` is for the pools of a picker."""
    if pools and followed is not None:
        raise InputError("Give pool-protocol only without --pool; with it, write the scheme there.")
    if followed is not None and followed not in PROTOCOLS:
        raise InputError(f"pool-protocol must be one of {', '.join(PROTOCOLS)}, not {shown(followed)}.")
    name = followed or common_protocol(pool.scheme for pool in pools)
    check_pool_options(
        name,
        {"pool-ca": authorities, "pool-cert": pair, "pool-sni": sni}
        | {"health-grpc": health_grpc, "health-path": health_path},
    )
    sni, health_grpc = check_sni(sni), check_service(health_grpc)
    check_names(pools, sni)
    tls = None
    if is_tls(name):
        if authorities is None:
            raise InputError(f"Pools with {name}:// need --pool-ca, the authorities that Envoy must trust.")
        tls = PoolTls(authorities=authorities, pair=pair, sni=sni)
    return PoolProtocol(name=name, health_path=health_path, health_grpc=health_grpc, tls=tls)


def _header(field_: tuple[str, str]) -> Json:
    name, value = field_
    return {"header": {"key": name, "value": value}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
