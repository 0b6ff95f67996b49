"""How long picks take: counts by bucket, cheap enough for every pick."""

from __future__ import annotations

from bisect import bisect_left

# Seconds; a bucket holds what is at most its bound and above the one before.
BOUNDS = (*(digit * 10.0**exponent for exponent in range(-5, 0) for digit in (1, 2.5, 5)), 1.0)


class Latency:
    """A histogram. The last of `counts` holds what is above every bound."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds

    def cumulative(self) -> list[tuple[float, int]]:
        """How many took at most so long, for each bound and for no bound at all."""
        found, count = [], 0
        for bound, inside in zip((*BOUNDS, float("inf")), self.counts, strict=True):
            count += inside
            found.append((bound, count))
        return found
