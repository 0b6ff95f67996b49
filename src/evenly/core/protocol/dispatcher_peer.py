"""The dispatcher's side of the protocol: its members, the picks on the way, and the threshold."""

from collections import deque
from collections.abc import Collection, Hashable, Iterator

from evenly.core.checks import MAX_COUNT, MAX_NUMBER, check_pool, chosen, not_member
from evenly.core.dispatcher import check_rule
from evenly.core.learning import LearningRule
from evenly.core.messages import Color, PoolId
from evenly.core.protocol.answers import Answers
from evenly.core.protocol.messages import Kind, Pick, ToDispatcher, ToPool
from evenly.core.protocol.ranking import Ranking
from evenly.core.protocol.records import MAX_POOLS, KnownPool, Record, too_many_pools
from evenly.core.protocol.restrictions import Restrictions
from evenly.core.randomness import Choose
from evenly.errors import InputError
from evenly.inputs import finite_number, positive_number, shown, whole_number

MAX_TERM = 2**31 - 1
TERM = 2**32
"""The tickets of a term are numbered from this times the term, so that those of a later term are higher."""
MAX_PICKS = 1_000  # in one request
MAX_PLACES = 500_000  # picks within one lease: each takes memory until then


class TooManyPicksError(InputError):
    """There are as many picks within one lease as there may be."""


class DispatcherPeer:
    """A dispatcher and what it must remember: members, open tickets, and answers to repeated requests.

    Its estimate of a pool is the number of tasks in the newest report, plus the open tickets that the report does
    not cover. A pick takes a pool with the smallest estimate, among the pools that can take a task. Those that are
    full, drain, leave or are silent do not count in the learning rule either: a full pool that kept its tokens
    would hold the threshold at its capacity.

    The rule acts at every pick, also while messages are on the way. A rise needs all of these pools but one above
    the threshold, so none takes it above the sum of their estimates divided by one less than their number.

    `term` must be higher than at any earlier start of this dispatcher. `lease` is how long a place is kept for a
    client that has not arrived; `silence` is how long a pool may be silent before it is taken for dead; `memory`
    is how long the answer to a request key is repeated. All times are in the unit of the argument `now`. Where
    that goes back, the latest time counts. `highest` is the largest threshold allowed (default: no limit).
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
        self._highest = MAX_COUNT if highest is None else whole_number("highest", highest, 0, MAX_COUNT)
        self._ranking = Ranking(whole_number("threshold", threshold, 0, self._highest))
        self.rule = rule
        self._records: dict[PoolId, Record] = {}
        self._expiring: deque[tuple[float, PoolId, int]] = deque()
        self._answers = Answers(self._memory)
        self._restrictions = Restrictions()
        self._unused = self._first  # the lowest number that no ticket of any pool has
        self._next_check = float("inf")  # no pool is silent for too long before this time
        self._now = float("-inf")
        self.expired = 0  # tickets so far whose clients did not come in time
        self.released = 0  # tickets so far whose clients said that they would not come

    @property
    def rule(self) -> LearningRule | None:
        """The rule that moves the threshold, None if it stays."""
        return self._rule

    @rule.setter
    def rule(self, rule: LearningRule | None) -> None:
        self._rule = check_rule(rule)

    @property
    def threshold(self) -> int:
        """The threshold in force."""
        return self._ranking.threshold

    @property
    def term(self) -> int:
        """The term in force."""
        return self._first // TERM

    @property
    def tokens(self) -> tuple[int, int]:
        """The numbers of green and yellow tokens: pools that can take a task, and have few enough for it."""
        return self._ranking.green, self._ranking.yellow

    @property
    def members(self) -> tuple[PoolId, ...]:
        """The pools that get tasks, now or when they are no longer full."""
        return tuple(pool for pool, record in self._records.items() if self._serves(pool, record))

    def estimate(self, pool: PoolId) -> int:
        """Return the estimated number of tasks of a pool that is known."""
        check_pool(pool)
        if pool not in self._records:
            raise not_member(pool)
        return self._records[pool].estimate

    def open_tickets(self, pool: PoolId) -> tuple[int, ...]:
        """Return the tickets of the pool that may still be on the way."""
        check_pool(pool)
        record = self._records.get(pool)
        return () if record is None else tuple(record.open)

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
        threshold = self.threshold
        for _ in range(count):
            pick = self._pick(choose, request[1])
            if pick is None:
                self._ranking.threshold = threshold
                for each in picks:
                    self._close(each.pool, each.ticket)
                    self._expiring.pop()  # they are the last ones
                return ()
            picks.append(pick)
        if key is not None:
            self._answers.remember(self._now, key, request, tuple(picks))
        return tuple(picks)

    def receive(self, now: float, message: ToDispatcher) -> ToPool | None:
        """Take in a message of a pool, unless a newer one came first. Return the reply if it is a heartbeat."""
        if not isinstance(message, ToDispatcher):
            raise InputError(f"message must be a ToDispatcher, not {shown(message)}.")
        message.check()
        self.tick(now)
        pool = message.report.pool
        record = self._records.get(pool)
        if record is None:
            record = self._new_record(message)
        if (message.incarnation, message.sequence) > (record.incarnation, record.sequence):
            record.incarnation, record.sequence = message.incarnation, message.sequence
            record.heard = self._now
            self._check_by(self._now + self._silence)
            record.close(message.arrived)
            record.report, record.leaving = message.report, message.kind is Kind.LEAVE
            if message.version > record.next_ticket:
                self._outdo(message.version)
            self._rank(pool)
        if message.kind is not Kind.HEARTBEAT:
            return None
        oldest = next(iter(record.open), record.next_ticket)
        return ToPool(self.threshold, record.next_ticket, oldest)

    def release(self, now: float, pool: PoolId, ticket: int) -> None:
        """Give back the place of a client that will not come."""
        check_pool(pool)
        whole_number("ticket", ticket, 0, MAX_NUMBER)
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

    def set_capacity(self, pool: PoolId, capacity: int | None) -> None:
        """Pick the pool no more while its estimate is at the capacity; None means no limit."""
        self._restrictions.set_capacity(pool, capacity, self._records)
        self._rank(pool)

    def drain(self, pool: PoolId) -> None:
        """Give the pool no more tasks, until `undrain`: also not if it restarts, or was forgotten meanwhile."""
        self._restrictions.drain(pool)
        self._rank(pool)

    def undrain(self, pool: PoolId) -> None:
        """Give the pool tasks again."""
        self._restrictions.undrain(pool)
        self._rank(pool)

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
            self.tick(now)

    def catch_up(self) -> None:
        """Raise the threshold to the median number of tasks, if it is lower. For a start against busy pools.

        The median, so that one pool with a wrong count cannot raise it beyond reason.
        """
        if self._rule is not None:
            self._ranking.threshold = max(self.threshold, min(self._ranking.median(), self._highest))

    def known_pools(self) -> Iterator[KnownPool]:
        """Yield the pools that have been heard lately, or have tickets on the way. Others may come meanwhile."""
        for pool, record in list(self._records.items()):
            yield KnownPool(
                pool=pool,
                tasks=record.report.tasks,
                open_tickets=len(record.open),
                silent_for=self._now - record.heard,
                member=self._serves(pool, record),
                draining=self._restrictions.draining(pool),
                leaving=record.leaving,
                full=self._restrictions.full(pool, record.estimate),
            )

    def begin_term(self, term: int) -> None:
        """Go on in a new term, because what happened at the end of the last one may be forgotten here.

        Clients may hold tickets that are not known here. In the new term no number is used twice.
        """
        self._first = self._unused = whole_number("term", term, self.term + 1, MAX_TERM) * TERM
        for record in self._records.values():
            record.next_ticket = self._first

    def _pick(self, choose: Choose, exclude: frozenset[PoolId]) -> Pick | None:
        ranking = self._ranking
        candidates = ranking.lowest(exclude)
        if not candidates:
            return None
        pool = chosen(choose, candidates)
        above = self._records[pool].estimate - self.threshold
        color = Color.GREEN if above < 0 else Color.YELLOW if above == 0 else None
        step = 0 if self._rule is None else self._rule.step(len(ranking), ranking.green, ranking.yellow)
        ticket = self._new_ticket(pool)
        self._rank(pool)
        if step and 0 <= self.threshold + step <= self._highest:
            ranking.threshold += step
        return Pick(pool, ticket, self._now + self._lease, color, self.threshold)

    def _new_record(self, message: ToDispatcher) -> Record:
        """Make a record for a pool that is new here."""
        if len(self._records) >= MAX_POOLS:
            raise too_many_pools()
        record = Record(self._now, self._unused, message.report)
        self._records[message.report.pool] = record
        return record

    def _outdo(self, version: int) -> None:
        """Begin a later term: a pool knows tickets of a dispatcher whose state is not known here."""
        term = version // TERM + 1
        if term <= MAX_TERM:
            self.begin_term(term)

    def _serves(self, pool: PoolId, record: Record) -> bool:
        """Return whether the pool gets tasks, at least when it has room."""
        heard = record.heard + self._silence > self._now
        return heard and not record.leaving and not self._restrictions.draining(pool)

    def _rank(self, pool: PoolId) -> None:
        """Put the pool where its estimate belongs, or take it out if it cannot take a task."""
        record = self._records.get(pool)
        if record is None or not self._serves(pool, record) or self._restrictions.full(pool, record.estimate):
            self._ranking.discard(pool)
        else:
            self._ranking.put(pool, record.estimate)

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
        self._rank(pool)
        return True

    def _drop_silent_pools(self) -> None:
        """Take out the pools that are silent for too long, and forget those without open tickets."""
        self._next_check = float("inf")
        for pool, record in list(self._records.items()):
            due = record.heard + self._silence
            if due <= self._now:
                self._rank(pool)
                if not record.open:
                    del self._records[pool]
                    continue
                due = self._now + self._lease  # by then, its tickets have expired
            self._check_by(due)

    def _check_by(self, due: float) -> None:
        self._next_check = min(self._next_check, due)


def _check_key(key: Hashable) -> None:
    try:
        hash(key)
    except TypeError:
        raise InputError(f"key must be a hashable value or None, not {shown(key)}.") from None
