"""Sessions that a run is given instead of drawing them: those of a log, or drawn ahead to be recorded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenly.errors import InputError
from evenly.inputs import shown
from evenly.sim.kernels.given import Given

MAX_GIVEN = 2 * 10**7  # sessions: a few hundred megabytes

Floats = NDArray[np.float64]
Pools = NDArray[np.int32]


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenSessions:
    """Sessions in the order of their starts.

    starts, durations: one for each session, in the time unit of the scenario.
    open_at_start: how many of them, the first ones, are open at time 0, in the pools that `pools` names. Their
        durations count from then on, and no policy decides about them.
    pools: the pool of each session, -1 if it is not known: at least those of the sessions open at time 0.
    """

    starts: Floats
    durations: Floats
    open_at_start: int = 0
    pools: Pools | None = None

    def __post_init__(self) -> None:
        size = self.starts.size
        if self.starts.shape != (size,) or self.durations.shape != (size,) or not 0 < size <= MAX_GIVEN:
            raise InputError(
                f"Given sessions need one start and one duration each, for 1 to {MAX_GIVEN} sessions, "
                f"not {shown((self.starts.shape, self.durations.shape))}."
            )
        finite = np.isfinite(self.starts).all() and np.isfinite(self.durations).all()
        if not finite or self.starts[0] < 0 or (np.diff(self.starts) < 0).any() or (self.durations < 0).any():
            raise InputError("Starts must be finite, at least 0 and in ascending order, and durations at least 0.")
        if self.pools is None and self.open_at_start:
            raise InputError("Sessions that are open at time 0 need their pools.")

    def __len__(self) -> int:
        """Return the number of sessions."""
        return int(self.starts.size)

    def tasks_at_start(self, pools: int) -> tuple[int, ...]:
        """Return the tasks of each pool at time 0."""
        if self.pools is None:
            return (0,) * pools
        return tuple(np.bincount(self.pools[: self.open_at_start], minlength=pools).tolist())

    def arrays(self, *, kept: bool, observed: bool) -> Given:
        """Return the arrays for a kernel, with the pools if they are observed, or with room for them."""
        pools = np.zeros(0, np.int32)
        if observed:
            assert self.pools is not None
            pools = self.pools.astype(np.int32)
        elif kept:
            pools = np.full(len(self), -1, np.int32)
            if self.pools is not None:
                pools[: self.open_at_start] = self.pools[: self.open_at_start]
        # Numba compiles anew for arrays that are read-only.
        starts, durations = (np.require(each, np.float64, ["C", "W"]) for each in (self.starts, self.durations))
        return Given(starts, durations, pools)
