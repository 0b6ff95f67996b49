"""`evenly picker`."""

from __future__ import annotations

from evenly.cli import live_options

EXAMPLE = (
    "Example: evenly picker --listen 127.0.0.1:4000 --admin 127.0.0.1:4001 "
    "--pool 10.0.0.1:80 --pool 10.0.0.2:80; then print a config for your Envoy: evenly envoy-config --help"
)


def command(
    listen: live_options.PickerListen = None,
    pool: live_options.Pool = None,
    resolver: live_options.Resolver = None,
    policy: live_options.LivePolicy = None,
    alpha: live_options.Alpha = None,
    load_max: live_options.LoadMax = None,
    sample_size: live_options.SampleSize = None,
    admin: live_options.Admin = None,
    admin_token_file: live_options.AdminTokenFile = None,
    tls_cert: live_options.TlsCert = None,
    tls_key: live_options.TlsKey = None,
    admin_tls_cert: live_options.AdminTlsCert = None,
    admin_tls_key: live_options.AdminTlsKey = None,
    slow_start: live_options.SlowStart = None,
    sticky: live_options.Sticky = None,
    sticky_margin: live_options.StickyMargin = None,
    sticky_key_file: live_options.StickyKeyFile = None,
    store: live_options.Store = None,
    fleet: live_options.Fleet = None,
    record: live_options.Record = None,
    config: live_options.Config = None,
    state_file: live_options.StateFile = None,
    gateway_folder: live_options.GatewayFolder = None,
    ready_json: live_options.ReadyJson = False,
) -> None:
    """Serve picks to your own Envoys over gRPC. All of them share one set of counts."""
    given = {
        name: value
        for name, value in locals().items()
        if value is not None and name not in ("config", "state_file", "gateway_folder", "ready_json")
    }

    import asyncio

    from evenly.live.gateway_folder import GatewayFolder
    from evenly.live.picker.server import serve

    gateway = None if gateway_folder is None else GatewayFolder(gateway_folder)
    asyncio.run(serve(given, config, state_file, gateway=gateway, ready_json=ready_json))
