"""The process of the sidecar: its port, its start and its stop."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import uvicorn

from evenly.errors import InputError
from evenly.inputs import shown
from evenly.live.addresses import Address, parse_address
from evenly.live.agents.agent import Agent
from evenly.live.agents.sidecar.app import SidecarApp
from evenly.live.agents.sidecar.server_check import watch_server
from evenly.live.background import running
from evenly.live.http.limits import LimitedProtocol
from evenly.live.http.server import QuietServer
from evenly.live.listening import listening_socket
from evenly.live.log import Log
from evenly.live.notify import READY, notify
from evenly.live.processes import raise_fd_limit
from evenly.live.signals import on_signals

DEFAULT_LISTEN = "127.0.0.1:4150"
_MAX_CONNECTIONS = 65_536
_SWEEP_S = 1.0
_SHUTDOWN_TIMEOUT_S = 1


async def serve(given: Mapping[str, Any], *, ready_json: bool = False) -> None:
    """Run a sidecar until a signal stops it. `given` are the options that were given, by name."""
    files = raise_fd_limit()
    log = Log(sys.stderr)
    listen = check_listen(given.get("listen", DEFAULT_LISTEN))
    for name, what in (("pool", "NAME"), ("address", "URL"), ("dispatcher", "URL")):
        if not given.get(name):
            raise InputError(f"--{name} {what} is required.")
    agent = Agent(
        pool=given["pool"],
        address=given["address"],
        dispatchers=given["dispatcher"],
        capacity=given.get("capacity"),
        token_file=given.get("token_file"),
        ca_file=given.get("ca_file"),
        report=lambda event, facts: log.event(event, **facts),
    )
    stop = asyncio.Event()
    on_signals(stop.set)
    server = _server(given.get("server"))
    app = SidecarApp(agent, checked=server is not None)

    def server_is(there: bool) -> None:
        log.event("server up" if there else "server down", server=server)
        app.server_is(there)

    work = [] if server is None else [watch_server(server, server_is)]
    with listening_socket(listen) as sock:
        bound = Address(listen.host, sock.getsockname()[1])
        async with _serving(app, sock, min(_MAX_CONNECTIONS, files // 2)), agent, running(work, log):
            print(_ready_line(agent, bound, len(given["dispatcher"]), as_json=ready_json), flush=True)
            notify(READY)
            await stop.wait()
    log.event("stopped", sessions=agent.sessions)


def _server(given: object) -> Address | None:
    """Return the address of the server to check, None if none is given."""
    if given is None:
        return None
    if not isinstance(given, str):
        raise InputError(f"server must be HOST:PORT, not {shown(given)}.")
    address = parse_address(given)
    if address.port == 0:  # nothing is ever there, and the pool would get no sessions
        raise InputError(f"The port of the server must be from 1 to 65535, not 0 as in '{address}'.")
    return address


def check_listen(listen: object) -> Address:
    """Return the address to listen on, which only this machine may reach: there is no other access control."""
    if not isinstance(listen, str):
        raise InputError(f"listen must be HOST:PORT, not {shown(listen)}.")
    address = parse_address(listen)
    if not address.loopback:
        raise InputError(f"listen must be a loopback address such as {DEFAULT_LISTEN}, not {address}.")
    return address


def _ready_line(agent: Agent, bound: Address, dispatchers: int, *, as_json: bool) -> str:
    if as_json:
        return json.dumps({"listen": str(bound), "pool": agent.pool, "dispatchers": dispatchers})
    others = "1 dispatcher" if dispatchers == 1 else f"{dispatchers} dispatchers"
    return f"evenly agent: listening on http://{bound}, pool {agent.pool} at {agent.address}, {others}"


@asynccontextmanager
async def _serving(app: SidecarApp, sock: socket.socket, connections: int) -> AsyncIterator[None]:
    config = uvicorn.Config(
        app,
        http=type("LimitedSidecarProtocol", (_Protocol,), {"max_connections": connections}),
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_SHUTDOWN_TIMEOUT_S,
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[sock]))
    sweeping = asyncio.create_task(server.sweep())
    try:
        yield
    finally:
        sweeping.cancel()
        app.stop()
        server.should_exit = True
        await serving


class _Protocol(LimitedProtocol):
    """A connection of the server: an answer may last as long as a session."""

    answers_timed = False
    pipelining = False


class _Server(QuietServer):
    """The server of the sidecar."""

    async def sweep(self) -> None:
        """Disconnect clients that take too long."""
        while True:
            await asyncio.sleep(_SWEEP_S)
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                if isinstance(connection, LimitedProtocol):
                    connection.abort_if_overdue(now)
