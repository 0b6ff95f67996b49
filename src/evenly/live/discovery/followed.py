"""One source that is followed: its last answer, its failures, and when to look it up again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evenly.live.addresses import Address
from evenly.live.discovery.answer import Answer
from evenly.live.pool_source import PoolSource

MIN_S, MAX_S = 1.0, 30.0  # between lookups, whatever the TTL: Consul's is 0 s, that of Docker Compose 600 s
_JITTER = 0.1  # several pickers must not ask together


@dataclass(kw_only=True)
class Followed:
    """A source and what DNS said about it. `servers` is None as long as there was no answer at all."""

    source: PoolSource
    servers: Mapping[Address, float] | None = None
    answered: float | None = None  # when the last answer without a problem came, in seconds of the clock
    failures: int = 0  # since the start
    in_a_row: int = 0
    problem: str = ""
    asked: bool = field(default=False)  # whether the first lookup is over, however it ended

    def take(self, answer: Answer, now: float) -> bool:
        """Take an answer. Return whether the servers may have changed."""
        self.asked = True
        self.problem = answer.problem
        if answer.problem:
            self.failures += 1
            self.in_a_row += 1
        else:
            self.in_a_row = 0
            self.answered = now
        if not answer.servers or answer.servers == self.servers:
            return False
        self.servers = answer.servers
        return True

    def pause(self, ttl: float, chance: float) -> float:
        """Return the seconds until the next lookup. `chance` is a random number from 0 to 1."""
        wait = MIN_S * 2 ** min(self.in_a_row - 1, 10) if self.in_a_row else ttl
        return min(max(wait, MIN_S), MAX_S) * (1 + _JITTER * chance)
