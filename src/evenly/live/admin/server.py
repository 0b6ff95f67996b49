"""The HTTP server of the admin port: uvicorn inside the picker's event loop."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from evenly.live.http.server import QuietServer
from evenly.live.timing import Timing

_MAX_CONNECTIONS = 256
_SHUTDOWN_TIMEOUT_S = 1


@asynccontextmanager
async def serve_admin(
    app: FastAPI, sock: socket.socket, tls: ssl.SSLContext | None = None, *, timing: Timing | None = None
) -> AsyncIterator[None]:
    """Serve on a listening socket while the block runs. Leaving the block takes at most about a second."""
    config = uvicorn.Config(
        app,
        http=type("PromptProtocol", (_PromptProtocol,), {"timing": timing or Timing()}),
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_graceful_shutdown=_SHUTDOWN_TIMEOUT_S,
    )
    config.load()
    config.ssl = tls
    async with serving(QuietServer(config), sock):
        yield


@asynccontextmanager
async def serving(server: uvicorn.Server, sock: socket.socket) -> AsyncIterator[None]:
    """Run a server on a listening socket while the block runs."""
    task = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        yield
    finally:
        server.should_exit = True
        await task


class _PromptProtocol(H11Protocol):
    """Disconnects clients that send no request: enough of them would keep all others out."""

    timing = Timing()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout of the first request."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(self.timing.first_request_s, self._disconnect)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timeout."""
        self._timer.cancel()
        super().connection_lost(exc)

    def _disconnect(self) -> None:
        if self.cycle is None and not self.transport.is_closing():  # no request yet
            self.transport.close()
