"""The server of the API port: uvicorn with limits on connections, headers, and the time of a request."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any

import uvicorn
from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from evenly.core.protocol.codec import MAX_MESSAGE
from evenly.live.admin.server import QuietServer
from evenly.live.dispatcher.app import TRANSPORT, Api
from evenly.live.listening import BACKLOG

MAX_HEADERS = 64 * 1024  # bytes
MAX_CONNECTIONS = 16_384
REQUEST_TIMEOUT_S = 15.0  # from the first byte, or from the connection, to the end of the answer
KEEP_ALIVE_S = 30
_HANDSHAKE_TIMEOUT_S = 10.0
_SHUTDOWN_TIMEOUT_S = 1


class ApiProtocol(HttpToolsProtocol):
    """HTTP with limits. httptools has none of its own."""

    max_connections = MAX_CONNECTIONS

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, unless there are too many."""
        self._since = self.loop.time()
        self._reading = False
        self._header_bytes: int | None = 0  # None when the headers are complete
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Parse what has come, and give up on endless headers."""
        super().data_received(data)
        if self._header_bytes is not None:
            self._header_bytes += len(data)
            if self._header_bytes > MAX_HEADERS:
                self.transport.abort()

    def on_message_begin(self) -> None:
        """Note when a request begins."""
        self._since = self.loop.time()
        self._reading = True
        self._header_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """End the count of header bytes."""
        self._header_bytes = None
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Note that the whole request is there."""
        self._reading = False
        super().on_message_complete()

    def abort_if_overdue(self, now: float) -> None:
        """Disconnect a client whose request or whose reading of the answer takes too long."""
        busy = self.cycle is None or self._reading or not self.cycle.response_complete
        if busy and now - self._since > REQUEST_TIMEOUT_S:
            self.transport.abort()


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


class ApiServer(QuietServer):
    """A server of the API."""

    def __init__(self, api: Api, tls: ssl.SSLContext | None, *, max_connections: int) -> None:
        protocol = type("LimitedApiProtocol", (ApiProtocol,), {"max_connections": max_connections})
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
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=_SHUTDOWN_TIMEOUT_S,
            )
        )
        self._protocol = protocol
        self._tls = tls

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, with a limit on the time of a TLS handshake, which uvicorn leaves to the event loop."""
        loop = asyncio.get_running_loop()
        more: dict[str, Any] = {} if self._tls is None else {"ssl_handshake_timeout": _HANDSHAKE_TIMEOUT_S}
        self.servers = [
            await loop.create_server(self._connection, sock=sock, ssl=self._tls, backlog=BACKLOG, **more)
            for sock in sockets or ()
        ]
        self.started = True

    def close_overdue(self) -> None:
        """Disconnect clients that take too long."""
        now = asyncio.get_running_loop().time()
        for connection in list(self.server_state.connections):
            if isinstance(connection, ApiProtocol):
                connection.abort_if_overdue(now)

    def _connection(self) -> asyncio.Protocol:
        made: asyncio.Protocol = self._protocol(config=self.config, server_state=self.server_state, app_state={})
        return made
