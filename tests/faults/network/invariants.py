"""What must hold after every event, whatever the network and the crashes did."""

from evenly.core import Color, PoolId
from evenly.core.protocol import DispatcherPeer, Kind, Pick, PoolPeer, ToDispatcher, ToPool
from evenly.core.protocol.tickets import MAX_RANGES
from tests.faults.network.book import Book
from tests.faults.network.world import require


class History:
    """What was ever given out. No crash and no failover takes it back."""

    def __init__(self) -> None:
        self._tickets: set[tuple[PoolId, int]] = set()

    def give(self, pick: Pick) -> None:
        """Check that a ticket is new: one lease, one place."""
        require((pick.pool, pick.ticket) not in self._tickets, "ticket given out twice: {}", pick)
        self._tickets.add((pick.pool, pick.ticket))


def check_dispatcher(peer: DispatcherPeer, book: Book) -> None:
    """Check the state of the dispatcher against the book."""
    require(peer.threshold >= 0, "negative threshold {}", peer.threshold)
    # In the book, it moves by one at a time.
    require(peer.threshold == book.threshold, "threshold {} should be {}", peer.threshold, book.threshold)
    right = book.estimates()
    estimates = {pool: peer.estimate(pool) for pool in peer.members}
    require(estimates == right, "estimates {} should be {}", estimates, right)
    require(peer.tokens == book.tokens(), "tokens {} should be {}", peer.tokens, book.tokens())
    for pool, tickets in book.open.items():
        have = peer.open_tickets(pool)
        require(len(have) == len(tickets) and set(have) == set(tickets),
                "open tickets of {}: {} should be {}", pool, have, list(tickets))  # fmt: skip
    require(peer.expired == book.expired, "{} expired tickets should be {}", peer.expired, book.expired)


def check_reply(pool: PoolId, reply: ToPool, book: Book) -> None:
    """Check what the dispatcher tells a pool: its threshold, and to forget no ticket that is open."""
    require(reply.threshold == book.threshold, "threshold {} should be {}", reply.threshold, book.threshold)
    tickets = book.open.get(pool, ())
    oldest, newest = min(tickets, default=reply.oldest_ticket), max(tickets, default=0)
    require(reply.oldest_ticket <= oldest, "{} is told to forget open ticket {}", pool, oldest)
    require(newest < reply.version, "ticket {} is newer than the version {}", newest, reply.version)


class PoolBook:
    """What happened at a pool since its last start: sessions, tickets, what it was told, and what it must send."""

    def __init__(self) -> None:
        self.sessions: dict[int, None] = {}
        self._moves = 0  # tasks that went
        self._seen: list[int] = []
        self._oldest = 0
        self._version = 0
        self._threshold = 0
        self._sequence = 0
        self._due: tuple[Kind, Color | None] | None = None  # what the last event makes the pool send
        self.draining = False

    def begin(self, session: int, pick: Pick) -> None:
        """Write down a session: its dispatcher knows of it."""
        self._due = None
        self._carry(pick)
        if session not in self.sessions:
            self.sessions[session] = None
            self._seen.append(pick.ticket)

    def refuse(self, pick: Pick) -> None:
        """Write down a client that was turned away."""
        self._seen.append(pick.ticket)
        self._carry(pick)
        self._due = (Kind.REFUSAL, self._token())

    def end(self, session: int) -> None:
        """Write down the end of a session."""
        self._due = None
        if self.sessions.pop(session, 0) is None:
            self._moves += 1
            if len(self.sessions) <= self._threshold:
                self._due = (Kind.TOKEN, self._token())

    def beat(self) -> None:
        """Write down that a heartbeat is due."""
        self._due = (Kind.HEARTBEAT, self._token())

    def told(self, message: ToPool) -> None:
        """Write down what the dispatcher said: tickets below the oldest may be forgotten."""
        self._oldest = max(self._oldest, message.oldest_ticket)
        if message.version >= self._version:
            self._version, self._threshold = message.version, message.threshold

    def _carry(self, pick: Pick) -> None:
        """Write down the threshold that a client brings, unless a newer one is known."""
        if pick.ticket >= self._version:
            self._version, self._threshold = pick.ticket + 1, pick.threshold

    def check(self, peer: PoolPeer) -> None:
        """Check the pool: its tasks are its sessions, and it sent at most one token message per task."""
        require(peer.tasks == len(self.sessions), "{} tasks in {} sessions", peer.tasks, len(self.sessions))
        tokens = peer.sent.green + peer.sent.yellow
        require(tokens <= self._moves, "{} token messages for {} departures", tokens, self._moves)
        require(peer.threshold == self._threshold, "threshold {} should be {}", peer.threshold, self._threshold)

    def check_sent(self, message: ToDispatcher | None) -> None:
        """Check that the pool sends what the last event calls for, and nothing else.

        Every message of a pool that drains says so: any other kind would make it a member again.
        """
        due = self._due
        if due is not None and self.draining:
            due = (Kind.LEAVE, due[1])
        sent = None if message is None else (message.kind, message.report.color)
        require(sent == due, "{} was sent, not {}", sent, due)
        if message is not None:
            self._check_state(message)

    def _token(self) -> Color | None:
        below = self._threshold - len(self.sessions)
        return Color.GREEN if below > 0 else Color.YELLOW if below == 0 else None

    def _check_state(self, message: ToDispatcher) -> None:
        """Check what every message carries: a new number, the tasks, and every ticket that may still be open."""
        require(message.sequence > self._sequence, "sequence {} was used", message.sequence)
        self._sequence = message.sequence
        require(message.version == self._version, "version {} in {}", self._version, message)
        tasks = message.report.tasks
        require(tasks == len(self.sessions), "{} reported with {} sessions", tasks, len(self.sessions))
        ranges = message.arrived
        self._seen = [ticket for ticket in self._seen if ticket >= self._oldest]
        if len(ranges) < MAX_RANGES:  # beyond it, the oldest are forgotten
            missing = [
                ticket for ticket in self._seen if not any(first <= ticket <= last for first, last in ranges)
            ]
            require(not missing, "tickets {} arrived but are not in {}", missing, ranges)
            # Tickets below the oldest that come late may be among them, but nothing that never came.
            numbers = sum(last - max(first, self._oldest) + 1 for first, last in ranges if last >= self._oldest)
            require(numbers == len(set(self._seen)), "{} tickets arrived, not {}", len(set(self._seen)), ranges)
