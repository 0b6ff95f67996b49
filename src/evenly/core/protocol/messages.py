"""What travels between the peers. Every message from a pool carries its whole state, so that any one repairs."""

from dataclasses import dataclass
from enum import Enum

from evenly.core.checks import MAX_COUNT, MAX_NUMBER, check_pool
from evenly.core.messages import Color, MessageCount, PoolId, Report
from evenly.core.protocol.tickets import Ranges, check_ranges
from evenly.errors import InputError
from evenly.inputs import shown, whole_number


class Kind(Enum):
    """Why a pool sends a message."""

    TOKEN = "token"  # a task arrived or departed, and a token is due
    HEARTBEAT = "heartbeat"  # to say that it is there; also its first message
    REFUSAL = "refusal"  # a task came with a ticket, and was turned away
    LEAVE = "leave"  # it wants no more tasks; takes the place of all other kinds until the next heartbeat


@dataclass(frozen=True, slots=True)
class ToDispatcher:
    """Pool to dispatcher.

    `incarnation` grows with every start of the pool, `sequence` with every message of an incarnation. `version` is
    that of the threshold that the pool knows. `arrived` are the tickets that the pool has seen.
    """

    kind: Kind
    incarnation: int
    sequence: int
    report: Report
    version: int
    arrived: Ranges

    def check(self) -> None:
        """Raise InputError if no pool can have sent this."""
        if not isinstance(self.kind, Kind):
            raise InputError(f"kind must be a Kind, not {shown(self.kind)}.")
        whole_number("incarnation", self.incarnation, 0, MAX_NUMBER)
        whole_number("sequence", self.sequence, 1, MAX_NUMBER)
        if not isinstance(self.report, Report):
            raise InputError(f"report must be a Report, not {shown(self.report)}.")
        check_pool(self.report.pool)
        self.report.check()
        whole_number("version", self.version, 0, MAX_NUMBER)
        check_ranges(self.arrived)


@dataclass(frozen=True, slots=True)
class ToPool:
    """Dispatcher to pool, in reply to a heartbeat.

    `version` is the number of the pool's next ticket: the threshold is newer than what clients with lower tickets
    carry. No ticket below `oldest_ticket` is open any more.
    """

    threshold: int
    version: int
    oldest_ticket: int

    def check(self) -> None:
        """Raise InputError if no dispatcher can have sent this."""
        whole_number("threshold", self.threshold, 0, MAX_COUNT)
        whole_number("version", self.version, 0, MAX_NUMBER)
        whole_number("oldest_ticket", self.oldest_ticket, 0, self.version, why="the version")


@dataclass(frozen=True, slots=True)
class Pick:
    """The answer to a client: go to this pool, with this ticket, before it expires.

    `color` is that of the token used, None without one. `threshold` is the one in force after the pick: the client
    carries it to the pool.
    """

    pool: PoolId
    ticket: int
    expires: float
    color: Color | None
    threshold: int


@dataclass(slots=True)
class PeerMessageCount(MessageCount):
    """The number of messages that a pool has sent over a network: `heartbeats` and `refusals` come on top."""

    heartbeats: int = 0
    refusals: int = 0
