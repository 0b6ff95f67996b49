"""What figures and claims are measured with: one seed, and every piece of work done once and shared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from zlib import crc32

import numpy as np

from evenly.sim.scenario import whole_number

T = TypeVar("T")


class Lab:
    """Where the measuring is done. `quick` means less of everything: wider intervals, the same verdicts."""

    def __init__(self, seed: int = 1, *, quick: bool = False) -> None:
        self.seed = whole_number("seed", seed, 0, 2**64 - 1)
        self.quick = quick
        self._done: dict[str, Any] = {}

    def pick(self, full: T, quick: T) -> T:
        """As much as there is time for."""
        return quick if self.quick else full

    def seed_for(self, purpose: str) -> int:
        """A seed of its own for a purpose, so that measurements are independent."""
        return int(np.random.SeedSequence([self.seed, crc32(purpose.encode())]).generate_state(1, np.uint64)[0])

    def once(self, name: str, work: Callable[[], T]) -> T:
        """The outcome of the work of this name, done when first asked for."""
        if name not in self._done:
            self._done[name] = work()
        done: T = self._done[name]
        return done
