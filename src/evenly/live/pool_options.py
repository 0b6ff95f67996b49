"""Options of pools that only some protocols have: TLS, and health checks with gRPC's own protocol."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from evenly.errors import InputError
from evenly.inputs import shown
from evenly.live.addresses import WeightedPool, is_ip, parse_address
from evenly.live.pool_scheme import is_http2, is_tls
from evenly.live.pool_source import PoolSource

_SERVICE = re.compile(r"[!-~]{0,200}")


def check_sni(value: object) -> str | None:
    """Return a host name that can be in a certificate, or None."""
    if value is None:
        return None
    try:
        host = parse_address(f"{value}:1").host if isinstance(value, str) else ""
    except InputError:
        host = ""
    if not host or is_ip(host):
        raise InputError(f"pool-sni must be a host name such as pool.example.com, not {shown(value)}.")
    return host


def check_service(value: object) -> str | None:
    """Return the name of a gRPC service, which may be empty, or None."""
    if value is None or (isinstance(value, str) and _SERVICE.fullmatch(value)):
        return value
    raise InputError(
        f"health-grpc must be the name of a gRPC service of up to 200 ASCII characters without spaces, or empty, "
        f"not {shown(value)}."
    )


def check_pool_options(protocol: str, options: Mapping[str, object]) -> None:
    """Reject options that pools of this protocol cannot have. The keys are names of options; None is not given."""
    given = [name for name, value in options.items() if value is not None]
    for name in given:
        if name.startswith("pool-") and not is_tls(protocol):
            raise InputError(f"{name} is for pools with https:// or h2s://, not {protocol}://.")
    if "health-grpc" in given and not is_http2(protocol):
        raise InputError(f"health-grpc is for pools with h2:// or h2s://, not {protocol}://.")
    if {"health-grpc", "health-path"} <= {*given}:
        raise InputError("Give health-grpc or health-path, not both.")


def check_names(pools: Iterable[WeightedPool | PoolSource], sni: str | None) -> None:
    """Reject pools that speak TLS if there is no name that their certificates must be for."""
    for pool in pools:
        nameless = isinstance(pool, PoolSource) or is_ip(pool.address.host)
        if is_tls(pool.scheme.protocol) and sni is None and nameless:
            raise InputError(
                f"Pool {pool} needs pool-sni, the name in its certificate, because its address has none."
            )
