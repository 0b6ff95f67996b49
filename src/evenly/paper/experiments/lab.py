"""The lab that experiments run in: one seed, and every run done once and shared."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from zlib import crc32

import numpy as np

from evenly.inputs import true_or_false, whole_number

T = TypeVar("T")


class Lab:
    """A seed and the results so far. `quick` means fewer and shorter runs: wider intervals, the same verdicts."""

    def __init__(self, seed: int = 1, *, quick: bool = False) -> None:
        self.seed = whole_number("seed", seed, 0, 2**64 - 1)
        self.quick = true_or_false("quick", quick)
        self._done: dict[Hashable, Any] = {}

    def pick(self, full: T, quick: T) -> T:
        """Return the value for a full or for a quick run."""
        return quick if self.quick else full

    def seed_for(self, purpose: str) -> int:
        """Derive a seed for one purpose, so that measurements for different purposes are independent."""
        return int(np.random.SeedSequence([self.seed, crc32(purpose.encode())]).generate_state(1, np.uint64)[0])

    def once(self, key: Hashable, work: Callable[[], T]) -> T:
        """Return the result of `work`, called the first time its key is used. A key names all its parameters."""
        if key not in self._done:
            self._done[key] = work()
        done: T = self._done[key]
        return done
