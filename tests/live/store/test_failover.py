"""The store dies, hangs and returns; picks go on."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress

import pytest

from evenly.core.protocol import PoolPeer
from evenly.core.protocol.dispatcher_peer import TERM
from evenly.live.store.base import PoolState, StoreUnavailableError
from evenly.live.store.failover import FailoverStore
from evenly.live.store.local import term_now
from evenly.live.store.valkey import ValkeyStore
from evenly.live.store_url import parse_store_url
from tests.live.processes import PATIENCE
from tests.live.store.fleet import TIMES, Agents, place, until
from tests.live.stores import StoreServer


def make(
    server: StoreServer, *, timeout: float = PATIENCE
) -> tuple[FailoverStore, ValkeyStore, Agents, list[str]]:
    """Return a store that waits long for an answer: a busy machine is not a lost store."""
    agents, events = Agents(), list[str]()
    shared = ValkeyStore(TIMES, parse_store_url(server.url), fleet="failover", timeout=timeout)
    store = FailoverStore(TIMES, shared, report=lambda name, /, **facts: events.append(name), probe_every=0.05)
    agents.store = store
    return store, shared, agents, events


def test_picks_go_on_when_the_store_is_killed_under_load(own_server: StoreServer) -> None:
    async def run() -> None:
        store, shared, agents, events = make(own_server)
        await store.open()
        await agents.join("a", "b", "c")
        await store.drain("c")
        picked = 0
        stop = asyncio.Event()

        async def client() -> None:
            nonlocal picked
            while not stop.is_set():
                (placed,) = await place(store)
                assert placed.pool in {"a", "b"}
                agents.arrive(placed)
                picked += 1
                await asyncio.sleep(0.001)

        clients = [asyncio.create_task(client()) for _ in range(5)]
        await until(lambda: picked > 50)
        term, key = shared.term, store.key
        own_server.kill()
        await until(lambda: not store.available)
        now = picked
        await until(lambda: picked > now + 50)
        assert (store.outages, store.outage_seconds > 0, store.key) == (1, True, key)
        await agents.beat()
        await until(lambda: all(agents.peers[pool].heartbeat().version // TERM > term for pool in "ab"))
        own_server.start()  # empty
        await until(lambda: store.available)
        now = picked
        await until(lambda: picked > now + 50)
        stop.set()
        await asyncio.gather(*clients)
        await agents.beat()
        await store.tick()
        await agents.quiet()
        state = await store.state()
        assert {pool.name: pool.sessions for pool in state.pools} == {
            name: peer.tasks for name, peer in agents.peers.items()
        }
        assert shared.term > term
        assert events == ["store lost", "store back"]
        assert all(agents.peers[pool].heartbeat().version // TERM == shared.term for pool in "ab")
        await store.close()

    asyncio.run(run())


def test_a_store_that_hangs_holds_up_one_call(own_server: StoreServer) -> None:
    async def run() -> None:
        store, _, agents, events = make(own_server)
        await store.open()
        await agents.join("a", "b")
        own_server.send(signal.SIGSTOP)
        first = await asyncio.gather(*(place(store) for _ in range(10)))
        assert len(first) == 10
        assert not store.available
        await asyncio.gather(*(place(store) for _ in range(10)))  # local: nothing to wait for
        own_server.send(signal.SIGCONT)
        await until(lambda: store.available)
        await place(store)
        await agents.quiet()
        assert events == ["store lost", "store back"]
        await store.close()

    try:
        asyncio.run(run())
    finally:
        own_server.send(signal.SIGCONT)


def test_what_happens_meanwhile_reaches_the_store(own_server: StoreServer) -> None:
    async def run() -> None:
        store, shared, agents, _ = make(own_server)
        await store.open()
        await agents.join("a", "b")
        own_server.kill()
        await place(store)
        await agents.join("late")
        await store.drain("a")
        own_server.start()
        await until(lambda: store.available)
        states = {pool.name: pool.state for pool in (await shared.state()).pools}
        assert states == {"a": PoolState.DRAINING, "b": PoolState.SERVING, "late": PoolState.SERVING}
        await agents.quiet()
        await store.close()

    asyncio.run(run())


def test_without_store_and_pools_picks_say_so(own_server: StoreServer) -> None:
    async def run() -> None:
        store, _, agents, _ = make(own_server)
        own_server.kill()
        await store.open()
        assert not store.available
        with pytest.raises(StoreUnavailableError):
            await place(store)
        await agents.join("a")
        await place(store)
        await agents.quiet()
        own_server.start()
        await until(lambda: store.available)
        await place(store)
        await agents.quiet()
        await store.close()

    asyncio.run(run())


def test_an_emptied_store_costs_no_pick(own_server: StoreServer) -> None:
    async def run() -> None:
        store, _, agents, events = make(own_server)
        await store.open()
        await agents.join("a", "b")
        for _ in range(3):
            with own_server.client() as client:
                client.flushall()
                client.function_flush()
            await place(store, 2)
        await agents.quiet()
        assert events == []
        await store.close()

    asyncio.run(run())


@pytest.mark.full
def test_steady_traffic_does_not_keep_the_store_away(own_server: StoreServer) -> None:
    """An agent sends all the time, so that the shared store never knows everything."""

    async def run() -> None:
        store, _, agents, events = make(own_server)
        await store.open()
        await agents.join("a", "b")
        stop = asyncio.Event()

        async def talk() -> None:
            while not stop.is_set():
                await store.receive(agents.peers["a"].heartbeat())
                await asyncio.sleep(0)

        talking = asyncio.create_task(talk())
        own_server.kill()
        await until(lambda: not store.available)
        own_server.start()
        await until(lambda: store.available)
        stop.set()
        await talking
        await agents.beat()
        assert events == ["store lost", "store back"]
        assert {pool.name for pool in (await store.state()).pools} == {"a", "b"}
        await store.close()

    asyncio.run(run())


@pytest.mark.full
def test_drains_survive_an_empty_store_in_any_order(own_server: StoreServer) -> None:
    """Also that of a pool which is not there, and if the first dispatcher to return has no agents."""

    async def run() -> None:
        one, _, _, _ = make(own_server)
        other, _, agents, _ = make(own_server)
        await one.open()
        await other.open()
        await agents.join("a", "b")
        for pool in ("a", "gone"):
            await other.drain(pool)
        await one.state()
        own_server.kill()
        for store in (one, other):
            with suppress(StoreUnavailableError):
                await store.tick()
        own_server.start()
        await until(lambda: one.available and other.available)
        for _ in range(200):
            await agents.beat()
            state = await one.state()
            if state.drained == {"a", "gone"} and len(state.pools) == 2:
                break
            await asyncio.sleep(0.05)
        assert state.drained == {"a", "gone"}
        assert {pool.name: pool.state for pool in state.pools} == {"a": PoolState.DRAINING, "b": PoolState.SERVING}
        await one.close()
        await other.close()

    asyncio.run(run())


@pytest.mark.full
def test_two_dispatchers_without_the_store_have_terms_of_their_own(own_server: StoreServer) -> None:
    """An agent that moves between them must take the other's tickets for new ones."""

    async def run() -> None:
        terms = set()
        for _ in range(3):
            store, _, _, _ = make(own_server)
            await store.open()
            await store.register("a", address="ws://a", capacity=None)
            await store.receive(PoolPeer("a", incarnation=1).heartbeat())
            own_server.kill()
            await store.tick()
            (placed,) = await place(store)
            terms.add(placed.ticket // TERM)
            await store.close()
            own_server.start()
        assert len(terms) > 1  # three times the same of 10,000: once in 10^8

    asyncio.run(run())


def test_a_closed_store_stays_closed(own_server: StoreServer) -> None:
    """Messages may still be on their way to it. They must not open connections that nothing closes."""

    async def run() -> None:
        store, shared, agents, events = make(own_server)
        await store.open()
        await agents.join("a")
        await store.close()
        with pytest.raises(StoreUnavailableError, match="closed"):
            await shared.tick()
        await store.receive(agents.peers["a"].heartbeat())
        await store.tick()
        await asyncio.sleep(0.2)  # several probes
        assert events == ["store lost"]
        with own_server.client() as client:
            assert (
                len([each for each in client.client_list() if each["laddr"].endswith(f":{own_server.port}")]) == 0
            )

    asyncio.run(run())


@pytest.mark.parametrize("emptied", [False, pytest.param(True, marks=pytest.mark.full)])
def test_an_undrain_without_the_store_is_not_undone_by_another_dispatcher(
    own_server: StoreServer, emptied: bool
) -> None:
    """The other one still takes the pool for drained. It must not drain it again when it returns."""

    async def run() -> None:
        one, _, agents, _ = make(own_server)
        other, _, _, _ = make(own_server)
        for store in (one, other):
            await store.open()
        await agents.join("a", "b")
        await one.drain("a")
        for store in (one, other):
            assert (await store.state()).drained == {"a"}
        if emptied:
            own_server.kill()
        else:
            own_server.send(signal.SIGSTOP)
        await one.tick()
        await other.tick()
        assert not one.available and not other.available
        await one.undrain("a")
        if emptied:
            own_server.start()
        else:
            own_server.send(signal.SIGCONT)
        await until(lambda: one.available and other.available)
        await asyncio.sleep(0.2)
        assert (await one.state()).drained == (await other.state()).drained == set()
        await agents.quiet()
        for store in (one, other):
            await store.close()

    try:
        asyncio.run(run())
    finally:
        own_server.send(signal.SIGCONT)


def test_a_pool_whose_connection_broke_without_the_store_is_no_member_when_it_is_back(
    own_server: StoreServer,
) -> None:
    """The store knows it as it was before. Without word of the end, it would be picked until it is silent."""

    async def run() -> None:
        store, shared, agents, _ = make(own_server)
        await store.open()
        await agents.join("a", "b")
        own_server.send(signal.SIGSTOP)
        await store.tick()
        assert not store.available
        del agents.peers["a"]
        await store.disconnected("a")
        own_server.send(signal.SIGCONT)
        await until(lambda: store.available)
        async with asyncio.timeout(TIMES.silence / 2):
            while [pool.name for pool in (await shared.state()).pools] != ["b"]:
                await asyncio.sleep(0.05)
                await store.tick()
        await agents.quiet()
        await store.close()

    try:
        asyncio.run(run())
    finally:
        own_server.send(signal.SIGCONT)


def test_a_drain_and_an_undrain_that_find_the_store_gone_reach_it_later(own_server: StoreServer) -> None:
    """The operator is told that it is done, although it is this very call that finds the store gone."""

    async def run() -> None:
        store, shared, agents, _ = make(own_server)
        await store.open()
        await agents.join("a", "b")
        for change, wanted in ((store.drain, {"a"}), (store.undrain, set[str]())):
            await store.state()
            with own_server.client() as client:
                client.config_set("min-replicas-to-write", 1)  # it answers, and refuses to write
                await change("a")
                assert not store.available
                assert (await store.state()).drained == wanted
                client.config_set("min-replicas-to-write", 0)
            await until(lambda: store.available)
            await agents.quiet()
            assert (await shared.state()).drained == wanted
        await store.close()

    asyncio.run(run())


@pytest.mark.full
def test_many_outages_do_not_take_the_terms_into_the_far_future(own_server: StoreServer) -> None:
    """Dispatchers reject agents with epochs from there."""

    async def run() -> None:
        store, shared, agents, _ = make(own_server)
        await store.open()
        await agents.join("a")
        for _ in range(10):
            with own_server.client() as client:
                client.config_set("min-replicas-to-write", 1)
                await agents.beat()
                assert not store.available
                client.config_set("min-replicas-to-write", 0)
            await until(lambda: store.available)
            await agents.beat()
        assert 0 < shared.term - term_now() < 12_000
        await store.close()

    asyncio.run(run())
