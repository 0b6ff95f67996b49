"""What must hold after every event, whatever the network and the crashes did."""

from collections.abc import Iterable

from evenly.core import Color, PoolId
from evenly.core.protocol import DispatcherPeer, Kind, Pick, PoolPeer, ToDispatcher, ToPool
from evenly.core.protocol.tickets import MAX_RANGES
from tests.faults.network.book import Book
from tests.faults.network.world import require


class History:
    """What was ever given out. No crash and no failover takes it back."""

    def __init__(self) -> None:
        self._tickets: set[tuple[PoolId, int]] = set()
        self._thresholds: dict[int, int] = {}

    def give(self, pick: Pick) -> None:
        """Check that a ticket is new: one lease, one place."""
        require((pick.pool, pick.ticket) not in self._tickets, "ticket given out twice: {}", pick)
        self._tickets.add((pick.pool, pick.ticket))

    def announce(self, epoch: int, threshold: int) -> None:
        """Check that an epoch has one threshold, so that pools that know the epoch know the threshold."""
        first = self._thresholds.setdefault(epoch, threshold)
        require(first == threshold, "epoch {} has thresholds {} and {}", epoch, first, threshold)


def check_dispatcher(peer: DispatcherPeer, book: Book) -> None:
    """Check the state of the dispatcher against the book."""
    dispatcher = peer.dispatcher
    threshold, epoch = dispatcher.threshold, dispatcher.epoch
    require(threshold >= 0, "negative threshold {}", threshold)
    # In the book, it moves by one at a time, and only when all members know the last change.
    require(
        (threshold, epoch) == (book.threshold, book.epoch),
        "threshold {} in epoch {} should be {} in {}", threshold, epoch, book.threshold, book.epoch,
    )  # fmt: skip
    require(dispatcher.settled == book.settled, "settled is {}", dispatcher.settled)
    right = book.estimates()
    estimates = {pool: dispatcher.estimate(pool) for pool in dispatcher.pools}
    require(estimates == right, "estimates {} should be {}", estimates, right)
    green = {pool for pool, estimate in right.items() if estimate < threshold}
    yellow = {pool for pool, estimate in right.items() if estimate <= threshold}
    require(set(dispatcher.green) == green, "green tokens {} should be {}", dispatcher.green, green)
    require(set(dispatcher.yellow) == yellow, "yellow tokens {} should be {}", dispatcher.yellow, yellow)
    for pool, tickets in book.open.items():
        have = peer.open_tickets(pool)
        require(len(have) == len(tickets) and set(have) == set(tickets),
                "open tickets of {}: {} should be {}", pool, have, list(tickets))  # fmt: skip
    require(peer.expired == book.expired, "{} expired tickets should be {}", peer.expired, book.expired)


def check_notices(messages: Iterable[tuple[PoolId, ToPool]], book: Book, history: History) -> None:
    """Check what the dispatcher tells pools: they must not forget a ticket that is open."""
    for pool, message in messages:
        history.announce(message.notice.epoch, message.notice.threshold)
        oldest = min(book.open.get(pool, ()), default=message.oldest_ticket)
        require(message.oldest_ticket <= oldest, "{} is told to forget open ticket {}", pool, oldest)


class PoolBook:
    """What happened at a pool since its last start: sessions, tickets, what it was told, and what it must send."""

    def __init__(self) -> None:
        self.sessions: dict[int, None] = {}
        self._moves = 0  # tasks that came or went
        self._seen: list[int] = []
        self._oldest = 0
        self._epoch = 0
        self._threshold = 0
        self._sequence = 0
        self._due: tuple[Kind, Color | None] | None = None  # what the last event makes the pool send
        self.draining = False

    def begin(self, session: int, ticket: int) -> None:
        """Write down a session that came with a ticket."""
        self._due = None
        if session not in self.sessions:
            self.sessions[session] = None
            self._moves += 1
            self._seen.append(ticket)
            if len(self.sessions) < self._threshold:
                self._due = (Kind.TOKEN, Color.GREEN)

    def refuse(self, ticket: int) -> None:
        """Write down a client that was turned away."""
        self._seen.append(ticket)
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
        self._due = None
        if message.notice.epoch > self._epoch:
            self._epoch, old = message.notice.epoch, self._threshold
            self._threshold = new = message.notice.threshold
            tasks = len(self.sessions)
            known = tasks <= old if new > old else tasks == new == old - 1
            self._due = (Kind.ANSWER, None if known else self._token())

    def check(self, peer: PoolPeer) -> None:
        """Check the pool: its tasks are its sessions, and it sent at most two token messages per task."""
        require(peer.tasks == len(self.sessions), "{} tasks in {} sessions", peer.tasks, len(self.sessions))
        tokens = peer.sent.green + peer.sent.yellow
        require(tokens <= self._moves, "{} token messages for {} arrivals and departures", tokens, self._moves)
        require(peer.notice.epoch == self._epoch, "epoch {} should be {}", peer.notice.epoch, self._epoch)

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
        require(message.report.epoch == self._epoch, "epoch {} in {}", self._epoch, message)
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
