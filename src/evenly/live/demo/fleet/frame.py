"""One moment of the demo as plain data, for the screen."""

from __future__ import annotations

from dataclasses import dataclass

from evenly.live.demo.fleet.counts import Counts


@dataclass(frozen=True, slots=True)
class FleetFrame:
    """The progress of the run: the open sessions of each pool, what is down, and what the dispatchers say.

    `load` is per pool that is up. `threshold` and `tokens` are None while no dispatcher answers. `spread` is the
    mean since the load changed.
    """

    time: float
    seconds: float
    load: float
    sessions: tuple[int, ...]
    pools_down: frozenset[int]
    dispatchers_up: tuple[bool, ...]
    threshold: int | None
    tokens: tuple[int, int] | None
    counts: Counts
    spread: float
    begun: int
    cut: int
    lost: int
    news: str

    def per_session(self, messages: int) -> float:
        """Return the number of messages per session so far."""
        return messages / max(self.begun, 1)
