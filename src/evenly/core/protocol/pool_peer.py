"""The pool's side of the protocol, next to the servers: it knows its sessions and reports them."""

from collections.abc import Hashable

from evenly.core.checks import MAX_EPOCH, no_room
from evenly.core.messages import PoolId, Report, ThresholdNotice
from evenly.core.pool import Pool
from evenly.core.protocol.messages import Kind, PeerMessageCount, ToDispatcher, ToPool
from evenly.core.protocol.tickets import Tickets
from evenly.errors import InputError
from evenly.inputs import shown, whole_number


class PoolPeer:
    """A pool and what it must remember: its sessions, the tickets it has seen, and how many messages it has sent.

    `incarnation` must be higher than at any earlier start of this pool, such as the time of the start. A new peer
    knows no threshold; its first heartbeat asks for it.

    After `leave`, every message says that the pool leaves, until `heartbeat` takes it back. Otherwise a session
    that ends would bring the pool back, and so would a `leave` that is lost or overtaken.
    """

    def __init__(self, pool_id: PoolId, *, incarnation: int, capacity: int | None = None) -> None:
        self._incarnation = whole_number("incarnation", incarnation, 0, MAX_EPOCH)
        self._pool = Pool(pool_id, ThresholdNotice(0, epoch=0), 0, capacity, every_departure=True)
        self._sequence = 0
        self._leaving = False
        self._arrived = Tickets()
        self._sessions: set[Hashable] = set()
        self._sent = PeerMessageCount()

    @property
    def tasks(self) -> int:
        """The number of open sessions."""
        return self._pool.tasks

    @property
    def notice(self) -> ThresholdNotice:
        """The last threshold that it was sent."""
        return self._pool.notice

    @property
    def full(self) -> bool:
        """True if there is no room for another session."""
        return self._pool.full

    @property
    def sent(self) -> PeerMessageCount:
        """The messages sent so far."""
        return self._sent

    def begin(self, session: Hashable, ticket: int | None = None) -> ToDispatcher | None:
        """Take a session, with the ticket that its client brings, if any. One that is open already stays one."""
        is_open = self._is_open(session)
        if self._pool.full and not is_open:
            raise no_room(self._pool.pool_id, self._pool.capacity)
        if ticket is not None:
            self._see(ticket)
        if is_open:
            return None
        self._sessions.add(session)
        return self._token(self._pool.arrive())

    def refuse(self, ticket: int) -> ToDispatcher:
        """Turn away a client with a ticket, and give its place back at once."""
        self._see(ticket)
        self._sent.refusals += 1
        return self._message(Kind.REFUSAL, self._pool.announce())

    def end(self, session: Hashable) -> ToDispatcher | None:
        """End a session; one that is not open is ignored."""
        if not self._is_open(session):
            return None
        self._sessions.remove(session)
        return self._token(self._pool.depart())

    def receive(self, message: ToPool) -> ToDispatcher | None:
        """Process a message of the dispatcher, and return the answer if the threshold has changed."""
        if not isinstance(message, ToPool):
            raise InputError(f"message must be a ToPool, not {shown(message)}.")
        oldest = whole_number("oldest_ticket", message.oldest_ticket, 0, MAX_EPOCH)
        answer = self._pool.rethreshold(message.notice)
        self._arrived.forget_below(oldest)
        if answer is None:
            return None
        self._sent.count_answer(answer)
        return self._message(Kind.ANSWER, answer)

    def heartbeat(self) -> ToDispatcher:
        """Return the message to send at regular intervals, the first at once. It takes back `leave`."""
        self._leaving = False
        self._sent.heartbeats += 1
        return self._message(Kind.HEARTBEAT, self._pool.announce())

    def leave(self) -> ToDispatcher:
        """Return the message that asks for no more tasks, to send in place of heartbeats."""
        self._leaving = True
        self._sent.heartbeats += 1
        return self._message(Kind.LEAVE, self._pool.announce())

    def _is_open(self, session: Hashable) -> bool:
        try:
            return session in self._sessions
        except TypeError:
            raise InputError(f"session must be a hashable value, not {shown(session)}.") from None

    def _see(self, ticket: int) -> None:
        self._arrived.add(whole_number("ticket", ticket, 0, MAX_EPOCH))

    def _token(self, report: Report | None) -> ToDispatcher | None:
        if report is None or report.color is None:
            return None
        self._sent.count(report.color)
        return self._message(Kind.TOKEN, report)

    def _message(self, kind: Kind, report: Report) -> ToDispatcher:
        self._sequence += 1
        kind = Kind.LEAVE if self._leaving else kind
        return ToDispatcher(kind, self._incarnation, self._sequence, report, self._arrived.ranges)
