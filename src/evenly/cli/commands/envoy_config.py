"""`evenly envoy-config`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenly.cli import live_options
from evenly.cli.options import file_path
from evenly.errors import InputError
from evenly.inputs import shown

if TYPE_CHECKING:
    from evenly.live.addresses import WeightedPool

EXAMPLE = "Example: evenly envoy-config --picker 10.0.0.5:4000 --listen 0.0.0.0:8080 --envoy-admin 10.0.0.6:9901"


def command(
    picker: Annotated[str, typer.Option(help="Address of the picker.", show_default=False, metavar="HOST:PORT")],
    listen: Annotated[
        str, typer.Option(help="Accept clients at this address.", show_default=False, metavar="HOST:PORT")
    ],
    pool: Annotated[
        list[str] | None,
        typer.Option(
            help="Server pool; repeat the option for each. Without any, Envoy follows the picker's list.",
            show_default=False,
            metavar="[SCHEME://]HOST:PORT[=WEIGHT]",
        ),
    ] = None,
    pool_protocol: Annotated[
        str | None,
        typer.Option(
            help="What the pools of the picker's list speak: http, https, h2 or h2s (default: http).",
            show_default=False,
            metavar="SCHEME",
        ),
    ] = None,
    envoy_admin: Annotated[
        str,
        typer.Option(
            help="Envoy's own admin address, which the picker must be able to reach.", metavar="HOST:PORT"
        ),
    ] = "127.0.0.1:9901",
    health_path: live_options.HealthPath = None,
    sticky: live_options.Sticky = None,
    health_grpc: live_options.HealthGrpc = None,
    tls_cert: live_options.EnvoyTlsCert = None,
    tls_key: live_options.TlsKey = None,
    pool_ca: live_options.EnvoyPoolCa = None,
    pool_cert: live_options.PoolCert = None,
    pool_key: live_options.PoolKey = None,
    pool_sni: live_options.PoolSni = None,
    picker_ca: Annotated[
        Path | None,
        typer.Option(
            help="Speak TLS to the picker, and trust these authorities for its certificate, in PEM.",
            show_default=False,
            metavar="FILE",
            parser=file_path,
            rich_help_panel="TLS",
        ),
    ] = None,
    open_files: live_options.OpenFiles = None,
    memory_mib: live_options.MemoryMib = None,
) -> None:
    """Print a config for an Envoy that uses a picker, as JSON for `envoy -c`.

    Files are those of Envoy's machine. Envoy reads certificates when it starts.
    """
    import json

    from evenly.live.addresses import (
        check_distinct,
        check_no_loop,
        check_path,
        check_pools,
        check_weights,
        parse_address,
    )
    from evenly.live.envoy.bootstrap import envoy_config
    from evenly.live.envoy.limits import read_limits
    from evenly.live.envoy.pool_protocol import read_protocol
    from evenly.live.envoy.transport import Secrets, listener_tls
    from evenly.live.sticky_rule import parse_sticky
    from evenly.live.tls import pair_of

    listening = {"listen": listen, "envoy-admin": envoy_admin}
    addresses = {name: parse_address(text, listening=True) for name, text in listening.items()}
    picker_address, given = parse_address(picker), [_fixed_pool(text) for text in pool or []]
    pools, weights = [each.address for each in given], [each.weight for each in given]
    if picker_address.port == 0:
        raise InputError("The port of the picker must be from 1 to 65535, not 0.")
    if picker_address.host in ("0.0.0.0", "::"):
        raise InputError(f"picker must be an address that Envoy can connect to, not {picker_address}.")
    check_pools(pools)
    check_weights(weights)
    check_distinct(addresses)
    check_no_loop(addresses["listen"], pools)
    tls = pair_of(tls_cert, tls_key)
    config = envoy_config(
        listen=addresses["listen"],
        picker=picker_address,
        pools=pools or None,
        weights=weights,
        admin=addresses["envoy-admin"],
        protocol=read_protocol(
            given,
            pool_protocol,
            health_path=None if health_path is None else check_path(health_path),
            health_grpc=health_grpc,
            authorities=pool_ca,
            pair=pair_of(pool_cert, pool_key, "pool"),
            sni=pool_sni,
        ),
        tls=None if tls is None else listener_tls(tls, Secrets()),
        picker_authorities=picker_ca,
        sticky=None if sticky is None else parse_sticky(sticky),
        limits=read_limits(open_files=open_files, memory_mib=memory_mib, pools=len(pools)),
    )
    if addresses["envoy-admin"].loopback and not picker_address.loopback:
        typer.echo(
            f"evenly: A picker on another machine cannot reach --envoy-admin {envoy_admin}, so it knows "
            "neither the health of the pools nor sessions that it did not pick.",
            err=True,
        )
    typer.echo(json.dumps(config, indent=2))


def _fixed_pool(text: str) -> WeightedPool:
    """Read a pool. Pools that DNS lists change, and only the picker follows them."""
    from evenly.live.pool_source import PoolSource, parse_pool_or_source

    pool = parse_pool_or_source(text)
    if isinstance(pool, PoolSource):
        raise InputError(
            f"envoy-config takes fixed addresses only: leave out --pool {shown(text)}, and Envoy follows the list "
            "of the picker, which looks the name up."
        )
    return pool
