"""uvicorn's HTTP protocol with limits on headers and time. httptools, its parser, has none of its own."""

from __future__ import annotations

import asyncio
import re

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from evenly.live.timing import Timing

MAX_REQUEST = 192 * 1024  # bytes of headers, body and trailers together; the application limits the body
# An HTTP/1.1 client that also speaks HTTP/2 may offer to switch, which a server can ignore. The parser would take
# the rest of the request for another protocol. So it gets to see a header of another name.
_UPGRADE = re.compile(rb"\r\nupgrade(?=[ \t]*:(?![ \t]*websocket))", re.IGNORECASE)
_IGNORED = b"\r\nx-grade"


class _PipelinedError(Exception):
    """A request came before the one before was answered."""


class LimitedProtocol(HttpToolsProtocol):
    """A connection. The server calls `abort_if_overdue` about once per second.

    `max_connections` limits the connections of a server, and `timing` the time of a client. With `answers_timed`,
    the time of the answer counts too. Without `pipelining`, a second request before the first is answered ends the
    connection: uvicorn reads no further then, and would not notice that the client has gone.
    """

    max_connections = 16_384
    timing = Timing()
    answers_timed = True
    pipelining = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, unless there are too many."""
        self._since = self.loop.time()
        self._reading = False
        self._headers_complete = False
        self._bytes = 0
        self._idle_since: float | None = None
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Parse what has come, and give up on endless requests."""
        if b"grade" in data or b"GRADE" in data:
            data = _UPGRADE.sub(_IGNORED, data)
        super().data_received(data)
        self._bytes += len(data)
        if self._bytes > MAX_REQUEST and not self._done_reading:
            self.transport.abort()

    def on_message_begin(self) -> None:
        """Note when a request begins."""
        if not self.pipelining and not self._answered:
            self.transport.abort()
            raise _PipelinedError  # for the parser: uvicorn must not begin with this request
        self._since = self.loop.time()
        self._reading = True
        self._headers_complete = False
        self._bytes = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header. Trailers, after the body, are of no use here."""
        if not self._headers_complete:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Note that only a body can follow."""
        self._headers_complete = True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Note that the whole request is there."""
        self._reading = False
        super().on_message_complete()

    def abort_if_overdue(self, now: float) -> None:
        """Disconnect a client that takes too long for a request, or sends none."""
        waiting = self.cycle is None or self._reading or (self.answers_timed and not self._answered)
        if waiting:
            self._idle_since = None
            if now - self._since > self.timing.request_s:
                self.transport.abort()
        elif not self._answered or self._idle_since is None or self._since > self._idle_since:
            self._idle_since = now
        elif now - self._idle_since > self.timing.keep_alive_s:
            self.transport.abort()

    @property
    def _answered(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    @property
    def _done_reading(self) -> bool:
        return not self._reading and self._headers_complete

    def _unsupported_upgrade_warning(self) -> None:
        """Reject a switch of protocols that came in pieces: what follows cannot be told from a new request."""
        self.send_400_response("Invalid HTTP request received.")
