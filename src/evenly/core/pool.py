"""The pool's role: it counts its own tasks and reports to the dispatcher when a token is due.

It knows nothing of other pools, of the dispatcher's state or of how a report travels.
"""

from evenly.core.checks import MAX_COUNT, check_capacity, check_pool, check_tasks, no_room, nothing_to_depart
from evenly.core.messages import Color, PoolId, Report
from evenly.inputs import whole_number


class Pool:
    """A server pool: its tasks, and the threshold that it knows.

    Where messages take time, `every_departure` makes it report all departures below the threshold. The paper's
    pool is silent about them once it is green, because its token is at the dispatcher already. But a dispatcher
    with picks on the way counts those on top of the last report, and takes the pool for fuller than it is.

    Paper: Sec. 2.1.
    """

    __slots__ = ("_every_departure", "_threshold", "capacity", "pool_id", "tasks")

    def __init__(
        self,
        pool_id: PoolId,
        threshold: int,
        tasks: int = 0,
        capacity: int | None = None,
        *,
        every_departure: bool = False,
    ) -> None:
        check_pool(pool_id)
        self.pool_id = pool_id
        self.capacity = check_capacity(capacity)
        self.tasks = check_tasks(pool_id, tasks, self.capacity)
        self._threshold = whole_number("threshold", threshold, 0, MAX_COUNT)
        self._every_departure = every_departure

    @property
    def full(self) -> bool:
        """True if another task would be lost."""
        return self.tasks == self.capacity

    @property
    def threshold(self) -> int:
        """The threshold that it knows."""
        return self._threshold

    def arrive(self) -> Report | None:
        """Take a task. If the pool is still green, replace the token that the dispatcher discarded.

        Paper: Sec. 2.1.
        """
        if self.full:
            raise no_room(self.pool_id, self.capacity)
        self.tasks += 1
        return self._report(Color.GREEN) if self.tasks < self._threshold else None

    def depart(self) -> Report | None:
        """Finish a task. If the pool turns green or yellow by this, announce it.

        Paper: Sec. 2.1. Departs: with `every_departure`, a green pool reports too.
        """
        if self.tasks == 0:
            raise nothing_to_depart(self.pool_id)
        self.tasks -= 1
        below = self._threshold - self.tasks
        if below == 0:
            return self._report(Color.YELLOW)
        if below == 1 or (self._every_departure and below > 0):
            return self._report(Color.GREEN)
        return None

    def adopt(self, threshold: int) -> None:
        """Take over a threshold without a word, where tasks carry it."""
        self._threshold = whole_number("threshold", threshold, 0, MAX_COUNT)

    def rethreshold(self, threshold: int) -> Report | None:
        """Take over a threshold, and return the token that the dispatcher lacks, if any.

        The dispatcher knows that a pool with a token at the old threshold is below a higher one, and that a green
        pool is at most at a threshold one lower.

        Departs: the paper does not say how the tokens are rebuilt.
        """
        old = self._threshold
        self.adopt(threshold)
        known = self.tasks <= old if threshold > old else self.tasks == threshold == old - 1
        return None if known or self._token is None else self._report(self._token)

    def announce(self) -> Report:
        """Return the report of a pool that joins.

        Paper: Sec. 2.1 (which tokens are held).
        """
        return self._report(self._token)

    @property
    def _token(self) -> Color | None:
        """The token that the dispatcher should hold; green stands for both."""
        below = self._threshold - self.tasks
        return Color.GREEN if below > 0 else Color.YELLOW if below == 0 else None

    def _report(self, color: Color | None) -> Report:
        return Report(self.pool_id, self.tasks, color)
