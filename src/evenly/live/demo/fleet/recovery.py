"""The parts that are killed and started again, and when they were back in rotation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evenly.live.demo.fleet.processes import Part


@dataclass(slots=True)
class Recovery:
    """A killed part, with times in seconds since the beginning; None where it did not come so far.

    `back_at` is when it first served a client after its restart: a dispatcher by answering a pick, a pool by
    taking a session.
    """

    part: Part
    killed_at: float | None = None
    started_at: float | None = None
    back_at: float | None = None

    @property
    def name(self) -> str:
        """The name of the part."""
        return self.part.name

    @property
    def seconds_to_return(self) -> float | None:
        """Seconds from the start of its new process until it served again."""
        if self.back_at is None or self.started_at is None:
            return None
        return self.back_at - self.started_at

    async def kill(self, now: float) -> None:
        """Kill the part."""
        self.killed_at = now
        await self.part.kill()

    async def start(self, now: float) -> None:
        """Start it again."""
        self.started_at = now
        await self.part.start()

    def served(self, now: float) -> None:
        """Note that the part has served a client."""
        if self.started_at is not None and self.back_at is None:
            self.back_at = now


def back_since(recoveries: Iterable[Recovery]) -> float | None:
    """Return since when all these parts are back; None if one of them is not."""
    times = [recovery.back_at for recovery in recoveries]
    return None if None in times else max((time for time in times if time is not None), default=0.0)
