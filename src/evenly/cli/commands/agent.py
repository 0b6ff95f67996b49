"""`evenly agent`."""

from __future__ import annotations

from evenly.cli import fleet_options, live_options

EXAMPLE = (
    "Example: evenly agent --pool game-1 --address ws://10.0.0.5:7000 --dispatcher http://127.0.0.1:4100; "
    "then hold a connection open for each session: curl -N http://127.0.0.1:4150/session?lease=SESSION_ID"
)


def command(
    pool: fleet_options.AgentPool = None,
    address: fleet_options.AgentAddress = None,
    dispatcher: fleet_options.Dispatchers = None,
    listen: fleet_options.AgentListen = None,
    server: fleet_options.AgentServer = None,
    capacity: fleet_options.AgentCapacity = None,
    token_file: fleet_options.OwnTokenFile = None,
    ca_file: fleet_options.AgentCaFile = None,
    ready_json: live_options.ReadyJson = False,
) -> None:
    """Count the sessions of a pool for a server in any language, over a loopback HTTP API.

    GET /session is held open while a session lasts, and a killed server ends it.

    POST /begin and POST /end suit servers that cannot hold connections.

    GET /state shows the counts, POST /drain asks for no new sessions.
    """
    given = {name: value for name, value in locals().items() if value is not None and name not in ("ready_json",)}

    import asyncio

    from evenly.live.agents.sidecar.server import serve

    asyncio.run(serve(given, ready_json=ready_json))
