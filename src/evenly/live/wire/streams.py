"""Calls of peers: messages found in what comes, and what goes out for each.

What must be here: one stream. What must not: what streams of a connection share.
"""

from __future__ import annotations

from typing import Protocol

from evenly.live.wire.frames import (
    END_HEADERS,
    END_STREAM,
    HEADERS,
    OPENING,
    WORD,
    BrokenRuleError,
    Code,
    frame,
    trailers,
)

MAX_MESSAGE = 2**22


class Handler(Protocol):
    """What a stream is for."""

    def message(self, message: bytes) -> None:
        """A message came."""

    def ended(self) -> None:
        """No more will come: the peer is done, or gave up, or is gone. Heard once."""


class Outlet(Protocol):
    """The connection, as far as a stream and its handler know it."""

    heard: float  # when the last bytes came, by the performance counter

    @property
    def peer(self) -> str:
        """The host at the other end."""

    def enqueue(self, stream: Stream, item: bytes | int) -> None:
        """Send an answer, or the trailers with a status, once the windows allow."""

    def flush(self) -> None:
        """Hand to the transport what has gathered."""


class Stream:
    """One call of a peer's. Answers go out as far as the peer's windows allow, in order."""

    __slots__ = ("_opened", "_partial", "connection", "handler", "name", "received", "window")

    def __init__(self, connection: Outlet, name: bytes, window: int) -> None:
        self.connection = connection
        self.name = name
        self.window = window
        self.handler: Handler | None = None
        self.received = 0
        self._opened = False
        self._partial = b""

    def send(self, answer: bytes) -> None:
        """Send a message, framed already: the same answer goes to many."""
        self.connection.enqueue(self, answer)

    def opening(self) -> bytes:
        """The headers, before the first message."""
        if self._opened:
            return b""
        self._opened = True
        return frame(HEADERS, END_HEADERS, self.name, OPENING)

    def closing(self, status: int) -> bytes:
        """The trailers, which bring the headers along if there was no message."""
        head = b"" if self._opened else OPENING
        return frame(HEADERS, END_HEADERS | END_STREAM, self.name, head + trailers(status))

    def take(self, data: bytes) -> None:
        """Find the messages in what came."""
        if self._partial:
            data = self._partial + data
        while len(data) >= 5:
            end = 5 + WORD.unpack_from(data, 1)[0]
            if data[0] != 0 or end > MAX_MESSAGE:  # we asked for no compression
                raise BrokenRuleError(Code.PROTOCOL_ERROR)
            if len(data) < end:
                break
            assert self.handler is not None
            self.handler.message(data[5:end])
            data = data[end:]
        self._partial = data

    def end(self) -> None:
        """Tell the handler, and let go of it: who holds a stream and is held by it is freed late."""
        handler, self.handler = self.handler, None
        assert handler is not None
        handler.ended()
