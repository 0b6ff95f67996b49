"""`evenly envoy-config`."""

from __future__ import annotations

from typing import Annotated

import typer

from evenly.cli import live_options
from evenly.errors import InputError

EXAMPLE = "Example: evenly envoy-config --picker 10.0.0.5:4000 --listen 0.0.0.0:8080 --envoy-admin 10.0.0.6:9901"


def command(
    picker: Annotated[
        str, typer.Option(help="Where the picker listens.", show_default=False, metavar="HOST:PORT")
    ],
    listen: Annotated[str, typer.Option(help="Where clients come in.", show_default=False, metavar="HOST:PORT")],
    pool: Annotated[
        list[str] | None,
        typer.Option(
            help="A pool, once for each; without any, Envoy follows the picker's.",
            show_default=False,
            metavar="HOST:PORT",
        ),
    ] = None,
    envoy_admin: Annotated[
        str, typer.Option(help="Envoy's own admin port, which the picker must reach.", metavar="HOST:PORT")
    ] = "127.0.0.1:9901",
    health_path: live_options.HealthPath = None,
) -> None:
    """Print the config of an Envoy that asks a picker, as JSON that `envoy -c` takes."""
    import json

    from evenly.live.addresses import check_path, check_pools, parse_address
    from evenly.live.envoy.bootstrap import envoy_config

    asked, pools = parse_address(picker), [parse_address(address) for address in pool or []]
    if asked.port == 0:
        raise InputError("The port of the picker must be at least 1, not 0.")
    check_pools(pools)
    config = envoy_config(
        listen=parse_address(listen),
        picker=asked,
        pools=pools or None,
        admin=parse_address(envoy_admin),
        health_path=None if health_path is None else check_path(health_path),
    )
    if parse_address(envoy_admin).loopback and not asked.loopback:
        typer.echo(
            f"evenly: A picker on another machine cannot reach --envoy-admin {envoy_admin}, and so knows "
            "neither the pools' health nor sessions that it did not pick.",
            err=True,
        )
    typer.echo(json.dumps(config, indent=2))
