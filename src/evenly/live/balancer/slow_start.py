"""Slow start: how many sessions a pool may have while it warms up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramp:
    """A cap on the sessions of a pool that was just added or has just come back.

    The cap is `first` (its sessions at the start), plus one, plus a share of the sessions that are due to it: the
    mean over all pools in rotation, or its part by weight. The share grows from 0 to 1 in `seconds`. Without a
    cap, a policy would send such a pool every session until it is as full as the others.
    """

    begun: float
    first: int
    seconds: float

    def cap(self, now: float, due: float) -> float:
        """Return the cap at time `now`, when `due` sessions are due to the pool."""
        return self.first + 1 + due * (now - self.begun) / self.seconds

    def over(self, now: float) -> bool:
        """Return True if slow start is over at time `now`."""
        return now - self.begun >= self.seconds
