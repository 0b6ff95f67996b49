"""The pool's role: it counts its own tasks and reports to the dispatcher when a token is due.

It knows nothing of other pools, of the dispatcher's state or of how a report travels.
"""

from evenly.core.checks import check_capacity, check_pool, check_tasks, no_room, nothing_to_depart
from evenly.core.messages import Color, PoolId, Report, ThresholdNotice
from evenly.errors import InputError
from evenly.inputs import shown


class Pool:
    """A server pool: its tasks, and the last threshold that it was sent.

    Where messages take time, `every_departure` makes it report all departures below the threshold. The paper's
    pool is silent about them once it is green, because its token is at the dispatcher already. But a dispatcher
    with picks on the way counts those on top of the last report, and takes the pool for fuller than it is.

    Paper: Sec. 2.1.
    """

    __slots__ = ("_every_departure", "_notice", "capacity", "pool_id", "tasks")

    def __init__(
        self,
        pool_id: PoolId,
        notice: ThresholdNotice,
        tasks: int = 0,
        capacity: int | None = None,
        *,
        every_departure: bool = False,
    ) -> None:
        check_pool(pool_id)
        self.pool_id = pool_id
        self.capacity = check_capacity(capacity)
        self.tasks = check_tasks(pool_id, tasks, self.capacity)
        self._notice = _checked(notice)
        self._every_departure = every_departure

    @property
    def full(self) -> bool:
        """True if another task would be lost."""
        return self.tasks == self.capacity

    @property
    def notice(self) -> ThresholdNotice:
        """The last threshold that it was sent."""
        return self._notice

    def arrive(self) -> Report | None:
        """Take a task. If the pool is still green, replace the token that the dispatcher discarded.

        Paper: Sec. 2.1.
        """
        if self.full:
            raise no_room(self.pool_id, self.capacity)
        self.tasks += 1
        return self._report(Color.GREEN) if self.tasks < self._notice.threshold else None

    def depart(self) -> Report | None:
        """Finish a task. If the pool turns green or yellow by this, announce it.

        Paper: Sec. 2.1. Departs: with `every_departure`, a green pool reports too.
        """
        if self.tasks == 0:
            raise nothing_to_depart(self.pool_id)
        self.tasks -= 1
        below = self._notice.threshold - self.tasks
        if below == 0:
            return self._report(Color.YELLOW)
        if below == 1 or (self._every_departure and below > 0):
            return self._report(Color.GREEN)
        return None

    def rethreshold(self, notice: ThresholdNotice) -> Report | None:
        """Adopt a threshold and return the answer; None if the notice is late and a newer one came first.

        The dispatcher waits for the answers of all pools, so that a pool answers even if it brings no token. The
        dispatcher knows that a pool with a token at the old threshold is below a higher one, and that a green pool
        is at most at a threshold one lower.

        Departs: the paper does not say how the tokens are rebuilt.
        """
        if _checked(notice).epoch <= self._notice.epoch:
            return None
        old, new = self._notice.threshold, notice.threshold
        self._notice = notice
        known = self.tasks <= old if new > old else self.tasks == new == old - 1
        return self._report(None if known else self._token)

    def announce(self) -> Report:
        """Return the report of a pool that joins.

        Paper: Sec. 2.1 (which tokens are held).
        """
        return self._report(self._token)

    @property
    def _token(self) -> Color | None:
        """The token that the dispatcher should hold; green stands for both."""
        below = self._notice.threshold - self.tasks
        return Color.GREEN if below > 0 else Color.YELLOW if below == 0 else None

    def _report(self, color: Color | None) -> Report:
        return Report(self.pool_id, self.tasks, self._notice.epoch, color)


def _checked(notice: ThresholdNotice) -> ThresholdNotice:
    """Return the notice, or raise InputError if it is something else."""
    if not isinstance(notice, ThresholdNotice):
        raise InputError(f"notice must be a ThresholdNotice, not {shown(notice)}.")
    return notice
