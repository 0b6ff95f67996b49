"""How many sessions were open at each time, whatever the policy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Concurrency:
    """Stretches of time between two changes: when each begins, how long it is, and the sessions open in it."""

    times: Floats
    lengths: Floats
    open_sessions: Ints

    @property
    def mean(self) -> float:
        """Open sessions, on average over time."""
        total = self.lengths.sum()
        return float(self.lengths @ self.open_sessions / total) if total > 0 else 0.0

    @property
    def highest(self) -> int:
        """The most sessions open at a time."""
        held = self.open_sessions[self.lengths > 0]
        return int(held.max()) if held.size else 0

    def quantile(self, share: float) -> int:
        """Return the least number that is not exceeded for this share of the time."""
        if not self.lengths.size:
            return 0
        order = np.argsort(self.open_sessions, kind="stable")
        reached = np.cumsum(self.lengths[order])
        # Sums round: a share that is reached within a billionth counts as reached.
        place = int(np.searchsorted(reached, (share - 1e-9) * reached[-1]))
        return int(self.open_sessions[order][min(place, order.size - 1)])

    def fullest_if_balanced(self, servers: int) -> float:
        """Return the sessions on the fullest of some servers with perfect balance, on average over time."""
        total = self.lengths.sum()
        return float(self.lengths @ -(-self.open_sessions // servers) / total) if total > 0 else 0.0

    def part(self, inside: NDArray[np.bool_]) -> Concurrency:
        """Return some of the stretches."""
        return Concurrency(self.times[inside], self.lengths[inside], self.open_sessions[inside])


def concurrency(starts: Floats, durations: Floats, begin: float, until: float, cuts: Floats) -> Concurrency:
    """Return the open sessions between two times. No stretch crosses one of the `cuts`."""
    seen = starts < until
    starts, ends = starts[seen], starts[seen] + durations[seen]
    times = np.concatenate([ends, starts, cuts, [begin]])
    steps = np.zeros(times.size, np.int64)
    steps[: ends.size] = -1
    steps[ends.size : 2 * ends.size] = 1
    order = np.argsort(times, kind="stable")  # at the same time, sessions end before others begin
    times, counts = times[order], np.cumsum(steps[order])
    lengths = np.diff(np.minimum(np.append(times, until), until))
    inside = (times >= begin) & (lengths > 0)
    return Concurrency(times[inside], lengths[inside], counts[inside])
