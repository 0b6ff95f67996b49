"""`evenly gateway`."""

from __future__ import annotations

import typer

from evenly.cli import live_options

EXAMPLE = "Example: evenly gateway --listen 127.0.0.1:8080 --pool 127.0.0.1:9001 --pool 127.0.0.1:9002"


def command(
    listen: live_options.Listen = None,
    pool: live_options.Pool = None,
    policy: live_options.LivePolicy = None,
    alpha: live_options.Alpha = None,
    load_max: live_options.LoadMax = None,
    choices: live_options.Choices = None,
    admin: live_options.Admin = None,
    admin_token_file: live_options.AdminTokenFile = None,
    health_path: live_options.HealthPath = None,
    slow_start: live_options.SlowStart = None,
    drain: live_options.Drain = None,
    config: live_options.Config = None,
) -> None:
    """Put Envoy and a picker in front of server pools, and keep both running.

    Serves HTTP/1.1, HTTP/2, WebSocket and server-sent events. SIGTERM or Ctrl-C lets open sessions end first.
    """
    given = {name: value for name, value in locals().items() if value is not None and name != "config"}

    from evenly.live.gateway.supervisor import run
    from evenly.live.settings import read_settings

    raise typer.Exit(run(read_settings(given, config), given, config))
