"""The pool's side of the protocol, next to the servers: it knows its sessions and reports them."""

from collections.abc import Hashable

from evenly.core.checks import MAX_COUNT, MAX_NUMBER, no_room
from evenly.core.messages import PoolId, Report
from evenly.core.pool import Pool
from evenly.core.protocol.messages import Kind, PeerMessageCount, ToDispatcher, ToPool
from evenly.core.protocol.tickets import Tickets
from evenly.errors import InputError
from evenly.inputs import shown, whole_number


class PoolPeer:
    """A pool and what it must remember: its sessions, the tickets it has seen, and how many messages it has sent.

    `incarnation` must be higher than at any earlier start of this pool, such as the time of the start.

    A new peer begins with threshold 0, at which a pool reports only when it empties. It learns the one in force
    from the reply to its first heartbeat, and from each client with a ticket; without traffic, from heartbeats.
    While its threshold is too high, a pool reports more than it needs to. While it is too low, the dispatcher
    learns of departures with the next heartbeat only.

    After `leave`, every message says that the pool leaves, until `heartbeat` takes it back. Otherwise a session
    that ends would bring the pool back, and so would a `leave` that is lost or overtaken.
    """

    def __init__(self, pool_id: PoolId, *, incarnation: int, capacity: int | None = None) -> None:
        self._incarnation = whole_number("incarnation", incarnation, 0, MAX_NUMBER)
        self._pool = Pool(pool_id, 0, 0, capacity, every_departure=True)
        self._version = 0  # of the threshold: the ticket after the one that brought it
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
    def threshold(self) -> int:
        """The newest threshold that it was told; 0 before the first."""
        return self._pool.threshold

    @property
    def full(self) -> bool:
        """True if there is no room for another session."""
        return self._pool.full

    @property
    def sent(self) -> PeerMessageCount:
        """The messages sent so far."""
        return self._sent

    def begin(
        self, session: Hashable, ticket: int | None = None, threshold: int | None = None
    ) -> ToDispatcher | None:
        """Take a session, with the ticket and the threshold that its client brings, if any.

        A session that is open already stays one. The dispatcher has counted a client with a ticket at the pick, so
        only an arrival without one may bring a token.
        """
        is_open = self._is_open(session)
        if self._pool.full and not is_open:
            raise no_room(self._pool.pool_id, self._pool.capacity)
        self._see(ticket, threshold)
        if is_open:
            return None
        self._sessions.add(session)
        report = self._pool.arrive()
        return self._token(report) if ticket is None else None

    def refuse(self, ticket: int, threshold: int | None = None) -> ToDispatcher:
        """Turn away a client with a ticket, and give its place back at once."""
        self._see(ticket, threshold)
        self._sent.refusals += 1
        return self._message(Kind.REFUSAL, self._pool.announce())

    def end(self, session: Hashable) -> ToDispatcher | None:
        """End a session; one that is not open is ignored."""
        if not self._is_open(session):
            return None
        self._sessions.remove(session)
        return self._token(self._pool.depart())

    def receive(self, message: ToPool) -> None:
        """Take in the dispatcher's reply to a heartbeat, unless a newer threshold is known."""
        if not isinstance(message, ToPool):
            raise InputError(f"message must be a ToPool, not {shown(message)}.")
        message.check()
        self._arrived.forget_below(message.oldest_ticket)
        if message.version >= self._version:  # no ticket since, but other pools may have moved the threshold
            self._version = message.version
            self._pool.adopt(message.threshold)

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

    def _see(self, ticket: int | None, threshold: int | None) -> None:
        """Note a ticket, and the threshold that comes with it if it is the newest."""
        if threshold is not None:
            whole_number("threshold", threshold, 0, MAX_COUNT)
        if ticket is None:
            return
        self._arrived.add(whole_number("ticket", ticket, 0, MAX_NUMBER - 1))
        if threshold is not None and ticket >= self._version:
            self._version = ticket + 1
            self._pool.adopt(threshold)

    def _token(self, report: Report | None) -> ToDispatcher | None:
        if report is None or report.color is None:
            return None
        self._sent.count(report.color)
        return self._message(Kind.TOKEN, report)

    def _message(self, kind: Kind, report: Report) -> ToDispatcher:
        self._sequence += 1
        kind = Kind.LEAVE if self._leaving else kind
        return ToDispatcher(kind, self._incarnation, self._sequence, report, self._version, self._arrived.ranges)
