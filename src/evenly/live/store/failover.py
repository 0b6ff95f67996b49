"""A shared store that may fail: its dispatcher goes on with what it knows, and returns when the store does."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from evenly.core import Choose
from evenly.core.protocol import ToDispatcher, ToPool
from evenly.core.protocol.dispatcher_peer import MAX_TERM
from evenly.errors import InputError
from evenly.live.store.base import (
    FleetSettings,
    FleetState,
    NoPoolsError,
    Order,
    Placement,
    Store,
    StoreUnavailableError,
    UnplacedError,
)
from evenly.live.store.link import StoreRefusedError
from evenly.live.store.local import LocalStore, term_now
from evenly.live.store.valkey import ValkeyStore

_PROBE_S = 1.0  # between two attempts to reach the store
_TERMS, _LATER_TERMS = 10_000, 100  # to choose from: after the clock's, and after one that is ahead of the clock

T = TypeVar("T")


class Report(Protocol):
    """Writes an event with its facts to the log."""

    def __call__(self, name: str, /, **facts: object) -> None:
        """Write it."""
        ...


@dataclass(frozen=True, slots=True)
class _Agent:
    """An agent that is connected here: where its pool is, and the last message, which has its whole state."""

    incarnation: int
    address: str
    capacity: int | None
    heard: float = 0.0
    message: ToDispatcher | None = None


class FailoverStore:
    """The shared store while it can be reached, a local one meanwhile.

    The local store knows the pools whose agents are connected here, and begins with the last threshold. Its term
    is above that of the shared store. When that returns, it gets the last messages again, finds tickets of a later
    term in them and begins a term after it. Open tickets and request keys of one store are not known in the other.

    An agent's last message lacks the clients that came with a ticket since. So each change of the store in use is
    a lapse, and the agents report at once.
    """

    def __init__(
        self,
        settings: FleetSettings,
        shared: ValkeyStore,
        *,
        report: Report,
        choose: Choose | None = None,
        clock: Callable[[], float] = time.monotonic,
        probe_every: float = _PROBE_S,
    ) -> None:
        self._settings = settings
        self._shared = shared
        self._report = report
        self._choose = choose
        self._clock = clock
        self._probe_every = probe_every
        self._local: LocalStore | None = None  # while the shared store is not available
        self._era = 0  # one more with each loss and each return
        self._since = 0.0  # when it was lost
        self._past_outage = 0.0
        self.outages = 0
        self._agents: dict[str, _Agent] = {}
        self._closed = False
        self._prober: asyncio.Task[None] | None = None
        self._replayer: asyncio.Task[None] | None = None
        self.on_lapse: Callable[[], None] = lambda: None
        shared.on_lapse = self._lapsed

    @property
    def available(self) -> bool:
        """True if the shared store is in use."""
        return self._local is None

    @property
    def outage_seconds(self) -> float:
        """How long the shared store was not available, in all."""
        return self._past_outage + (0.0 if self.available else self._clock() - self._since)

    @property
    def key(self) -> bytes:
        """The key that session ids are signed with. It may change when the shared store returns."""
        return self._shared.key

    async def open(self) -> None:
        """Connect. Without the store, begin with a local one; a rejected password is an error."""
        try:
            await self._shared.open()
        except StoreRefusedError:
            raise
        except StoreUnavailableError as error:
            await self._lose(self._era, error)

    async def close(self) -> None:
        """Close the connections, for good: calls that come later use the local store."""
        self._closed = True
        tasks = [task for task in (self._prober, self._replayer) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._shared.close()

    async def place(self, *, count: int, exclude: frozenset[str], key: str | None) -> tuple[Placement, ...]:
        """Find places for sessions."""

        async def find(store: Store) -> tuple[Placement, ...]:
            return await store.place(count=count, exclude=exclude, key=key)

        try:
            return await self._with_store(find)
        except NoPoolsError:
            if not self.available:
                raise StoreUnavailableError(
                    "The store cannot be reached, and no pool is connected here."
                ) from None
            if not self._agents:
                raise
        await self._replay_now()  # the store was emptied, and has forgotten them
        return await self._with_store(find)

    async def release(self, pool: str, ticket: int) -> None:
        """Give back a place whose client will not come."""
        await self._with_store(lambda store: store.release(pool, ticket))

    async def register(self, pool: str, *, incarnation: int, address: str, capacity: int | None) -> None:
        """Note where the pool is."""
        known = self._agents.get(pool) or _Agent(incarnation, address, capacity)
        self._agents[pool] = replace(known, incarnation=incarnation, address=address, capacity=capacity)
        await self._with_store(
            lambda store: store.register(pool, incarnation=incarnation, address=address, capacity=capacity)
        )

    async def receive(self, message: ToDispatcher) -> ToPool | None:
        """Take in a message of a pool's agent."""
        message.check()
        pool = str(message.report.pool)
        known = self._agents.get(pool)
        if known is not None and (known.message is None or _later(message, known.message)):
            self._agents[pool] = replace(known, message=message, heard=self._clock())
        return await self._with_store(lambda store: self._tell(store, message))

    async def disconnected(self, pool: str) -> None:
        """Take the pool for dead if no agent of it is heard soon."""
        self._agents.pop(pool, None)
        await self._with_store(lambda store: store.disconnected(pool))

    async def order(self, pool: str, order: Order) -> None:
        """Give the pool no new sessions, or sessions again, unless a newer order is known."""
        await self._with_store(lambda store: store.order(pool, order))
        self._shared.learn({pool: order})

    def use_alpha(self, alpha: str) -> None:
        """Learn the threshold with this alpha from now on."""
        self._shared.use_alpha(alpha)
        if self._local is not None:
            self._local.use_alpha(alpha)
        self._settings = replace(self._settings, alpha=alpha)

    async def tick(self) -> None:
        """Let time pass."""
        await self._with_store(lambda store: store.tick())

    async def state(self) -> FleetState:
        """Return a snapshot."""
        return await self._with_store(lambda store: store.state())

    async def _with_store(self, action: Callable[[Store], Awaitable[T]]) -> T:
        """Ask the shared store, or the local one if that fails or has failed."""
        era = self._era
        if self._local is None:
            try:
                return await action(self._shared)
            except StoreUnavailableError as error:
                await self._lose(era, error)
        if self._local is None:  # it failed, but is back already
            return await action(self._shared)
        return await action(self._local)

    async def _lose(self, era: int, error: StoreUnavailableError) -> None:
        """Go on with a local store. Calls that fail later, for the same reason, change nothing."""
        if era != self._era:
            return
        self._era += 1
        self.outages += 1
        self._since = self._clock()
        shared = self._shared
        self._local = local = LocalStore(
            self._settings,
            term=_own_term(shared.term),
            threshold=shared.threshold,
            key=shared.key,
            choose=self._choose,
        )
        self._report("store lost", reason=str(error), pools=len(self._agents))
        if not self._closed:
            self._prober = asyncio.create_task(self._probe())
        for pool, order in shared.orders.items():
            await local.order(pool, order)
        for pool in list(self._agents):
            await self._replay(local, pool)
        self.on_lapse()

    async def _probe(self) -> None:
        """Try to reach the shared store until it is back and knows what happened meanwhile."""
        while self._local is not None:
            await asyncio.sleep(self._probe_every)
            try:
                await self._shared.open()
                await self._shared.tick()  # which writes: it may answer, and yet refuse that
                await self._bring_up_to_date()
            except StoreUnavailableError:
                continue
            self._local = None
            self._era += 1
            self._lapsed()  # what came in meanwhile; messages that the store knows change nothing
            self._past_outage += self._clock() - self._since
            self._report("store back", after=round(self._clock() - self._since, 3), pools=len(self._agents))

    async def _bring_up_to_date(self) -> None:
        """Tell the shared store what it does not know, once: with steady traffic, there is always more."""
        for pool, order in list(self._shared.orders.items()):
            try:
                await self._shared.order(pool, order)
            except InputError as error:  # too many pools
                self._report("drain rejected", pool=pool, reason=str(error))
        await self._replay_agents()

    async def _replay_agents(self) -> None:
        """Tell the shared store which agents are connected here, and which are no longer."""
        gone = self._shared.connected - self._agents.keys()
        await asyncio.gather(
            *(self._replay(self._shared, pool) for pool in list(self._agents)),
            *(self._shared.disconnected(pool) for pool in gone),
        )

    async def _replay(self, store: Store, pool: str) -> None:
        """Tell a store of an agent, unless it is silent: that must not make it a member again."""
        agent = self._agents.get(pool)
        if agent is None or agent.message is None or self._clock() - agent.heard > self._settings.silence:
            return
        try:
            await self._place_agent(store, pool, agent)
            await self._tell(store, agent.message)
        except InputError as error:  # too many pools, or an agent that started later is connected elsewhere
            self._report("pool rejected", pool=pool, reason=str(error))

    async def _tell(self, store: Store, message: ToDispatcher) -> ToPool | None:
        """Tell a store of a message, and first of its agent if the store has forgotten that."""
        pool = str(message.report.pool)
        try:
            return await store.receive(message)
        except UnplacedError:
            agent = self._agents.get(pool)
            if agent is None:
                return None
            await self._place_agent(store, pool, agent)
            return await store.receive(message)

    @staticmethod
    async def _place_agent(store: Store, pool: str, agent: _Agent) -> None:
        await store.register(pool, incarnation=agent.incarnation, address=agent.address, capacity=agent.capacity)

    def _lapsed(self) -> None:
        """Tell the shared store what it may have lost, and let the agents report."""
        if self.available and not self._closed:
            self._replay_soon()
            self.on_lapse()

    def _replay_soon(self) -> None:
        """Tell a store that was emptied of the pools that are connected here."""
        if self.available and not self._closed and (self._replayer is None or self._replayer.done()):
            self._replayer = asyncio.create_task(self._replay_all())

    async def _replay_now(self) -> None:
        self._replay_soon()
        if self._replayer is not None:
            await asyncio.shield(self._replayer)

    async def _replay_all(self) -> None:
        era = self._era
        try:
            await self._bring_up_to_date()
        except StoreUnavailableError as error:
            if self.available:
                await self._lose(era, error)


def _own_term(shared: int) -> int:
    """Return a term above that of the shared store, to work alone in.

    At random, because other dispatchers begin a term of their own, and agents may move between them. Many outages
    must not take the terms far ahead of the clock: agents that know tickets from the far future are rejected.
    """
    later = shared + 1 + secrets.randbelow(_LATER_TERMS)
    return min(max(later, term_now() + secrets.randbelow(_TERMS)), MAX_TERM)


def _later(message: ToDispatcher, other: ToDispatcher) -> bool:
    return (message.incarnation, message.sequence) > (other.incarnation, other.sequence)
