"""The dispatcher's side of the protocol: its members, the picks on the way, and the messages to pools."""

from collections import deque
from collections.abc import Collection, Hashable, Iterator

from evenly.core.checks import MAX_EPOCH, check_pool
from evenly.core.dispatcher import Dispatcher
from evenly.core.learning import LearningRule
from evenly.core.messages import Color, PoolId
from evenly.core.protocol.answers import Answers
from evenly.core.protocol.messages import Kind, Pick, ToDispatcher, ToPool
from evenly.core.protocol.records import MAX_POOLS, KnownPool, Record, too_many_pools
from evenly.core.protocol.restrictions import Restrictions
from evenly.core.randomness import Choose
from evenly.errors import InputError
from evenly.inputs import finite_number, positive_number, shown, whole_number

MAX_TERM = 2**31 - 1
TERM = 2**32
"""Epochs and tickets of a term are numbered from this times the term, so that those of a later term are higher."""
MAX_PICKS = 1_000  # in one request
MAX_PLACES = 500_000  # picks within one lease: each takes memory until then


class TooManyPicksError(InputError):
    """There are as many picks within one lease as there may be."""


class DispatcherPeer:
    """A dispatcher and what it must remember: members, open tickets, and answers to repeated requests.

    `term` must be higher than at any earlier start of this dispatcher. `lease` is how long a place is kept for a
    client that has not arrived; `silence` is how long a pool may be silent before it is taken for dead; `memory`
    is how long the answer to a request key is repeated. All times are in the unit of the argument `now`. Where
    that goes back, the latest time counts.

    The rule waits for answers no longer than `silence`. A pool that sends but receives nothing never answers: it
    slows learning down, but does not end it.
    """

    def __init__(
        self,
        threshold: int = 0,
        rule: LearningRule | None = None,
        *,
        term: int,
        lease: float,
        silence: float,
        memory: float,
        highest: int | None = None,
    ) -> None:
        self._first = whole_number("term", term, 1, MAX_TERM) * TERM
        self._lease = positive_number("lease", lease)
        self._silence = positive_number("silence", silence)
        self._memory = positive_number("memory", memory)
        self._dispatcher = Dispatcher(threshold, rule, highest, epoch=self._first)
        self._records: dict[PoolId, Record] = {}
        self._expiring: deque[tuple[float, PoolId, int]] = deque()
        self._answers = Answers(self._memory)
        self._restrictions = Restrictions()
        self._outbox: dict[PoolId, ToPool] = {}  # a newer message takes the place of an older one
        self._unused = self._first  # the lowest number that no ticket of any pool has
        self._next_check = float("inf")  # no pool is silent for too long before this time
        self._now = float("-inf")
        self._unsettled_since: float | None = None
        self.notices = 0  # sent so far
        self.expired = 0  # tickets so far whose clients did not come in time
        self.released = 0  # tickets so far whose clients said that they would not come

    @property
    def dispatcher(self) -> Dispatcher:
        """The estimates, the tokens and the threshold; read-only."""
        return self._dispatcher

    def open_tickets(self, pool: PoolId) -> tuple[int, ...]:
        """Return the tickets of the pool that may still be on the way."""
        check_pool(pool)
        record = self._records.get(pool)
        return () if record is None else tuple(record.open)

    def messages(self) -> list[tuple[PoolId, ToPool]]:
        """Return the messages to send, with the pools to send them to; once, and at most one per pool."""
        outbox = list(self._outbox.items())
        self._outbox.clear()
        self.notices += len(outbox)
        return outbox

    def pick(
        self, now: float, choose: Choose, key: Hashable = None, exclude: Collection[PoolId] = ()
    ) -> Pick | None:
        """Pick a pool for a task, none of those to `exclude`; None if there is none with room.

        The same key gets the same answer while it is kept.
        """
        return next(iter(self.pick_many(now, choose, 1, key, exclude)), None)

    def pick_many(
        self, now: float, choose: Choose, count: int, key: Hashable = None, exclude: Collection[PoolId] = ()
    ) -> tuple[Pick, ...]:
        """Pick pools for several tasks, for all of them or for none. A pool may be picked more than once."""
        request = whole_number("count", count, 1, MAX_PICKS), frozenset(exclude)
        _check_key(key)
        self.tick(now)
        answer = None if key is None else self._answers.find(key, request)
        if answer is not None:
            return answer
        if len(self._expiring) + count > MAX_PLACES:
            raise TooManyPicksError(f"There can be at most {MAX_PLACES} picks within one lease.")
        picks: list[Pick] = []
        for _ in range(count):
            pick = self._pick(choose, request[1])
            if pick is None:
                for each in picks:
                    self._close(each.pool, each.ticket)
                    self._expiring.pop()  # they are the last ones
                return ()
            picks.append(pick)
        if key is not None:
            self._answers.remember(self._now, key, request, tuple(picks))
        return tuple(picks)

    def receive(self, now: float, message: ToDispatcher) -> bool:
        """Take in a message of a pool. Return False if a newer one came first."""
        if not isinstance(message, ToDispatcher):
            raise InputError(f"message must be a ToDispatcher, not {shown(message)}.")
        message.check()
        self.tick(now)
        pool = message.report.pool
        record = self._records.get(pool)
        if record is None:
            record = self._new_record(message)
        if (message.incarnation, message.sequence) <= (record.incarnation, record.sequence):
            if message.kind is Kind.HEARTBEAT and pool in self._dispatcher.pools:
                self._tell(pool)  # overtaken, but the pool relies on the reply
            return False
        record.incarnation, record.sequence = message.incarnation, message.sequence
        record.heard = self._now
        self._check_by(self._now + self._silence)
        record.close(message.arrived)
        record.report, record.leaving = message.report, message.kind is Kind.LEAVE
        self._catch_up_epoch(message.report.epoch)
        self._put_in(pool)
        if message.kind is Kind.HEARTBEAT:
            self._tell(pool)
        return True

    def release(self, now: float, pool: PoolId, ticket: int) -> None:
        """Give back the place of a client that will not come."""
        check_pool(pool)
        whole_number("ticket", ticket, 0, MAX_EPOCH)
        self.tick(now)
        self.released += self._close(pool, ticket)

    def tick(self, now: float) -> None:
        """Give back the places of clients that did not come, and take out the pools that are silent."""
        self._now = now = max(self._now, finite_number("now", now))
        while self._expiring and self._expiring[0][0] <= now:
            _, pool, ticket = self._expiring.popleft()
            self.expired += self._close(pool, ticket)
        self._answers.forget(now)
        if now >= self._next_check:
            self._drop_silent_pools()
        if self._dispatcher.settled:
            self._unsettled_since = None
        elif self._unsettled_since is None:
            self._unsettled_since = now
        elif now >= self._unsettled_since + self._silence:
            self._unsettled_since = None
            self._dispatcher.settle()

    def set_capacity(self, pool: PoolId, capacity: int | None) -> None:
        """Pick the pool no more while its estimate is at the capacity; None means no limit."""
        self._restrictions.set_capacity(pool, capacity, self._records)
        self._check_room(pool)

    def drain(self, pool: PoolId) -> None:
        """Give the pool no more tasks, until `undrain`: also not if it restarts, or was forgotten meanwhile."""
        self._restrictions.drain(pool)
        self._take_out(pool)

    def undrain(self, pool: PoolId) -> None:
        """Give the pool tasks again."""
        self._restrictions.undrain(pool)
        record = self._records.get(pool)
        if record is not None and record.heard + self._silence > self._now:
            self._put_in(pool)

    @property
    def drained(self) -> frozenset[PoolId]:
        """The pools that the operator drains, whether they are there or not."""
        return self._restrictions.drained

    def disconnect(self, now: float, pool: PoolId, grace: float) -> None:
        """Take the pool for dead unless it is heard again within `grace`: its connection has broken."""
        check_pool(pool)
        self.tick(now)
        record = self._records.get(pool)
        if record is not None:
            record.heard = min(record.heard, self._now + finite_number("grace", grace) - self._silence)
            self._check_by(record.heard + self._silence)

    def catch_up(self) -> None:
        """Raise the threshold to the median number of tasks, if it is lower. For a start against busy pools.

        The median, so that one pool with a wrong count cannot raise it beyond reason.
        """
        dispatcher = self._dispatcher
        if dispatcher.rule is None or not dispatcher.pools:
            return
        estimates = sorted(dispatcher.estimate(pool) or 0 for pool in dispatcher.pools)
        median = min(estimates[(len(estimates) - 1) // 2], dispatcher.highest)
        if median > dispatcher.threshold:
            dispatcher.restart(median)
            self._tell_all()

    def known_pools(self) -> Iterator[KnownPool]:
        """Yield the pools that have been heard lately, or have tickets on the way. Others may come meanwhile."""
        for pool, record in list(self._records.items()):
            yield KnownPool(
                pool=pool,
                tasks=record.report.tasks,
                open_tickets=len(record.open),
                silent_for=self._now - record.heard,
                member=pool in self._dispatcher.pools,
                draining=self._restrictions.draining(pool),
                leaving=record.leaving,
                full=pool in self._restrictions.full,
            )

    def begin_term(self, term: int) -> None:
        """Go on in a new term, because what happened at the end of the last one may be forgotten here.

        Pools may have heard of threshold changes that are not known here, and clients may hold tickets. In the
        new term both get numbers that were not used.
        """
        first = whole_number("term", term, self._first // TERM + 1, MAX_TERM) * TERM
        self._dispatcher.restart(self._dispatcher.threshold, first)
        self._first = self._unused = first
        self._unsettled_since = None
        for record in self._records.values():
            record.next_ticket = first
        self._tell_all()

    def _pick(self, choose: Choose, exclude: frozenset[PoolId]) -> Pick | None:
        dispatcher = self._dispatcher
        threshold = dispatcher.threshold
        full = self._restrictions.full
        pool = dispatcher.dispatch(choose, exclude | full if full else exclude)
        if pool is None:
            return None
        above = (dispatcher.estimate(pool) or 0) - 1 - threshold  # before the pick
        color = Color.GREEN if above < 0 else Color.YELLOW if above == 0 else None
        self._check_room(pool)
        pick = Pick(pool, self._new_ticket(pool), self._now + self._lease, color, threshold)
        if dispatcher.learn() is not None:
            self._tell_all()
        return pick

    def _new_record(self, message: ToDispatcher) -> Record:
        """Make a record for a pool that is new here. Tickets that it has seen elsewhere are not used again."""
        if len(self._records) >= MAX_POOLS:
            raise too_many_pools()
        seen = message.arrived[-1][1] if message.arrived else 0
        in_term = seen < self._first + TERM - 1  # a later term begins by itself, when a pool reports its epoch
        record = Record(self._now, max(self._unused, seen + 1 if in_term else 0), message.report)
        self._records[message.report.pool] = record
        return record

    def _catch_up_epoch(self, epoch: int) -> None:
        """Begin a later term if a pool knows a later epoch, from a dispatcher whose state is not known here."""
        term = epoch // TERM + 1
        if epoch > self._dispatcher.epoch and term <= MAX_TERM:
            self.begin_term(term)

    def _put_in(self, pool: PoolId) -> None:
        """Make the pool a member with its newest report, unless it drains or leaves."""
        record = self._records[pool]
        if record.leaving or self._restrictions.draining(pool):
            self._take_out(pool)
            return
        if pool not in self._dispatcher.pools:
            self._dispatcher.join(pool)
        self._dispatcher.receive(record.report, unseen=len(record.open))
        self._check_room(pool)

    def _check_room(self, pool: PoolId) -> None:
        member = pool in self._dispatcher.pools
        self._restrictions.check_room(pool, self._dispatcher.estimate(pool) if member else None)

    def _new_ticket(self, pool: PoolId) -> int:
        record = self._records[pool]
        ticket = record.next_ticket
        record.next_ticket += 1
        self._unused = max(self._unused, record.next_ticket)
        record.open[ticket] = None
        self._expiring.append((self._now + self._lease, pool, ticket))
        return ticket

    def _close(self, pool: PoolId, ticket: int) -> bool:
        """Give back the place of a ticket; return False if it is not open."""
        record = self._records.get(pool)
        if record is None or ticket not in record.open:
            return False
        del record.open[ticket]
        if pool in self._dispatcher.pools:
            self._dispatcher.add(pool, -1)
            self._check_room(pool)
        return True

    def _drop_silent_pools(self) -> None:
        """Take out the pools that are silent for too long, and forget those without open tickets."""
        self._next_check = float("inf")
        for pool, record in list(self._records.items()):
            due = record.heard + self._silence
            if due <= self._now:
                self._take_out(pool)
                if not record.open:
                    del self._records[pool]
                    continue
                due = self._now + self._lease  # by then, its tickets have expired
            self._check_by(due)

    def _check_by(self, due: float) -> None:
        self._next_check = min(self._next_check, due)

    def _take_out(self, pool: PoolId) -> None:
        self._outbox.pop(pool, None)
        if pool in self._dispatcher.pools:
            self._dispatcher.leave(pool)
            self._check_room(pool)

    def _tell(self, pool: PoolId) -> None:
        record = self._records[pool]
        oldest = next(iter(record.open), record.next_ticket)
        self._outbox[pool] = ToPool(self._dispatcher.notice, oldest)

    def _tell_all(self) -> None:
        """Send the threshold to all members after a change."""
        for pool in self._dispatcher.pools:
            self._tell(pool)


def _check_key(key: Hashable) -> None:
    try:
        hash(key)
    except TypeError:
        raise InputError(f"key must be a hashable value or None, not {shown(key)}.") from None
