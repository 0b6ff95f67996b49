"""One gRPC call of a peer: its incoming messages and its outgoing frames.

State shared by the streams of a connection is in `http2.py` and `outbox.py`.
"""

from __future__ import annotations

from typing import Protocol

from evenly.live.wire.frames import (
    END_HEADERS,
    END_STREAM,
    HEADERS,
    OK,
    OPENING,
    WORD,
    Code,
    ProtocolError,
    frame,
    trailers,
)

MAX_MESSAGE = 2**22  # bytes


class Handler(Protocol):
    """The code that serves one stream."""

    def message(self, message: bytes) -> None:
        """Handle a message."""

    def ended(self) -> None:
        """Handle the end of the stream: finished, reset or disconnected. Called exactly once."""


class Outlet(Protocol):
    """The part of a connection that a stream and its handler use."""

    last_received: float  # time of the last received bytes, by perf_counter

    @property
    def peer(self) -> str:
        """The host of the peer."""

    def enqueue(self, stream: Stream, item: bytes | int) -> None:
        """Send a message, or trailers with a status, as soon as flow control allows."""

    def flush(self) -> None:
        """Write all frames that are ready to the transport."""


class Stream:
    """One call of a peer. Responses are sent in order, as flow control allows; then `status`, when it is done."""

    __slots__ = ("_opened", "_partial", "connection", "handler", "name", "received", "status", "window")

    def __init__(self, connection: Outlet, name: bytes, window: int) -> None:
        self.connection = connection
        self.name = name
        self.window = window
        self.handler: Handler | None = None
        self.received = 0
        self.status = OK  # of gRPC
        self._opened = False
        self._partial = b""

    def send(self, answer: bytes) -> None:
        """Send a message that is already framed, so that many streams can share one encoded response."""
        self.connection.enqueue(self, answer)

    def opening(self) -> bytes:
        """Return the response headers the first time, and nothing after that."""
        if self._opened:
            return b""
        self._opened = True
        return frame(HEADERS, END_HEADERS, self.name, OPENING)

    def closing(self, status: int) -> bytes:
        """Return the trailers, together with the response headers if no message was sent."""
        head = b"" if self._opened else OPENING
        return frame(HEADERS, END_HEADERS | END_STREAM, self.name, head + trailers(status))

    def take(self, data: bytes) -> None:
        """Split received bytes into messages and hand them to the handler."""
        if self._partial:
            data = self._partial + data
        while len(data) >= 5:
            end = 5 + WORD.unpack_from(data, 1)[0]
            if data[0] != 0 or end > MAX_MESSAGE:  # compressed, which we did not offer
                raise ProtocolError(Code.PROTOCOL_ERROR)
            if len(data) < end:
                break
            assert self.handler is not None
            self.handler.message(data[5:end])
            data = data[end:]
        self._partial = data

    def end(self) -> None:
        """Notify the handler and drop it: a reference cycle would only be freed by the garbage collector."""
        handler, self.handler = self.handler, None
        assert handler is not None
        handler.ended()
