"""Options that the live commands share. None means not given: the config file or the default decides."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenly.cli.options import file_path, flag, number_or_text, option, policy_help, whole_number_or_text
from evenly.policies import LIVE

_ADDRESSES = "Addresses"
_DECISIONS = "Decisions"
_OPERATION = "Operation"
_SHARING = "Several pickers"
_STICKINESS = "Sticky sessions"
_TLS = "TLS"


Listen = Annotated[
    str | None, option(_ADDRESSES, "Accept clients at this address; port 0 takes a free port.", "HOST:PORT")
]
PickerListen = Annotated[
    str | None,
    option(
        _ADDRESSES, "Serve Envoys over gRPC at this address; port 0 takes a free port.", "HOST:PORT", "--listen"
    ),
]
Pool = Annotated[
    list[str] | None,
    option(
        _ADDRESSES,
        "Server pool; repeat the option for each. A pool of weight 4 gets four times the sessions of a pool of "
        "weight 1 (default: 1). SCHEME is http (default), https, h2 (HTTP/2, for gRPC) or h2s (HTTP/2 over TLS), "
        "the same for all pools. dns://NAME:PORT stands for all servers that DNS lists under the name, srv://NAME "
        "for the servers and ports of its SRV records; with another scheme: dns+h2, srv+https.",
        "[SCHEME://]HOST:PORT[=WEIGHT]",
    ),
]
Resolver = Annotated[
    str | None,
    option(
        _ADDRESSES,
        "DNS server to ask for pools given as dns:// and srv:// (default: those of /etc/resolv.conf).",
        "IP:PORT",
    ),
]
Admin = Annotated[
    str | None,
    option(
        _ADDRESSES,
        "Serve the admin API at this address: metrics, state, adding and removing pools "
        "(default: 127.0.0.1:8081, or a free port if that is taken).",
        "HOST:PORT",
    ),
]
AdminTokenFile = Annotated[
    Path | None,
    option(
        _ADDRESSES,
        "File with the token of the admin port, required beyond loopback (or set EVENLY_ADMIN_TOKEN).",
        "FILE",
        parser=file_path,
    ),
]
LivePolicy = Annotated[str | None, option(_DECISIONS, policy_help(LIVE), "NAME", "--policy")]
Alpha = Annotated[
    str | None,
    option(
        _DECISIONS,
        "The threshold drops when at most this fraction of pools is at or above it "
        "(default: recommended for the number of pools).",
        "X",
    ),
]
LoadMax = Annotated[
    float | None,
    option(
        _DECISIONS,
        "Highest load to plan for, in sessions per pool, when recommending alpha.",
        "X",
        parser=number_or_text,
    ),
]
SampleSize = Annotated[
    int | None,
    option(
        _DECISIONS,
        "Pools sampled by power-of-d (default: 2).",
        "N",
        "--sample-size",
        "--choices",
        parser=whole_number_or_text,
    ),
]
HealthPath = Annotated[
    str | None,
    option(
        _OPERATION, "Check the health of pools with a GET of this path (default: open a TCP connection).", "PATH"
    ),
]
HealthGrpc = Annotated[
    str | None,
    option(
        _OPERATION,
        "Check the health of pools with gRPC's health service, which is asked about this service; an empty name "
        "asks about the whole server.",
        "SERVICE",
    ),
]
TlsCert = Annotated[
    Path | None,
    option(
        _TLS,
        "Speak TLS at --listen with this certificate chain, in PEM. It is read again when the file changes.",
        "FILE",
        parser=file_path,
    ),
]
TlsKey = Annotated[Path | None, option(_TLS, "Key of --tls-cert, in PEM.", "FILE", parser=file_path)]
AdminTlsCert = Annotated[
    Path | None,
    option(_TLS, "Speak TLS at --admin with this certificate chain, in PEM.", "FILE", parser=file_path),
]
AdminTlsKey = Annotated[Path | None, option(_TLS, "Key of --admin-tls-cert, in PEM.", "FILE", parser=file_path)]
PoolCa = Annotated[
    Path | None,
    option(
        _TLS,
        "Trust these authorities for the certificates of pools, in PEM (default: those of the system).",
        "FILE",
        parser=file_path,
    ),
]
EnvoyTlsCert = Annotated[
    Path | None,
    option(
        _TLS, "Speak TLS at --listen with this certificate chain, in PEM.", "FILE", "--tls-cert", parser=file_path
    ),
]
EnvoyPoolCa = Annotated[
    Path | None,
    option(
        _TLS,
        "Trust these authorities for the certificates of pools, in PEM; required for https and h2s.",
        "FILE",
        "--pool-ca",
        parser=file_path,
    ),
]
PoolCert = Annotated[
    Path | None,
    option(_TLS, "Show this certificate chain to pools (mutual TLS), in PEM.", "FILE", parser=file_path),
]
PoolKey = Annotated[Path | None, option(_TLS, "Key of --pool-cert, in PEM.", "FILE", parser=file_path)]
PoolSni = Annotated[
    str | None,
    option(_TLS, "Name that the certificates of all pools are for (default: the host of each pool).", "NAME"),
]
OpenFiles = Annotated[
    int | None,
    option(
        _OPERATION,
        "Files that Envoy may open (ulimit -n), which its limits must fit into (default: 65536).",
        "N",
        parser=whole_number_or_text,
    ),
]
MemoryMib = Annotated[
    int | None,
    option(
        _OPERATION,
        "Memory of Envoy's machine in MiB, half of which it may use (default: 4096).",
        "N",
        parser=whole_number_or_text,
    ),
]
SlowStart = Annotated[
    float | None,
    option(
        _OPERATION,
        "Slow start: ramp a new or recovered pool up over this many seconds (default: 10).",
        "SECONDS",
        parser=number_or_text,
    ),
]
DrainTimeout = Annotated[
    float | None,
    option(
        _OPERATION,
        "On shutdown, wait up to this many seconds for open sessions to finish (default: 30).",
        "SECONDS",
        "--drain-timeout",
        "--drain",
        parser=number_or_text,
    ),
]
TakeOver = Annotated[
    bool | None,
    flag(
        _OPERATION,
        "Replace the gateway that runs at the same --listen address without losing a connection: it drains when "
        "this one serves. If there is none, start as usual.",
        "--take-over",
    ),
]
Config = Annotated[
    Path | None,
    option(
        _OPERATION,
        "TOML file with any of these options; the command line overrides it. "
        "Changes to its pools and weights take effect while the balancer runs.",
        "FILE.toml",
        parser=file_path,
    ),
]
StateFile = Annotated[
    Path | None,
    option(
        _OPERATION,
        "File that keeps pool changes made at run time across restarts.",
        "FILE",
        "--state-file",
        "--state",
        parser=file_path,
    ),
]
GatewayStateFile = Annotated[
    Path | None,
    option(
        _OPERATION,
        "File that keeps pool changes made at run time across restarts (default: in STATE_DIRECTORY, as systemd "
        "sets it, else in ~/.local/state/evenly, named after --listen; none for port 0).",
        "FILE",
        "--state-file",
        parser=file_path,
    ),
]
Record = Annotated[
    Path | None,
    option(
        _OPERATION,
        "Write one line per finished session to this file, for evenly whatif. It is rotated at 64 MB; "
        "five older files are kept.",
        "FILE",
        parser=file_path,
    ),
]
Sticky = Annotated[
    str | None,
    option(
        _STICKINESS,
        "Send returning clients to the pool that they had, by a signed token: cookie (named evenly-pool), "
        "cookie:NAME or header:NAME.",
        "KIND[:NAME]",
    ),
]
StickyMargin = Annotated[
    int | None,
    option(
        _STICKINESS,
        "Place returning clients again if their pool has more than the threshold plus N sessions (default: 2).",
        "N",
        parser=whole_number_or_text,
    ),
]
StickyKeyFile = Annotated[
    Path | None,
    option(
        _STICKINESS,
        "File with the secret that signs cookies: 32 to 4096 characters (default: a random one for each start).",
        "FILE",
        parser=file_path,
    ),
]
Store = Annotated[
    str | None,
    option(
        _SHARING,
        "Share session counts with other pickers through this Valkey or Redis; rediss:// for TLS. "
        "Keep the password in EVENLY_STORE_PASSWORD or in the TOML file.",
        "redis://HOST:PORT",
    ),
]
Fleet = Annotated[
    str | None, option(_SHARING, "Share with the pickers of this name only (default: default).", "NAME")
]
GatewayFolder = Annotated[
    Path | None,
    typer.Option(
        "--gateway-folder",
        help="Private folder of the gateway that runs this picker.",
        metavar="FOLDER",
        parser=file_path,
        hidden=True,
    ),
]
ReadyJson = Annotated[
    bool,
    typer.Option("--ready-json", help="Print the ready line as one JSON object, for programs.", hidden=True),
]
