"""The store dies, hangs and returns; picks go on."""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import suppress
from dataclasses import replace

import pytest

from evenly.core.protocol import PoolPeer
from evenly.core.protocol.dispatcher_peer import TERM
from evenly.live.store import functions
from evenly.live.store.base import (
    AllUnavailableError,
    NoPoolsError,
    Order,
    OutdatedError,
    PoolState,
    StoreUnavailableError,
    next_order,
)
from evenly.live.store.failover import FailoverStore
from evenly.live.store.local import term_now
from evenly.live.store.valkey import ValkeyStore
from evenly.live.store_url import parse_store_url
from tests.live.processes import PATIENCE
from tests.live.store.fleet import TIMES, Agents, drained, give, open_store, place, until
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
        await give(store, "c", drained=True)
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
        store, _, agents, events = make(own_server, timeout=1.0)
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
        await give(store, "a", drained=True)
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
            await give(other, pool, drained=True)
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
            if drained(state) == {"a", "gone"} and len(state.pools) == 2:
                break
            await asyncio.sleep(0.05)
        assert drained(state) == {"a", "gone"}
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
            await store.register("a", incarnation=1, address="ws://a", capacity=None)
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
        one, _, agents, _ = make(own_server, timeout=1.0)
        other, _, _, _ = make(own_server, timeout=1.0)
        for store in (one, other):
            await store.open()
        await agents.join("a", "b")
        await give(one, "a", drained=True)
        for store in (one, other):
            assert drained(await store.state()) == {"a"}
        if emptied:
            own_server.kill()
        else:
            own_server.send(signal.SIGSTOP)
        await one.tick()
        await other.tick()
        assert not one.available and not other.available
        await give(one, "a", drained=False)
        if emptied:
            own_server.start()
        else:
            own_server.send(signal.SIGCONT)
        await until(lambda: one.available and other.available)
        await asyncio.sleep(0.2)
        assert drained(await one.state()) == drained(await other.state()) == set()
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
        for drain, wanted in ((True, {"a"}), (False, set[str]())):
            await store.state()
            with own_server.client() as client:
                client.config_set("min-replicas-to-write", 1)  # it answers, and refuses to write
                await give(store, "a", drained=drain)
                assert not store.available
                assert drained(await store.state()) == wanted
                client.config_set("min-replicas-to-write", 0)
            await until(lambda: store.available)
            await agents.quiet()
            assert drained(await shared.state()) == wanted
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


def test_an_order_that_older_data_lacks_is_given_again(own_server: StoreServer) -> None:
    """A replica without the last writes takes over: it has a drain that has ended, or lacks one."""

    async def run(before: bool) -> None:
        store, _, agents, _ = make(own_server)
        await store.open()
        await agents.join("a", "b")
        await give(store, "a", drained=before)
        with own_server.client() as client:
            client.save()
        await give(store, "a", drained=not before)
        own_server.kill()
        with suppress(StoreUnavailableError):
            await store.tick()
        own_server.start()
        await until(lambda: store.available)
        await agents.beat()
        assert drained(await store.state()) == (set() if before else {"a"})
        assert {(await place(store))[0].pool for _ in range(4)} == ({"a", "b"} if before else {"b"})
        await store.close()

    for before in (True, False):
        asyncio.run(run(before))
        with own_server.client() as client:
            client.flushall()


def test_an_agent_that_started_earlier_is_refused_wherever_it_is_connected(own_server: StoreServer) -> None:
    """A restart overlaps: clients must not be sent to the old server, and its sessions must not be counted."""

    async def run() -> None:
        one, _, _, _ = make(own_server)
        other, _, _, _ = make(own_server)
        old, new = (PoolPeer("a", incarnation=number) for number in (1, 2))
        await one.open()
        await other.open()
        await one.register("a", incarnation=1, address="ws://old", capacity=None)
        await one.receive(old.heartbeat())
        await other.register("a", incarnation=2, address="ws://new", capacity=None)
        for _ in range(2):  # before and after the first message of the new one
            with pytest.raises(OutdatedError, match="started later"):
                await one.receive(old.heartbeat())
            with pytest.raises(OutdatedError):
                await one.register("a", incarnation=1, address="ws://old", capacity=None)
            await other.receive(new.heartbeat())
        assert [placed.address for placed in await place(one, 2)] == ["ws://new"] * 2
        await one.close()
        await other.close()

    asyncio.run(run())


def test_a_pool_that_was_forgotten_may_start_over_with_an_earlier_agent(own_server: StoreServer) -> None:
    """A rollback, or a clock that was set back: the later agent is dead, and has spoken or not."""
    times = replace(TIMES, lease=0.2, silence=0.4, heartbeat=0.1)

    async def run(spoken: bool) -> None:
        store, _ = await open_store(own_server, f"rollback-{spoken}", times)
        await store.register("a", incarnation=2, address="ws://later", capacity=None)
        if spoken:
            await store.receive(PoolPeer("a", incarnation=2).heartbeat())
        earlier = PoolPeer("a", incarnation=1)
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                await store.register("a", incarnation=1, address="ws://earlier", capacity=None)
                await store.receive(earlier.heartbeat())
                break
            except OutdatedError:
                assert spoken and time.monotonic() < deadline
                await asyncio.sleep(0.05)
                await store.tick()
        assert [placed.address for placed in await place(store)] == ["ws://earlier"]
        await store.close()

    for spoken in (True, False):
        asyncio.run(run(spoken))


def test_the_agents_are_asked_once_when_something_is_lost_and_not_by_picks(own_server: StoreServer) -> None:
    """Each asking is a message to every agent, and clients may ask for places as often as they like."""

    async def run() -> None:
        store, _, agents, _ = make(own_server)
        asked: list[bool] = []
        await store.open()
        store.on_lapse = lambda: asked.append(store.available)
        await store.register("silent", incarnation=1, address="ws://a", capacity=None)
        for _ in range(20):
            with pytest.raises(NoPoolsError):
                await place(store)
        assert asked == []
        await agents.join("a")
        own_server.kill()
        await place(store)
        await place(store)
        assert asked == [False]
        own_server.start()
        await until(lambda: store.available)
        assert asked[:2] == [False, True]
        await agents.quiet()
        await store.close()

    asyncio.run(run())


def test_lost_leases_are_noticed_under_traffic(own_server: StoreServer) -> None:
    """Places whose leases are gone would be kept for ever. Those of clients that come hide how many there are."""
    times = replace(TIMES, lease=0.3, silence=60.0, heartbeat=5.0)

    async def run() -> None:
        store, agents = await open_store(own_server, "leases", times)
        await agents.join("a", "b")
        for _ in range(100):
            agents.arrive((await place(store))[0])
        await agents.quiet()
        await place(store, 20)
        with own_server.client() as client:
            client.delete("evenly:2:{leases}:expiring")
        async with asyncio.timeout(PATIENCE):
            while sum(pool.expected for pool in (await store.state()).pools) >= 20:
                with suppress(NoPoolsError, AllUnavailableError):
                    agents.arrive((await place(store))[0])
                await agents.beat()
        await store.close()

    asyncio.run(run())


def test_the_newest_order_survives_in_a_store_that_another_dispatcher_opens(own_server: StoreServer) -> None:
    async def run() -> None:
        one, _, agents, _ = make(own_server)
        other, _, _, _ = make(own_server)
        await one.open()
        await other.open()
        await agents.join("a", "b")
        await give(one, "a", drained=True)
        assert drained(await other.state()) == {"a"}
        await give(one, "a", drained=False)
        with own_server.client() as client:
            client.flushall()
        await other.tick()  # it knows the drain only
        await one.tick()
        await until(lambda: one.available and other.available)
        async with asyncio.timeout(PATIENCE):
            while drained(await one.state()):
                await asyncio.sleep(0.01)
        await agents.quiet()
        await one.close()
        await other.close()

    asyncio.run(run())


def test_a_drain_without_the_store_outdoes_an_order_of_a_clock_that_is_ahead(own_server: StoreServer) -> None:
    async def run() -> None:
        store, shared, agents, _ = make(own_server)
        await store.open()
        await agents.join("a", "b")
        ahead = next_order(None, drained=False)
        await store.order("a", Order(ahead.version + 60_000, drained=False))
        own_server.kill()
        with suppress(StoreUnavailableError):
            await store.tick()
        await give(store, "a", drained=True)
        own_server.start()
        await until(lambda: store.available)
        await agents.beat()
        assert drained(await shared.state()) == {"a"}
        await store.close()

    asyncio.run(run())


@pytest.mark.parametrize("lost", ["places", "everything"])
def test_a_pool_is_picked_with_its_address_or_not_at_all(own_server: StoreServer, lost: str) -> None:
    async def run() -> None:
        store, _, agents, _ = make(own_server)
        await store.open()
        await agents.join("a", "b")
        await place(store, 2)
        with own_server.client() as client:
            if lost == "everything":
                client.flushall()
            else:
                client.delete(f"evenly:2:{{failover}}:{lost}")
            for _ in range(20):
                with suppress(NoPoolsError, AllUnavailableError):
                    assert {placed.address for placed in await place(store, 2)} <= {"http://a", "http://b"}
                await agents.beat()
            assert len((await store.state()).pools) == 2
        await store.close()

    asyncio.run(run())


def test_a_clock_that_jumps_costs_seconds(own_server: StoreServer) -> None:
    """The store's clock is an hour ahead, and then corrected. Leases must end, and a silent pool must go."""
    times = replace(TIMES, lease=0.2, silence=0.4, heartbeat=0.1)

    async def run() -> None:
        store, agents = await open_store(own_server, "jump", times)
        await agents.join("a", "b")
        with own_server.client() as client:
            now = client.time()
            ahead = functions.common_arguments(times, now[0] * 1_000_000 + now[1] + 3_600_000_000)
            keys = functions.keys_of("jump")
            client.fcall(f"{functions.LIBRARY}_tick", len(keys), *keys, *ahead)
        await agents.beat()
        await place(store)
        for _ in range(600):
            agents.say(agents.peers["b"].heartbeat())
            await agents.quiet()
            state = await store.state()
            if state.expired and {pool.name for pool in state.pools} == {"b"}:
                break
            await asyncio.sleep(0.05)
        assert {placed.pool for placed in await place(store, 4)} == {"b"}
        await store.close()

    asyncio.run(run())
