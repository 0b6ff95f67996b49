"""The outgoing messages of a connection, subject to the peer's flow control.

Messages of one stream keep their order. A stream that waits for its window does not block other streams. A peer
that keeps sending requests without extending its windows is disconnected.
"""

from __future__ import annotations

from collections import deque

from evenly.live.wire.frames import DATA, DEFAULT_WINDOW, MAX_FRAME, MAX_WINDOW, Code, ProtocolError, frame
from evenly.live.wire.streams import Stream

MAX_WAITING = 2**24  # bytes of responses that may wait for the peer's windows
_OVERHEAD = 100  # bytes of memory per waiting message, beyond its own length


class Outbox:
    """Frames that are ready to send, and messages that wait for flow control."""

    def __init__(self) -> None:
        self.ready: list[bytes] = []
        self.first_window = DEFAULT_WINDOW  # initial window of a new stream
        self._window = DEFAULT_WINDOW
        self._waiting: dict[bytes, tuple[Stream, deque[bytes | int]]] = {}
        self._size = 0

    def send(self, stream: Stream, item: bytes | int) -> None:
        """Send a message, or trailers with a status, as soon as flow control allows."""
        rest: bytes | int | None = item
        if stream.name not in self._waiting:
            rest = self._pass(stream, item)
        if rest is not None:
            self._waiting.setdefault(stream.name, (stream, deque()))[1].append(rest)
            self._count(rest, 1)

    def grow(self, name: bytes, more: int, stream: Stream | None) -> None:
        """Extend the window of a stream, or of the connection if `name` is zero."""
        stream = self._waiting[name][0] if name in self._waiting else stream
        if stream is not None:
            stream.window = _grown(stream.window, more)
            self._pass_waiting([name])
        elif not any(name):
            self._window = _grown(self._window, more)
            self._pass_waiting(list(self._waiting))

    def resize(self, window: int, streams: dict[bytes, Stream]) -> None:
        """Change the initial window, which also shifts the windows of open streams."""
        change, self.first_window = window - self.first_window, window
        for stream in {**streams, **{name: entry[0] for name, entry in self._waiting.items()}}.values():
            stream.window += change
        self._pass_waiting(list(self._waiting))

    def drop(self, name: bytes) -> None:
        """Drop the waiting messages of a stream that the peer reset."""
        _, items = self._waiting.pop(name, (None, ()))
        for item in items:
            self._count(item, -1)

    def _pass(self, stream: Stream, item: bytes | int) -> bytes | int | None:
        """Make frames of as much as the windows allow. Return the rest, or None if nothing is left."""
        if isinstance(item, int):
            self.ready.append(stream.closing(item))
            return None
        while item:
            size = min(len(item), stream.window, self._window, MAX_FRAME)
            if size <= 0:
                return item
            stream.window -= size
            self._window -= size
            piece = item if size == len(item) else item[:size]
            self.ready.append(stream.opening() + frame(DATA, 0, stream.name, piece))
            item = item[size:]
        return None

    def _pass_waiting(self, names: list[bytes]) -> None:
        for name in names:
            if name not in self._waiting:
                continue
            stream, items = self._waiting[name]
            while items:
                first = items.popleft()
                self._count(first, -1)
                rest = self._pass(stream, first)
                if rest is not None:
                    items.appendleft(rest)
                    self._count(rest, 1)
                    break
            else:
                del self._waiting[name]

    def _count(self, item: bytes | int, times: int) -> None:
        self._size += times * (_OVERHEAD + (0 if isinstance(item, int) else len(item)))
        if self._size > MAX_WAITING:
            raise ProtocolError(Code.ENHANCE_YOUR_CALM)


def _grown(window: int, more: int) -> int:
    if not more or window + more > MAX_WINDOW:
        raise ProtocolError(Code.FLOW_CONTROL_ERROR)
    return window + more
