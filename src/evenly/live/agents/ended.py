"""Sessions that have ended, for a dispatcher that records them. They wait for the next heartbeat."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterator

MAX_WAITING = 10_000  # sessions; beyond that, the oldest are left out and counted
MAX_IN_FRAME = 250  # at most 30 characters each
_DIGITS = 3  # of a second


class EndedSessions:
    """What a dispatcher was not told yet. Nothing is kept for one that does not record."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.wanted = False
        self._clock = clock
        self._waiting: deque[tuple[float, float]] = deque()  # end and duration
        self._lost = 0

    def now(self) -> float:
        """Return the time, for a session that begins."""
        return self._clock()

    def add(self, begun: float) -> None:
        """Note a session that ends now."""
        if not self.wanted:
            return
        now = self._clock()
        if len(self._waiting) >= MAX_WAITING:
            self._waiting.popleft()
            self._lost += 1
        self._waiting.append((now, now - begun))

    def frames(self) -> Iterator[str]:
        """Yield the frames that tell all of them, and forget them."""
        waiting, self._waiting = self._waiting, deque()
        while waiting:
            now = self._clock()
            some = [waiting.popleft() for _ in range(min(MAX_IN_FRAME, len(waiting)))]
            sessions = [[round(now - end, _DIGITS), round(duration, _DIGITS)] for end, duration in some]
            lost, self._lost = self._lost, 0
            yield json.dumps({"type": "ended", "sessions": sessions, "lost": lost}, separators=(",", ":"))
