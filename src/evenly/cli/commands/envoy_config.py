"""`evenly envoy-config`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evenly.cli import live_options
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
            metavar="HOST:PORT[=WEIGHT]",
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
    open_files: live_options.OpenFiles = None,
    memory_mib: live_options.MemoryMib = None,
) -> None:
    """Print a config for an Envoy that uses a picker, as JSON for `envoy -c`."""
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
    from evenly.live.sticky_rule import parse_sticky

    addresses = {"listen": parse_address(listen), "envoy-admin": parse_address(envoy_admin)}
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
    config = envoy_config(
        listen=addresses["listen"],
        picker=picker_address,
        pools=pools or None,
        weights=weights,
        admin=addresses["envoy-admin"],
        health_path=None if health_path is None else check_path(health_path),
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
    from evenly.live.addresses import parse_pool
    from evenly.live.pool_scheme import split_scheme

    if split_scheme(text)[0].discovery:
        raise InputError(
            f"envoy-config takes fixed addresses only: leave out --pool {shown(text)}, and Envoy follows the list "
            "of the picker, which looks the name up."
        )
    return parse_pool(text)
