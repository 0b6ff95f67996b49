"""`evenly dispatcher`."""

from __future__ import annotations

from evenly.cli import live_options

EXAMPLE = (
    "Example: evenly dispatcher; then connect agents to 127.0.0.1:4100 and pick: "
    "curl -X POST http://127.0.0.1:4100/v1/sessions. The API is documented at http://127.0.0.1:4100/docs"
)


def command(
    listen: live_options.DispatcherListen = None,
    admin: live_options.FleetAdmin = None,
    admin_token_file: live_options.AdminTokenFile = None,
    alpha: live_options.Alpha = None,
    load_max: live_options.LoadMax = None,
    heartbeat: live_options.Heartbeat = None,
    lease: live_options.Lease = None,
    store: live_options.Store = None,
    fleet: live_options.FleetName = None,
    tls_cert: live_options.TlsCert = None,
    tls_key: live_options.TlsKey = None,
    agent_token_file: live_options.AgentTokenFile = None,
    client_token_file: live_options.ClientTokenFile = None,
    open_picks: live_options.OpenPicks = None,
    config: live_options.DispatcherConfig = None,
    ready_json: live_options.ReadyJson = False,
) -> None:
    """Serve picks over HTTP to any client. Agents next to the servers report their sessions."""
    given = {
        name: value
        for name, value in locals().items()
        if value is not None and name not in ("config", "ready_json")
    }

    from evenly.live.dispatcher.server import run

    run(given, config, ready_json=ready_json)
