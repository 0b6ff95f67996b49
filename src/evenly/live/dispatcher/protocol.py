"""The server of the API port."""

from __future__ import annotations

import asyncio
import math
import socket
import ssl
from typing import Any

import uvicorn
from uvicorn._types import ASGISendEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from evenly.core.protocol.codec import MAX_MESSAGE
from evenly.live.dispatcher.app import TRANSPORT, Api
from evenly.live.http.limits import LimitedProtocol
from evenly.live.http.server import QuietServer
from evenly.live.listening import BACKLOG
from evenly.live.timing import Timing

MAX_CONNECTIONS = 16_384
MAX_UNREAD = 1024 * 1024  # bytes that an agent leaves unread, such as answers to its pings
_SHUTDOWN_TIMEOUT_S = 1


class AgentProtocol(WebSocketsSansIOProtocol):
    """A WebSocket whose application can close the transport at once."""

    async def send(self, message: ASGISendEvent) -> None:
        """Send. With a response in place of a WebSocket the handshake is over; uvicorn would log a fault."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body":
            self.handshake_complete = True

    async def run_asgi(self) -> None:
        """Run the application with the transport in its scope."""
        self.scope[TRANSPORT] = self.transport  # type: ignore[literal-required]
        await super().run_asgi()

    def abort_if_unread(self) -> None:
        """Disconnect an agent that does not read."""
        if self.transport.get_write_buffer_size() > MAX_UNREAD:
            self.transport.abort()


class ApiServer(QuietServer):
    """A server of the API."""

    def __init__(
        self, api: Api, tls: ssl.SSLContext | None, *, max_connections: int, timing: Timing | None = None
    ) -> None:
        self._timing = timing or Timing()
        limits = {"max_connections": max_connections, "timing": self._timing}
        protocol = type("ApiProtocol", (LimitedProtocol,), limits)
        super().__init__(
            uvicorn.Config(
                api,
                http=protocol,
                ws=AgentProtocol,
                ws_max_size=MAX_MESSAGE,
                ws_per_message_deflate=False,
                ws_ping_interval=None,  # heartbeats show that a connection lives
                proxy_headers=False,  # nothing here depends on the client's address
                lifespan="off",
                log_config=None,
                log_level="error",
                access_log=False,
                server_header=False,
                timeout_keep_alive=math.ceil(self._timing.keep_alive_s),
                timeout_graceful_shutdown=_SHUTDOWN_TIMEOUT_S,
            )
        )
        self._protocol = protocol
        self._tls = tls

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, with a limit on the time of a TLS handshake, which uvicorn leaves to the event loop."""
        loop = asyncio.get_running_loop()
        more: dict[str, Any] = {} if self._tls is None else {"ssl_handshake_timeout": self._timing.tls_handshake_s}
        self.servers = [
            await loop.create_server(self._connection, sock=sock, ssl=self._tls, backlog=BACKLOG, **more)
            for sock in sockets or ()
        ]
        self.started = True

    def close_overdue(self) -> None:
        """Disconnect clients that take too long."""
        now = asyncio.get_running_loop().time()
        for connection in list(self.server_state.connections):
            if isinstance(connection, LimitedProtocol):
                connection.abort_if_overdue(now)
            elif isinstance(connection, AgentProtocol):
                connection.abort_if_unread()

    def _connection(self) -> asyncio.Protocol:
        made: asyncio.Protocol = self._protocol(config=self.config, server_state=self.server_state, app_state={})
        return made
