"""`evenly gateway`."""

from __future__ import annotations

import typer

from evenly.cli import live_options

EXAMPLE = "Example: evenly gateway --listen 127.0.0.1:8080 --pool 127.0.0.1:9001 --pool 127.0.0.1:9002"


def command(
    listen: live_options.Listen = None,
    pool: live_options.Pool = None,
    resolver: live_options.Resolver = None,
    policy: live_options.LivePolicy = None,
    alpha: live_options.Alpha = None,
    load_max: live_options.LoadMax = None,
    sample_size: live_options.SampleSize = None,
    admin: live_options.Admin = None,
    admin_token_file: live_options.AdminTokenFile = None,
    health_path: live_options.HealthPath = None,
    health_grpc: live_options.HealthGrpc = None,
    tls_cert: live_options.TlsCert = None,
    tls_key: live_options.TlsKey = None,
    admin_tls_cert: live_options.AdminTlsCert = None,
    admin_tls_key: live_options.AdminTlsKey = None,
    pool_ca: live_options.PoolCa = None,
    pool_cert: live_options.PoolCert = None,
    pool_key: live_options.PoolKey = None,
    pool_sni: live_options.PoolSni = None,
    slow_start: live_options.SlowStart = None,
    drain_timeout: live_options.DrainTimeout = None,
    sticky: live_options.Sticky = None,
    sticky_margin: live_options.StickyMargin = None,
    sticky_key_file: live_options.StickyKeyFile = None,
    store: live_options.Store = None,
    fleet: live_options.Fleet = None,
    record: live_options.Record = None,
    take_over: live_options.TakeOver = None,
    config: live_options.Config = None,
    state_file: live_options.GatewayStateFile = None,
    ready_json: live_options.ReadyJson = False,
) -> None:
    """Balance sessions over server pools: run Envoy and a picker, and keep both running.

    Serves HTTP/1.1, HTTP/2, gRPC, WebSocket and server-sent events. SIGTERM or Ctrl-C lets open sessions finish
    first.
    """
    given = {
        name: value
        for name, value in locals().items()
        if value is not None and name not in ("config", "state_file", "ready_json")
    }

    from evenly.live.gateway.supervisor import run
    from evenly.live.settings import read_settings

    settings = read_settings(given, config)
    raise typer.Exit(run(settings, given, config, state_file=state_file, ready_json=ready_json))
