"""Slow start: how many sessions a pool may have while it warms up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramp:
    """A cap on the sessions of a pool that was just added or has just come back.

    The cap is `first` (its sessions at the start), plus one, plus a share of the mean over all pools in rotation.
    The share grows from 0 to 1 in `seconds`. Without a cap, a policy would send such a pool every session until it
    is as full as the others.
    """

    begun: float
    first: int
    seconds: float

    def cap(self, now: float, mean: float) -> float:
        """Return the cap at time `now`, when the pools have `mean` sessions on average."""
        return self.first + 1 + mean * (now - self.begun) / self.seconds

    def over(self, now: float) -> bool:
        """Return True if slow start is over at time `now`."""
        return now - self.begun >= self.seconds
