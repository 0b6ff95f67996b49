"""A histogram of pick latency, cheap enough to record every pick."""

from __future__ import annotations

from bisect import bisect_left

# Upper bounds in seconds; a bucket includes its own bound.
BOUNDS = (*(digit * 10.0**exponent for exponent in range(-5, 0) for digit in (1, 2.5, 5)), 1.0)


class Latency:
    """Counts per bucket, and the `total` time in seconds. The last count is for times above every bound."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        """Record one pick."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds

    def cumulative(self) -> list[tuple[float, int]]:
        """Return each bound with the number of picks that took at most that long. The last bound is infinity."""
        found, count = [], 0
        for bound, inside in zip((*BOUNDS, float("inf")), self.counts, strict=True):
            count += inside
            found.append((bound, count))
        return found
