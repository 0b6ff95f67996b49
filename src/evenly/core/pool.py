"""The pool's role: it counts its own tasks and tells the dispatcher when a token is due.

It knows nothing of other pools, of the dispatcher's state or of how a message travels.
"""

from evenly.core.checks import check_capacity, check_pool, check_tasks, no_room, nothing_to_depart
from evenly.core.messages import Color, PoolId, ThresholdNotice, TokenMessage
from evenly.errors import InputError
from evenly.inputs import shown


class Pool:
    """A server pool: its tasks, and the last threshold that it was sent.

    Paper: Sec. 2.1.
    """

    __slots__ = ("_notice", "capacity", "pool_id", "tasks")

    def __init__(
        self, pool_id: PoolId, notice: ThresholdNotice, tasks: int = 0, capacity: int | None = None
    ) -> None:
        check_pool(pool_id)
        self.pool_id = pool_id
        self.capacity = check_capacity(capacity)
        self.tasks = check_tasks(pool_id, tasks, self.capacity)
        self._notice = _checked(notice)

    @property
    def full(self) -> bool:
        """True if another task would be lost."""
        return self.tasks == self.capacity

    def arrive(self) -> TokenMessage | None:
        """Take a task. If the pool is still green, replace the token that the dispatcher discarded.

        Paper: Sec. 2.1.
        """
        if self.full:
            raise no_room(self.pool_id, self.capacity)
        self.tasks += 1
        return self._message(Color.GREEN) if self.tasks < self._notice.threshold else None

    def depart(self) -> TokenMessage | None:
        """Finish a task. If the pool turns green or yellow by this, announce it.

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
        """Adopt a threshold one step up or down, and return the token that the dispatcher cannot infer, if any.

        On a rise the dispatcher turns old yellow tokens green, and lacks the yellow tokens of pools with exactly
        the new threshold. On a fall it turns old green tokens yellow, and lacks the green ones of pools below it.

        Departs: the paper does not say how the tokens are rebuilt.
        """
        if _checked(notice).epoch <= self._notice.epoch:
            return ()  # late: a newer notice came first
        step = notice.threshold - self._notice.threshold
        if abs(step) != 1:
            raise InputError(
                f"Pool {shown(self.pool_id)} cannot go from threshold {self._notice.threshold} "
                f"to {notice.threshold}: thresholds move by one."
            )
        self._notice = notice
        if step == 1:
            return (self._message(Color.YELLOW),) if self.tasks == notice.threshold else ()
        return (self._message(Color.GREEN),) if self.tasks < notice.threshold else ()

    def announce(self) -> tuple[TokenMessage, ...]:
        """Return a message for each token that the dispatcher should hold, for a pool that joins.

        Paper: Sec. 2.1 (which tokens are held).
        """
        threshold = self._notice.threshold
        if self.tasks < threshold:
            return self._message(Color.GREEN), self._message(Color.YELLOW)
        return (self._message(Color.YELLOW),) if self.tasks == threshold else ()

    def _message(self, color: Color) -> TokenMessage:
        return TokenMessage(self.pool_id, color, self._notice.epoch)


def _checked(notice: ThresholdNotice) -> ThresholdNotice:
    """Return the notice, or raise InputError if it is something else."""
    if not isinstance(notice, ThresholdNotice):
        raise InputError(f"notice must be a ThresholdNotice, not {shown(notice)}.")
    return notice
