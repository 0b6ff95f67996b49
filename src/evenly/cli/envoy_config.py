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

    from evenly.live.addresses import parse_address
    from evenly.live.envoy.config import envoy_config

    if health_path is not None and not health_path.startswith("/"):
        raise InputError(f"--health-path must start with /, not {health_path!r}.")
    config = envoy_config(
        listen=parse_address(listen),
        picker=parse_address(picker),
        pools=[parse_address(address) for address in pool] if pool else None,
        admin=parse_address(envoy_admin),
        health_path=health_path,
    )
    typer.echo(json.dumps(config, indent=2))
