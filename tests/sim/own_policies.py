"""Policies as a user writes them, for tests."""

import numpy as np

from evenly import Scenario
from evenly.core import Choose

SMALL = Scenario(pools=5, load=2.0, horizon=20.0)


class First:
    """Sends every task to pool 0."""

    def join(self, pool: int, tasks: int) -> None: ...

    def leave(self, pool: int) -> None: ...

    def arrive(self, choose: Choose) -> object:
        return 0

    def depart(self, pool: int) -> None: ...


class Counting(First):
    """Takes pools in turn without knowing the capacity, and counts what it is told."""

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.turn = self.messages = 0
        self.most = 0

    def join(self, pool: int, tasks: int) -> None:
        self.counts[pool] = tasks

    def arrive(self, choose: Choose) -> object:
        self.turn = (self.turn + 1) % len(self.counts)
        self.counts[self.turn] += 1
        self.messages += 3
        self.most = max(self.most, self.counts[self.turn])
        return np.int64(self.turn)

    def depart(self, pool: int) -> None:
        self.counts[pool] -= 1
        assert self.counts[pool] >= 0
