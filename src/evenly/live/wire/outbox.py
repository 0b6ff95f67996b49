"""What goes out on a connection: each stream's answers in their order, as far as the peer's windows allow.

A stream that waits for its window holds up no other. Who grants no windows and asks on and on is cut off.
"""

from __future__ import annotations

from collections import deque

from evenly.live.wire.frames import DATA, DEFAULT_WINDOW, LARGEST_WINDOW, MAX_FRAME, BrokenRuleError, Code, frame
from evenly.live.wire.streams import Stream

MAX_WAITING = 2**24  # bytes of answers that a peer's windows keep back
_OVERHEAD = 100  # bytes that a waiting answer takes besides its own


class Outbox:
    """Frames that are ready, and answers that wait."""

    def __init__(self) -> None:
        self.ready: list[bytes] = []
        self.first_window = DEFAULT_WINDOW  # of a new stream
        self._window = DEFAULT_WINDOW
        self._waiting: dict[bytes, tuple[Stream, deque[bytes | int]]] = {}
        self._size = 0

    def send(self, stream: Stream, item: bytes | int) -> None:
        """Send an answer, or the trailers with a status, once the windows allow."""
        rest: bytes | int | None = item
        if stream.name not in self._waiting:
            rest = self._pass(stream, item)
        if rest is not None:
            self._waiting.setdefault(stream.name, (stream, deque()))[1].append(rest)
            self._count(rest, 1)

    def grow(self, name: bytes, more: int, stream: Stream | None) -> None:
        """The peer grants more: to a stream, or to the connection, which has no stream."""
        stream = self._waiting[name][0] if name in self._waiting else stream
        if stream is not None:
            stream.window = _grown(stream.window, more)
            self._pass_waiting([name])
        elif not any(name):
            self._window = _grown(self._window, more)
            self._pass_waiting(list(self._waiting))

    def resize(self, window: int, streams: dict[bytes, Stream]) -> None:
        """The first window of each stream is another, for those that are open too."""
        change, self.first_window = window - self.first_window, window
        for stream in {**streams, **{name: entry[0] for name, entry in self._waiting.items()}}.values():
            stream.window += change
        self._pass_waiting(list(self._waiting))

    def drop(self, name: bytes) -> None:
        """The peer gave the stream up, perhaps one that it had half closed."""
        _, items = self._waiting.pop(name, (None, ()))
        for item in items:
            self._count(item, -1)

    def _pass(self, stream: Stream, item: bytes | int) -> bytes | int | None:
        """Make frames of as much as the windows allow; return the rest, None if there is none."""
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
            raise BrokenRuleError(Code.ENHANCE_YOUR_CALM)


def _grown(window: int, more: int) -> int:
    if not more or window + more > LARGEST_WINDOW:
        raise BrokenRuleError(Code.FLOW_CONTROL_ERROR)
    return window + more
