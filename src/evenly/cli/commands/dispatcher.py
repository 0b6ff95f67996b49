"""`evenly dispatcher`."""

from __future__ import annotations

from evenly.cli import fleet_options, live_options

EXAMPLE = (
    "Example: evenly dispatcher; then connect agents to 127.0.0.1:4100 and pick: "
    "curl -X POST http://127.0.0.1:4100/v1/sessions. The API is documented at http://127.0.0.1:4100/docs"
)


def command(
    listen: fleet_options.DispatcherListen = None,
    admin: fleet_options.FleetAdmin = None,
    admin_token_file: live_options.AdminTokenFile = None,
    alpha: live_options.Alpha = None,
    load_max: live_options.LoadMax = None,
    heartbeat: fleet_options.Heartbeat = None,
    lease: fleet_options.Lease = None,
    store: fleet_options.Store = None,
    fleet: fleet_options.FleetName = None,
    record: live_options.Record = None,
    tls_cert: fleet_options.TlsCert = None,
    tls_key: fleet_options.TlsKey = None,
    agent_token_file: fleet_options.AgentTokenFile = None,
    client_token_file: fleet_options.ClientTokenFile = None,
    open_picks: fleet_options.OpenPicks = None,
    config: fleet_options.DispatcherConfig = None,
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
