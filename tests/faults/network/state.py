"""The dispatcher's state: in the memory of the only front-end, or in a store that front-ends share.

The state machine is deterministic, so a failover that forgets the last writes is done by repeating all others.
"""

import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from evenly.core import LearningRule, PoolId
from evenly.core.protocol import DispatcherPeer, Pick, ToDispatcher, ToPool
from tests.faults.network.book import Book
from tests.faults.network.invariants import History, check_dispatcher, check_reply
from tests.faults.network.setup import HEARTBEAT, Setup
from tests.faults.network.text import message_text, number
from tests.faults.network.world import World, require

T = TypeVar("T")

_GREED = 0.1  # how many of the requests come after one for more places than there are


@dataclass(frozen=True, slots=True)
class Write:
    """An operation on the state: do it to a state machine, or write it into the book."""

    on_peer: Callable[[DispatcherPeer], object]
    in_book: Callable[[Book], object]


class DispatcherState:
    """A `DispatcherPeer`, everything that was done to it, and the book that says what it must be."""

    def __init__(self, world: World, setup: Setup, make: type[DispatcherPeer]) -> None:
        self._world = world
        self._setup = setup
        self._make = make
        self._term = 0
        self._expired = 0
        self._threshold = setup.threshold
        self._history = History()
        self.reachable = True
        self.last_failover = -1.0
        self.given: dict[tuple[PoolId, int], float] = {}  # when a ticket of a pool was given out
        self._greed = random.Random(repr(setup))
        self.start()

    def start(self) -> None:
        """Start with nothing, in a new term."""
        self._term += 1
        self._first_term = self._term
        self._log: list[Write] = []
        self._touched = True
        self.peer, self.book = self._new()
        self._world.after(2 * HEARTBEAT, self._catch_up, self._term)

    def check(self) -> None:
        """Check the state against the book, if anything was done to it since the last check."""
        if self._touched:
            self._touched = False
            check_dispatcher(self.peer, self.book)
            self._count()

    def receive(self, message: ToDispatcher) -> ToPool | None:
        """Take in a message of a pool, and return the reply."""
        now, pool = self._world.now, message.report.pool
        before = self._newest(pool)
        reply = self._receive(self.peer, now, message)
        accepted = self._newest(pool) != before
        self._written(
            Write(
                lambda peer: self._receive(peer, now, message), lambda book: book.receive(now, message, accepted)
            )
        )
        if not accepted:
            self._world.faults["old message"] += 1
        if self._world.trace is not None:
            self._world.note("  {} {}", "received" if accepted else "ignored", message_text(message))
        if reply is not None:
            check_reply(pool, reply, self.book)
        return reply

    def pick(self, key: Hashable, exclude: frozenset[PoolId] = frozenset()) -> Pick | None:
        """Pick a pool at random, as the state machine allows."""
        self._touched = True
        now, choice = self._world.now, _Choice(self._world.random)
        self._ask_for_too_much(now, exclude)
        pick = self.peer.pick(now, choice, key, exclude)
        if self._world.trace is not None:
            self._world.note("  answer to request {}: {}", key, message_text(pick))
        fresh = self.book.pick(now, key, exclude, pick)
        repeat = _Repeat(choice.picked)
        self._log.append(
            Write(
                lambda peer: peer.pick(now, repeat, key, exclude), lambda book: book.pick(now, key, exclude, pick)
            )
        )
        if fresh and pick is not None:
            self._history.give(pick)
            self.given[pick.pool, pick.ticket] = now
        elif pick is not None:
            self._world.faults["repeated answer"] += 1
        return pick

    def release(self, pool: PoolId, ticket: int) -> None:
        """Give back the place of a client that will not come."""
        now = self._world.now
        self.peer.release(now, pool, ticket)
        self._world.note("  released ticket {} of {}", number(ticket), pool)
        self._written(
            Write(lambda peer: peer.release(now, pool, ticket), lambda book: book.release(now, pool, ticket))
        )

    def drain(self, pool: PoolId) -> None:
        """Give the pool no more tasks: the operator wants that."""
        self.peer.drain(pool)
        self._written(Write(lambda peer: peer.drain(pool), lambda book: book.drain(pool)))

    def undrain(self, pool: PoolId) -> None:
        """Give the pool tasks again."""
        self.peer.undrain(pool)
        self._written(Write(lambda peer: peer.undrain(pool), lambda book: book.undrain(pool)))

    def fail_over(self, forgotten: int) -> None:
        """Forget the last writes, and go on in a new term."""
        del self._log[len(self._log) - min(forgotten, len(self._log)) :]
        now = self._world.now
        self.peer, self.book = self._new()
        for write in self._log:
            write.on_peer(self.peer)
            write.in_book(self.book)
        check_dispatcher(self.peer, self.book)
        self._term += 1
        term = self._term
        self.last_failover = now
        self.peer.begin_term(term)
        self._written(Write(lambda peer: peer.begin_term(term), lambda book: None))

    def _catch_up(self, term: int) -> None:
        """Start from what the pools have reported, unless the dispatcher has lost everything again."""
        if self._first_term != term:
            return
        before = self.peer.threshold
        self.peer.catch_up()
        self._written(Write(lambda peer: peer.catch_up(), lambda book: book.catch_up()))
        self._world.faults["caught up"] += self.peer.threshold != before

    def _ask_for_too_much(self, now: float, exclude: frozenset[PoolId]) -> None:
        """Now and then, ask for more places at once than there are: nothing may come of it."""
        setup = self._setup
        if setup.capacity is None or not setup.known_capacity or self._greed.random() >= _GREED:
            return
        choice, count = _Choice(self._greed), setup.pools * setup.capacity + 1
        picks = self.peer.pick_many(now, choice, count, None, exclude)
        require(picks == (), "{} places were given, but there are fewer", count)
        repeat = _Repeat(choice.picked)
        self._written(
            Write(lambda peer: peer.pick_many(now, repeat, count, None, exclude), lambda book: book.advance(now))
        )
        self._world.faults["too many at once"] += 1

    def _newest(self, pool: PoolId) -> tuple[int, int, float] | None:
        """Return the numbers of the pool's newest message, and when it came; None if it is forgotten."""
        record = self.peer._records.get(pool)
        return None if record is None else (record.incarnation, record.sequence, record.heard)

    def _receive(self, peer: DispatcherPeer, now: float, message: ToDispatcher) -> ToPool | None:
        """Take in a message. A pool names its capacity when it connects."""
        if self._setup.known_capacity:
            peer.set_capacity(message.report.pool, self._setup.capacity)
        return peer.receive(now, message)

    def _count(self) -> None:
        """Count what the schedule led to, so that tests can see that the checks had something to check."""
        seen, book = self._world.faults, self.book
        seen["expired lease"] += max(0, book.expired - self._expired)
        seen["threshold change"] += book.threshold != self._threshold
        seen["pick on the way"] += any(book.open.values())
        self._expired, self._threshold = book.expired, book.threshold

    def _new(self) -> tuple[DispatcherPeer, Book]:
        setup = self._setup
        peer = self._make(
            setup.threshold,
            LearningRule(setup.alpha),
            term=self._first_term,
            lease=setup.lease,
            silence=setup.silence,
            memory=setup.memory,
            highest=None if setup.capacity is None else setup.capacity - 1,
        )
        return peer, Book(setup)

    def _written(self, write: Write) -> None:
        self._touched = True
        self._log.append(write)
        write.in_book(self.book)


class _Choice:
    """Random choices that are remembered."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self.picked: list[object] = []

    def __call__(self, candidates: Sequence[T], /) -> T:
        picked = self._source.choice(candidates)
        self.picked.append(picked)
        return picked


class _Repeat:
    """The same choices once more, as often as it is asked."""

    def __init__(self, picked: list[object]) -> None:
        self._picked = picked
        self._next = 0

    def __call__(self, candidates: Sequence[T], /) -> T:
        picked = self._picked[self._next]
        self._next = (self._next + 1) % len(self._picked)  # several failovers repeat it
        require(picked in candidates, "{} cannot be picked again from {}", picked, candidates)
        return candidates[candidates.index(picked)]
