"""A pool of its own size: its green and yellow thresholds can coincide."""

from __future__ import annotations

from evenly.core.checks import nothing_to_depart
from evenly.core.cut import Bounds
from evenly.core.messages import Color, PoolId, Report
from evenly.core.pool import Pool


class SizedPool(Pool):
    """A pool with two thresholds: green below `lower` tasks, yellow below `upper`.

    If `upper` is one more than `lower`, it behaves as the paper's pool.
    """

    __slots__ = ("_bounds",)

    def __init__(self, pool_id: PoolId, bounds: Bounds, tasks: int = 0) -> None:
        super().__init__(pool_id, bounds.lower, tasks)
        self._bounds = bounds

    def depart(self) -> Report | None:
        """Finish a task. If the pool turns green or yellow by this, announce it."""
        if self.tasks == 0:
            raise nothing_to_depart(self.pool_id)
        self.tasks -= 1
        lower, upper = self._bounds
        if self.tasks == lower - 1:
            return self._report(Color.GREEN)
        return self._report(Color.YELLOW) if lower <= self.tasks == upper - 1 else None

    def rebound(self, bounds: Bounds) -> Report | None:
        """Take over two thresholds, and return the token that the dispatcher lacks, if any.

        The dispatcher knows that a pool with a token is green at higher thresholds. At lower ones, it knows that a
        green pool is yellow at most one task lower, and still green if `lower` has not changed.
        """
        old, self._bounds = self._bounds, bounds
        self.adopt(bounds.lower)
        if bounds > old:
            known = self.tasks < old.upper
        elif bounds.lower == old.lower:
            known = self.tasks < bounds.lower and bounds.upper < old.upper
        else:
            known = self.tasks == bounds.lower == old.lower - 1
        return None if known or self._token is None else self._report(self._token)

    @property
    def _token(self) -> Color | None:
        lower, upper = self._bounds
        return Color.GREEN if self.tasks < lower else Color.YELLOW if self.tasks < upper else None
