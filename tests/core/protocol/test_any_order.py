"""Messages lost, repeated and in any order: what the dispatcher was told and its own picks are always counted."""

import random
from dataclasses import dataclass, field

import pytest

from evenly.core.protocol import Kind, Pick, PoolPeer, ToDispatcher, ToPool
from tests.core.protocol.support import LEASE, SILENCE, Net, peer

POOLS = 5


@dataclass
class Chaos:
    """Pools, clients and a network without manners."""

    rng: random.Random
    net: Net
    up: list[ToDispatcher] = field(default_factory=list)
    down: list[tuple[object, ToPool]] = field(default_factory=list)
    clients: list[Pick] = field(default_factory=list)
    last: dict[object, ToDispatcher] = field(default_factory=dict)  # the newest that has reached the dispatcher
    tickets: set[tuple[object, int]] = field(default_factory=set)
    incarnations: int = 0

    def start(self, pool: object) -> None:
        self.incarnations += 1
        self.net.pools[pool] = PoolPeer(pool, incarnation=self.incarnations)
        self.send(self.net.pools[pool].heartbeat())

    def send(self, message: ToDispatcher | None) -> None:
        if message is not None:
            self.up.append(message)

    def step(self) -> None:
        pool = self.rng.randrange(POOLS)
        here = self.net.pools[pool]
        chance = self.rng.random()
        self.net.now += self.rng.random() / 10
        if chance < 0.25:
            self.pick()
        elif chance < 0.45:
            self.client()
        elif chance < 0.6:
            self.send(here.end(self.rng.randrange(1, self.net.sessions + 2)))
        elif chance < 0.65:
            self.send(here.heartbeat())
        elif chance < 0.655:
            self.send(here.leave())
        elif chance < 0.66:
            self.start(pool)
        else:
            self.carry()

    def pick(self) -> None:
        pick = self.net.dispatcher.pick(self.net.now, self.rng.choice)
        if pick is not None:
            assert (pick.pool, pick.ticket) not in self.tickets
            self.tickets.add((pick.pool, pick.ticket))
            self.clients.append(pick)

    def client(self) -> None:
        if self.clients:
            client = self.clients.pop(self.rng.randrange(len(self.clients)))
            fate = self.rng.random()
            if fate < 0.8:
                self.send(self.net.arrive(client))
            elif fate < 0.9:
                self.send(self.net.pools[client.pool].refuse(client.ticket, client.threshold))
            elif fate < 0.95:
                self.net.dispatcher.release(self.net.now, client.pool, client.ticket)

    def carry(self) -> None:
        """Lose, repeat or deliver any message on the way."""
        if self.up:
            message = self.up.pop(self.rng.randrange(len(self.up)))
            if self.rng.random() < 0.2:
                self.up.append(message)
            if self.rng.random() < 0.9:
                self.take_in(message)
        if self.down:
            pool, reply = self.down.pop(self.rng.randrange(len(self.down)))
            if self.rng.random() < 0.8:
                self.net.pools[pool].receive(reply)

    def take_in(self, message: ToDispatcher) -> None:
        pool, dispatcher = message.report.pool, self.net.dispatcher
        known = any(each.pool == pool for each in dispatcher.known_pools())
        reply = dispatcher.receive(self.net.now, message)
        assert (reply is not None) == (message.kind is Kind.HEARTBEAT)
        if reply is not None:
            self.down.append((pool, reply))
        before = self.last.get(pool)
        newer = before is None or (message.incarnation, message.sequence) > (before.incarnation, before.sequence)
        if newer or not known:
            self.last[pool] = message

    def check(self) -> None:
        dispatcher = self.net.dispatcher
        for pool in dispatcher.members:
            told = self.last[pool]
            still_open = dispatcher.open_tickets(pool)
            assert told.kind is not Kind.LEAVE
            assert dispatcher.estimate(pool) == told.report.tasks + len(still_open)
            assert all((pool, ticket) in self.tickets for ticket in still_open)
            arrived = {number for low, high in told.arrived for number in range(low, high + 1)}
            assert arrived.isdisjoint(still_open)
        assert dispatcher.threshold >= 0


@pytest.mark.parametrize("seed", range(4))
def test_any_order(seed: int) -> None:
    chaos = Chaos(random.Random(seed), Net(peer(0, "0.5")))
    for pool in range(POOLS):
        chaos.start(pool)
    for _ in range(2500):
        chaos.step()
        chaos.check()
    assert len(chaos.tickets) > 300

    # The network works again, and the clients on the way do not come.
    chaos.net.now += LEASE
    for _ in range(2):
        for made in chaos.net.pools.values():
            chaos.net.deliver(made.heartbeat())
    dispatcher = chaos.net.dispatcher
    assert len(dispatcher.members) == POOLS
    for name, made in chaos.net.pools.items():
        assert dispatcher.estimate(name) == made.tasks
        assert made.threshold == dispatcher.threshold
    dispatcher.tick(chaos.net.now + SILENCE)
    assert not dispatcher.members
