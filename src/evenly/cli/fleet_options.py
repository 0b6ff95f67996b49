"""Options of `evenly dispatcher` and `evenly agent`. None means not given: a file or the default decides."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenly.cli.options import file_path, number_or_text, option, whole_number_or_text

_ADDRESSES = "Addresses"
_OPERATION = "Operation"
_SECURITY = "Security"


DispatcherListen = Annotated[
    str | None,
    option(
        _ADDRESSES,
        "Serve clients and agents over HTTP at this address; port 0 takes a free port (default: 127.0.0.1:4100).",
        "HOST:PORT",
        "--listen",
    ),
]
FleetAdmin = Annotated[
    str | None,
    option(
        _ADDRESSES,
        "Serve the admin API at this address: metrics, state, draining pools (default: a free port of 127.0.0.1).",
        "HOST:PORT",
        "--admin",
    ),
]
TlsCert = Annotated[
    Path | None,
    option(
        _SECURITY, "Certificate chain in PEM; with --tls-key, required beyond loopback.", "FILE", parser=file_path
    ),
]
TlsKey = Annotated[Path | None, option(_SECURITY, "Key of the certificate, in PEM.", "FILE", parser=file_path)]
AgentTokenFile = Annotated[
    Path | None,
    option(
        _SECURITY,
        "File with the token of agents, required beyond loopback (or set EVENLY_AGENT_TOKEN).",
        "FILE",
        parser=file_path,
    ),
]
ClientTokenFile = Annotated[
    Path | None,
    option(
        _SECURITY,
        "File with the token of clients, required beyond loopback without --open-picks "
        "(or set EVENLY_CLIENT_TOKEN).",
        "FILE",
        parser=file_path,
    ),
]
OpenPicks = Annotated[
    bool | None,
    typer.Option(
        "--open-picks",
        help="Let everyone who reaches the port pick, without a token.",
        rich_help_panel=_SECURITY,
        show_default=False,
        metavar="",
    ),
]
Heartbeat = Annotated[
    float | None,
    option(
        _OPERATION, "Seconds between two heartbeats of an agent (default: 2).", "SECONDS", parser=number_or_text
    ),
]
Lease = Annotated[
    float | None,
    option(
        _OPERATION,
        "Keep a place for a client that has not arrived for this many seconds (default: 10).",
        "SECONDS",
        parser=number_or_text,
    ),
]
Store = Annotated[
    str | None,
    option(
        _OPERATION,
        "Share tokens with other dispatchers in Valkey or Redis: redis://HOST:PORT or rediss://HOST:PORT "
        "(default: keep them in this process). Keep the password in EVENLY_STORE_PASSWORD or in the TOML file.",
        "URL",
    ),
]
FleetName = Annotated[
    str | None, option(_OPERATION, "Name of the fleet in the store (default: default).", "NAME", "--fleet")
]
DispatcherConfig = Annotated[
    Path | None,
    option(
        _OPERATION,
        "TOML file with any of these options; the command line overrides it.",
        "FILE.toml",
        "--config",
        parser=file_path,
    ),
]
AgentPool = Annotated[
    str | None, option(_ADDRESSES, "Name of this server's pool. Each pool has one agent.", "NAME", "--pool")
]
AgentAddress = Annotated[
    str | None, option(_ADDRESSES, "URL that clients of this pool are sent to.", "URL", "--address")
]
Dispatchers = Annotated[
    list[str] | None,
    option(
        _ADDRESSES,
        "URL of a dispatcher; repeat the option for each. The agent is connected to one of them at a time.",
        "URL",
        "--dispatcher",
    ),
]
AgentListen = Annotated[
    str | None,
    option(
        _ADDRESSES,
        "Serve the API at this loopback address; port 0 takes a free port (default: 127.0.0.1:4150).",
        "HOST:PORT",
        "--listen",
    ),
]
AgentServer = Annotated[
    str | None,
    option(
        _OPERATION,
        "Check every second that the server accepts connections here, and ask for no sessions while it does not.",
        "HOST:PORT",
        "--server",
    ),
]
AgentCapacity = Annotated[
    int | None,
    option(
        _OPERATION,
        "Most sessions of the pool; more are refused (default: no limit).",
        "N",
        "--capacity",
        parser=whole_number_or_text,
    ),
]
OwnTokenFile = Annotated[
    Path | None,
    option(
        _ADDRESSES,
        "File with the token that dispatchers ask of agents (or set EVENLY_AGENT_TOKEN).",
        "FILE",
        "--token-file",
        parser=file_path,
    ),
]
AgentCaFile = Annotated[
    Path | None,
    option(
        _ADDRESSES,
        "File with the certificates to trust, in PEM, for dispatchers with https:// (default: the system's).",
        "FILE",
        "--ca-file",
        parser=file_path,
    ),
]
