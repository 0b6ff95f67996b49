"""The protocol, broken on purpose in one way each. Every class leaves out something that a network asks for."""

from collections.abc import Collection, Hashable
from dataclasses import replace

from evenly.core import Choose, LearningRule, PoolId
from evenly.core.protocol import DispatcherPeer, Kind, Pick, PoolPeer, Tickets, ToDispatcher, ToPool
from evenly.core.protocol.dispatcher_peer import TERM
from tests.faults.network import Peers


class NoSequenceNumbers(DispatcherPeer):
    """The last message to come counts, not the last that was sent."""

    def receive(self, now: float, message: ToDispatcher) -> ToPool | None:
        record = self._records.get(message.report.pool)
        if record is not None:
            record.sequence = 0
        return super().receive(now, message)


class NoIncarnations(PoolPeer):
    """A pool that restarts looks like the one before."""

    def __init__(self, pool_id: PoolId, *, incarnation: int, capacity: int | None = None) -> None:
        super().__init__(pool_id, incarnation=0, capacity=capacity)


class AnyIncarnation(DispatcherPeer):
    """A message of a pool that crashed long ago counts as much as one of the pool that runs."""

    def receive(self, now: float, message: ToDispatcher) -> ToPool | None:
        record = self._records.get(message.report.pool)
        if record is not None and record.incarnation != message.incarnation:
            record.incarnation, record.sequence = -1, 0
        return super().receive(now, message)


class EndlessLeases(DispatcherPeer):
    """The place of a client that never comes is kept for good."""

    def tick(self, now: float) -> None:
        self._expiring.clear()
        super().tick(now)


class LeasesReturnedTwice(DispatcherPeer):
    """An expired lease gives back two places."""

    def tick(self, now: float) -> None:
        expired = [(pool, ticket) for time, pool, ticket in self._expiring if time <= now]
        for pool, ticket in expired:
            record = self._records.get(pool)
            if record is not None and ticket in record.open and record.report.tasks:
                record.report = replace(record.report, tasks=record.report.tasks - 1)
        super().tick(now)


class NoReplies(DispatcherPeer):
    """A heartbeat gets no reply, so a pool without traffic keeps an old threshold."""

    def receive(self, now: float, message: ToDispatcher) -> ToPool | None:
        super().receive(now, message)
        return None


class PicksNotCounted(DispatcherPeer):
    """A report that crosses a pick hands out the same place twice."""

    def receive(self, now: float, message: ToDispatcher) -> ToPool | None:
        reply = super().receive(now, message)
        self._ranking.put(message.report.pool, message.report.tasks)
        return reply


class PicksAtRandom(DispatcherPeer):
    """Any pool with room is as good as another."""

    def _pick(self, choose: Choose, exclude: frozenset[PoolId]) -> Pick | None:
        ranked = list(self._ranking._estimates)
        anywhere = exclude | frozenset(pool for pool in ranked if pool != choose(ranked))
        return super()._pick(choose, anywhere)


class RestsAfterAChange(DispatcherPeer):
    """After a change, the rule lets some picks pass."""

    rest = 0

    def _pick(self, choose: Choose, exclude: frozenset[PoolId]) -> Pick | None:
        rule, threshold = self._rule, self.threshold
        self._rule = None if self.rest else rule
        pick = super()._pick(choose, exclude)
        self._rule = rule
        self.rest = 2 if self.threshold != threshold else max(self.rest - 1, 0)
        return pick


class FullCounted(DispatcherPeer):
    """The learning rule counts full pools: they keep their tokens, and hold the threshold."""

    def _pick(self, choose: Choose, exclude: frozenset[PoolId]) -> Pick | None:
        full = [pool for pool, record in self._records.items()
                if self._serves(pool, record) and self._restrictions.full(pool, record.estimate)]  # fmt: skip
        for pool in full:
            self._ranking.put(pool, self._records[pool].estimate)
        pick = super()._pick(choose, exclude | frozenset(full))
        for pool in full:
            self._ranking.discard(pool)
        return pick


class StepsKept(DispatcherPeer):
    """Places that are given back keep the steps of the threshold that they made."""

    def pick_many(
        self, now: float, choose: Choose, count: int, key: Hashable = None, exclude: Collection[PoolId] = ()
    ) -> tuple[Pick, ...]:
        picks = super().pick_many(now, choose, count, key, exclude)
        if count > 1 and not picks:
            self._ranking.threshold += 1
        return picks


class NeverCatchesUp(DispatcherPeer):
    """A dispatcher that has lost everything begins with its first threshold, whatever the pools report."""

    def catch_up(self) -> None:
        pass


class TicketsAfterFailover(DispatcherPeer):
    """A new term goes on with the ticket numbers that it remembers."""

    def begin_term(self, term: int) -> None:
        numbers = {pool: record.next_ticket for pool, record in self._records.items()}
        unused = self._unused
        super().begin_term(term)
        self._unused = unused
        for pool, number in numbers.items():
            self._records[pool].next_ticket = number


class TicketsAfterSilence(DispatcherPeer):
    """A pool that was forgotten starts again with the first ticket number."""

    def receive(self, now: float, message: ToDispatcher) -> ToPool | None:
        self.tick(now)
        if message.report.pool not in self._records:
            self._unused = self._first
        return super().receive(now, message)


class NoNewTerm(DispatcherPeer):
    """A failover goes on as if nothing had been forgotten."""

    def begin_term(self, term: int) -> None:
        pass


class OneTerm(DispatcherPeer):
    """A dispatcher that restarts with nothing begins in the first term again."""

    def __init__(
        self, threshold: int = 0, rule: LearningRule | None = None, *,
        term: int, lease: float, silence: float, memory: float, highest: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(threshold, rule, term=1, lease=lease, silence=silence, memory=memory, highest=highest)

    def begin_term(self, term: int) -> None:
        super().begin_term(max(term, self._first // TERM + 1))


class KeysIgnored(DispatcherPeer):
    """A repeated request is a new one."""

    def pick(
        self, now: float, choose: Choose, key: Hashable = None, exclude: Collection[PoolId] = ()
    ) -> Pick | None:
        return super().pick(now, choose, None, exclude)


class EndlessMemory(DispatcherPeer):
    """The answer to a request key is repeated for good, long after the place was given back."""

    def tick(self, now: float) -> None:
        self._answers.forget = lambda now: None  # type: ignore[method-assign]
        super().tick(now)


class FullIgnored(DispatcherPeer):
    """A pool at its capacity is picked."""

    def set_capacity(self, pool: PoolId, capacity: int | None) -> None:
        pass


class ExcludedPicked(DispatcherPeer):
    """A client that was turned away is sent to the same pool again."""

    def pick(
        self, now: float, choose: Choose, key: Hashable = None, exclude: Collection[PoolId] = ()
    ) -> Pick | None:
        return super().pick(now, choose, key)


class DrainsIgnored(DispatcherPeer):
    """A pool that the operator drains comes back with its next message."""

    def drain(self, pool: PoolId) -> None:
        self._ranking.discard(pool)


class DrainsForGood(DispatcherPeer):
    """The operator cannot take a drain back."""

    def undrain(self, pool: PoolId) -> None:
        pass


class SilenceIgnored(DispatcherPeer):
    """A dead pool stays a member."""

    def _drop_silent_pools(self) -> None:
        pass


class ArrivedIgnored(DispatcherPeer):
    """A pick counts until its lease expires, although its client is among the tasks already."""

    def receive(self, now: float, message: ToDispatcher) -> ToPool | None:
        return super().receive(now, replace(message, arrived=()))


class OldestTooHigh(DispatcherPeer):
    """Pools are told to forget tickets that are still on the way."""

    def receive(self, now: float, message: ToDispatcher) -> ToPool | None:
        reply = super().receive(now, message)
        return None if reply is None else replace(reply, oldest_ticket=reply.version)


class VersionTooLow(DispatcherPeer):
    """A reply looks older than the clients on their way."""

    def receive(self, now: float, message: ToDispatcher) -> ToPool | None:
        reply = super().receive(now, message)
        return None if reply is None else replace(reply, version=reply.oldest_ticket)


class TicketsNotSeen(PoolPeer):
    """A pool does not say which clients have come."""

    def _see(self, ticket: int | None, threshold: int | None) -> None:
        super()._see(ticket, threshold)
        self._arrived = Tickets()


class SessionsTwice(PoolPeer):
    """A client that connects again counts twice."""

    def begin(
        self, session: Hashable, ticket: int | None = None, threshold: int | None = None
    ) -> ToDispatcher | None:
        self._sessions.discard(session)
        return super().begin(session, ticket, threshold)


class OldThresholds(PoolPeer):
    """The last threshold to come counts, not the newest."""

    def receive(self, message: ToPool) -> None:
        self._version = min(self._version, message.version)
        super().receive(message)


class ThresholdsLost(PoolPeer):
    """A pool ignores the threshold that a client carries."""

    def _see(self, ticket: int | None, threshold: int | None) -> None:
        super()._see(ticket, None)


class ArrivalsReported(PoolPeer):
    """A pool reports clients that the dispatcher has counted already."""

    def begin(
        self, session: Hashable, ticket: int | None = None, threshold: int | None = None
    ) -> ToDispatcher | None:
        self._see(ticket, threshold)
        return super().begin(session)


class SilentWhileGreen(PoolPeer):
    """A pool does not report departures while it is green, as if messages took no time."""

    def end(self, session: Hashable) -> ToDispatcher | None:
        self._pool._every_departure = False
        return super().end(session)


class DrainingForgotten(PoolPeer):
    """A pool that drains goes on with its tokens, which make it a member again."""

    def leave(self) -> ToDispatcher:
        message = super().leave()
        self._leaving = False
        return message


class RefusalsKept(PoolPeer):
    """The place of a client that was turned away is not given back."""

    def refuse(self, ticket: int, threshold: int | None = None) -> ToDispatcher:
        self._sent.refusals += 1
        return self._message(Kind.REFUSAL, self._pool.announce())


DISPATCHERS = (
    NoSequenceNumbers, AnyIncarnation, EndlessLeases, LeasesReturnedTwice, NoReplies, PicksNotCounted,
    PicksAtRandom, RestsAfterAChange, FullCounted, StepsKept, NeverCatchesUp, TicketsAfterFailover,
    TicketsAfterSilence, NoNewTerm, OneTerm,
    KeysIgnored, EndlessMemory, FullIgnored, ExcludedPicked, DrainsIgnored, DrainsForGood, SilenceIgnored,
    ArrivedIgnored, OldestTooHigh, VersionTooLow,
)  # fmt: skip
POOLS = (
    NoIncarnations, TicketsNotSeen, SessionsTwice, OldThresholds, ThresholdsLost, ArrivalsReported,
    SilentWhileGreen, DrainingForgotten, RefusalsKept,
)  # fmt: skip
BROKEN = {
    **{kind.__name__: Peers(dispatcher=kind) for kind in DISPATCHERS},
    **{kind.__name__: Peers(pool=kind) for kind in POOLS},
}
