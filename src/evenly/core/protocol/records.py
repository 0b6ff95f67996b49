"""What the dispatcher remembers about each pool."""

from dataclasses import dataclass, field

from evenly.core.messages import PoolId, Report
from evenly.core.protocol.tickets import Ranges, Tickets
from evenly.errors import InputError

MAX_POOLS = 10_000


@dataclass(slots=True)
class Record:
    """What is known about a pool, whether it is a member now or not."""

    heard: float  # when it last sent something new
    next_ticket: int
    report: Report  # its newest
    leaving: bool = False
    incarnation: int = -1
    sequence: int = 0
    open: dict[int, None] = field(default_factory=dict)  # a set, ascending: tickets that may still be on the way

    @property
    def estimate(self) -> int:
        """How many tasks it should have: those of its report, and those on the way."""
        return int(self.report.tasks) + len(self.open)

    def close(self, arrived: Ranges) -> None:
        """Remove the tickets that have arrived.

        Every message repeats what earlier ones said. So this looks at no number below the oldest open ticket, and
        at all numbers of the ranges or at all open tickets, whichever are fewer.
        """
        if not self.open or not arrived:
            return
        oldest = next(iter(self.open))
        news = tuple((max(first, oldest), last) for first, last in arrived if last >= oldest)
        if sum(last - first + 1 for first, last in news) < len(self.open):
            for first, last in news:
                for ticket in range(first, last + 1):
                    self.open.pop(ticket, None)
        else:
            tickets = Tickets(news)
            for ticket in [ticket for ticket in self.open if ticket in tickets]:
                del self.open[ticket]


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownPool:
    """A pool as the dispatcher knows it: what it last reported, how long ago, and the tickets on the way.

    `member` is False if it gets no tasks: because it is `draining` (the operator wants that), `leaving` (it said
    so itself) or silent. A member that is `full` gets none for the moment.
    """

    pool: PoolId
    tasks: int
    open_tickets: int
    silent_for: float
    member: bool
    draining: bool
    leaving: bool
    full: bool


def too_many_pools() -> InputError:
    """Return the error for one pool too many."""
    return InputError(f"There can be at most {MAX_POOLS} pools.")
