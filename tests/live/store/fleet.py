"""Agents without sockets: pools that tell a store what real ones would."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from evenly.core.protocol import PoolPeer, ToDispatcher
from evenly.live.store.base import FleetSettings, FleetState, Placement, Store, UnplacedError, next_order
from evenly.live.store.valkey import ValkeyStore
from evenly.live.store_url import parse_store_url
from tests.live.processes import PATIENCE
from tests.live.stores import StoreServer

TIMES = FleetSettings(alpha="0.93", lease=30.0, silence=60.0, memory=20.0, heartbeat=5.0)


class Agents:
    """The agents that are connected to one dispatcher."""

    def __init__(self) -> None:
        self.peers: dict[str, PoolPeer] = {}
        self.store: Store | None = None
        self.replies = 0
        self._capacities: dict[str, int | None] = {}
        self._messages: set[asyncio.Task[None]] = set()

    async def _exchange(self, message: ToDispatcher) -> None:
        assert self.store is not None
        try:
            reply = await self.store.receive(message)
        except UnplacedError:  # a failover store does the same
            await self._register(str(message.report.pool))
            reply = await self.store.receive(message)
        if reply is not None:
            self.replies += 1
            self.peers[str(message.report.pool)].receive(reply)

    async def _register(self, pool: str) -> None:
        assert self.store is not None
        await self.store.register(pool, incarnation=1, address=f"http://{pool}", capacity=self._capacities[pool])

    def say(self, message: ToDispatcher | None) -> None:
        """Carry a message to the dispatcher, and its reply back."""
        if message is not None and self.store is not None:
            task = asyncio.create_task(self._exchange(message))
            self._messages.add(task)
            task.add_done_callback(self._messages.discard)

    async def quiet(self) -> None:
        """Wait until nothing is on the way."""
        while self._messages:
            await asyncio.gather(*self._messages)

    async def join(self, *pools: str, capacity: int | None = None) -> None:
        assert self.store is not None
        for pool in pools:
            self.peers[pool] = PoolPeer(pool, incarnation=1)
            self._capacities[pool] = capacity
            await self._register(pool)
            self.say(self.peers[pool].heartbeat())
        await self.quiet()

    async def beat(self) -> None:
        for peer in self.peers.values():
            self.say(peer.heartbeat())
        await self.quiet()

    def arrive(self, placement: Placement) -> None:
        """Let the client of a pick arrive, and its pool say so with a heartbeat."""
        peer = self.peers[placement.pool]
        peer.begin((placement.pool, placement.ticket), placement.ticket, placement.threshold)
        self.say(peer.heartbeat())


async def open_store(
    server: StoreServer, fleet: str, settings: FleetSettings = TIMES
) -> tuple[ValkeyStore, Agents]:
    """Return a store that is open, and the agents connected to it."""
    agents = Agents()
    store = ValkeyStore(settings, parse_store_url(server.url), fleet=fleet, timeout=PATIENCE)
    agents.store = store
    await store.open()
    return store, agents


async def place(store: Store, count: int = 1, *exclude: str, key: str | None = None) -> tuple[Placement, ...]:
    return await store.place(count=count, exclude=frozenset(exclude), key=key)


async def give(store: Store, pool: str, *, drained: bool) -> None:
    """Give an order as the admin port does."""
    known = (await store.state()).orders.get(pool)
    await store.order(pool, next_order(known, drained=drained))


def drained(state: FleetState) -> set[str]:
    """Return the pools that the operator drains."""
    return {pool for pool, order in state.orders.items() if order.drained}


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something is true."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "this does not happen"
        await asyncio.sleep(0.01)
