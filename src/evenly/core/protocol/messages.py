"""What travels between the peers. Every message from a pool carries its whole state, so that any one repairs."""

from dataclasses import dataclass
from enum import Enum

from evenly.core.checks import MAX_EPOCH, check_pool
from evenly.core.messages import Color, MessageCount, PoolId, Report, ThresholdNotice
from evenly.core.protocol.tickets import Ranges, check_ranges
from evenly.errors import InputError
from evenly.inputs import shown, whole_number


class Kind(Enum):
    """Why a pool sends a message."""

    TOKEN = "token"  # a task arrived or departed, and a token is due
    ANSWER = "answer"  # to a threshold change
    HEARTBEAT = "heartbeat"  # to say that it is there; also its first message
    REFUSAL = "refusal"  # a task came with a ticket, and was turned away
    LEAVE = "leave"  # it wants no more tasks; takes the place of all other kinds until the next heartbeat


@dataclass(frozen=True, slots=True)
class ToDispatcher:
    """Pool to dispatcher.

    `incarnation` grows with every start of the pool, `sequence` with every message of an incarnation. `arrived`
    are the tickets that the pool has seen.
    """

    kind: Kind
    incarnation: int
    sequence: int
    report: Report
    arrived: Ranges

    def check(self) -> None:
        """Raise InputError if no pool can have sent this."""
        if not isinstance(self.kind, Kind):
            raise InputError(f"kind must be a Kind, not {shown(self.kind)}.")
        whole_number("incarnation", self.incarnation, 0, MAX_EPOCH)
        whole_number("sequence", self.sequence, 1, MAX_EPOCH)
        if not isinstance(self.report, Report):
            raise InputError(f"report must be a Report, not {shown(self.report)}.")
        check_pool(self.report.pool)
        self.report.check()
        check_ranges(self.arrived)


@dataclass(frozen=True, slots=True)
class ToPool:
    """Dispatcher to pool: the threshold, and the number below which no ticket is open any more."""

    notice: ThresholdNotice
    oldest_ticket: int


@dataclass(frozen=True, slots=True)
class Pick:
    """The answer to a client: go to this pool, with this ticket, before it expires.

    `color` is that of the token used, None without one.
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
