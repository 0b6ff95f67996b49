"""The pool's role: it counts its own tasks and tells the dispatcher when a token is due.

Nothing here knows of other pools, of the dispatcher's state or of how a message travels.
"""

from evenly.core.checks import check_capacity, check_tasks, no_room, nothing_to_depart
from evenly.core.messages import Color, PoolId, ThresholdNotice, TokenMessage


class Pool:
    """One server pool: its tasks, and the threshold that it was last told.

    Paper: Sec. 2.1.
    """

    __slots__ = ("_notice", "capacity", "pool_id", "tasks")

    def __init__(
        self, pool_id: PoolId, notice: ThresholdNotice, tasks: int = 0, capacity: int | None = None
    ) -> None:
        check_capacity(capacity)
        check_tasks(pool_id, tasks, capacity)
        self.pool_id = pool_id
        self.tasks = tasks
        self.capacity = capacity
        self._notice = notice

    @property
    def full(self) -> bool:
        """Whether a further task would be lost."""
        return self.tasks == self.capacity

    def arrive(self) -> TokenMessage | None:
        """Take a task; if the pool is still green, replace the token that the dispatcher discarded.

        Paper: Sec. 2.1.
        """
        if self.full:
            raise no_room(self.pool_id, self.capacity)
        self.tasks += 1
        return self._message(Color.GREEN) if self.tasks < self._notice.threshold else None

    def depart(self) -> TokenMessage | None:
        """Finish a task, and announce the color that the pool thereby enters, if any.

        Paper: Sec. 2.1.
        """
        if self.tasks == 0:
            raise nothing_to_depart(self.pool_id)
        self.tasks -= 1
        threshold = self._notice.threshold
        if self.tasks == threshold - 1:
            return self._message(Color.GREEN)
        if self.tasks == threshold:
            return self._message(Color.YELLOW)
        return None

    def rethreshold(self, notice: ThresholdNotice) -> tuple[TokenMessage, ...]:
        """Heed a threshold one step up or down; return the token that the dispatcher cannot infer, if any.

        The dispatcher turns old yellow tokens green on a rise, old green ones yellow on a fall. What it lacks
        are yellow tokens of pools with exactly the new threshold, or green ones of pools below it.

        Departs: the paper does not say how the tokens are rebuilt.
        """
        if notice.epoch <= self._notice.epoch:
            return ()  # a late notice: a newer one was heeded already
        step = notice.threshold - self._notice.threshold
        if abs(step) != 1:
            raise ValueError(
                f"Pool {self.pool_id!r} cannot go from threshold {self._notice.threshold} "
                f"to {notice.threshold}; thresholds move by one."
            )
        self._notice = notice
        if step > 0:
            return (self._message(Color.YELLOW),) if self.tasks == notice.threshold else ()
        return (self._message(Color.GREEN),) if self.tasks < notice.threshold else ()

    def announce(self) -> tuple[TokenMessage, ...]:
        """Return a message for each token that the dispatcher should hold; the greeting of a pool that joins.

        Paper: Sec. 2.1 (which tokens are held).
        """
        threshold = self._notice.threshold
        if self.tasks < threshold:
            return self._message(Color.GREEN), self._message(Color.YELLOW)
        return (self._message(Color.YELLOW),) if self.tasks == threshold else ()

    def _message(self, color: Color) -> TokenMessage:
        return TokenMessage(self.pool_id, color, self._notice.epoch)
