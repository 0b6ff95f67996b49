"""A server pool as the live balancer knows it: what operator and Envoy say of it, and its open sessions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from evenly.live.addresses import Address


class State(StrEnum):
    """What a pool gets: sessions, fewer sessions or none."""

    SERVING = "serving"
    WARMING = "warming"  # it came or came back a moment ago, and fills slowly
    FAILING = "failing"  # Envoy says that it does not answer
    DRAINING = "draining"  # the operator wants it to empty
    LEAVING = "leaving"  # removed; its last sessions are still open


@dataclass(frozen=True, slots=True)
class Ramp:
    """How many sessions a pool may have that came, or came back: what it had, one more, and a share of the mean.

    The share grows from nothing to all in `seconds`. A policy alone would send such a pool every session until it
    is as full as the others.
    """

    begun: float
    first: int
    seconds: float

    def cap(self, now: float, mean: float) -> float:
        """The most sessions for now, when the pools have `mean` on average."""
        return self.first + 1 + mean * (now - self.begun) / self.seconds

    def over(self, now: float) -> bool:
        """Whether the pool is like any other again."""
        return now - self.begun >= self.seconds


class LivePool:
    """One pool. `picked` are the open sessions that we chose it for or saw it serve, `unpicked` the others."""

    __slots__ = ("address", "draining", "endpoint", "failing", "leaving", "member", "picked", "ramp", "unpicked")

    def __init__(self, address: Address, endpoint: Address) -> None:
        self.address = address
        self.endpoint = endpoint  # the address by number
        self.draining = False
        self.failing = False
        self.leaving = False
        self.member = False  # whether the policy may pick it
        self.picked = 0
        self.unpicked = 0
        self.ramp: Ramp | None = None

    @property
    def sessions(self) -> int:
        """All open sessions."""
        return self.picked + self.unpicked

    @property
    def available(self) -> bool:
        """Whether it should get sessions at all."""
        return not (self.draining or self.failing or self.leaving)

    @property
    def state(self) -> State:
        """In one word; the most final one first."""
        if self.leaving:
            return State.LEAVING
        if self.draining:
            return State.DRAINING
        if self.failing:
            return State.FAILING
        return State.SERVING if self.ramp is None else State.WARMING

    def __repr__(self) -> str:
        return f"LivePool({self.address}, {self.sessions} sessions, {self.state})"
