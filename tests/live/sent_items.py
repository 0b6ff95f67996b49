"""A connection for handlers under test."""

from __future__ import annotations

from evenly.live.wire.streams import Stream


class SentItems:
    """A connection that records what is sent."""

    last_received = 0.0
    peer = "127.0.0.1"

    def __init__(self) -> None:
        self.items: list[bytes | int] = []

    def enqueue(self, stream: Stream, item: bytes | int) -> None:
        self.items.append(item)

    def flush(self) -> None:
        pass
