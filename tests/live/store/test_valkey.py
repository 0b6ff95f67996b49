"""The shared store against real servers: what it returns, what it keeps, and how it mends itself."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from evenly.core.protocol import KeyReusedError, PoolPeer, TooManyPicksError
from evenly.core.protocol.dispatcher_peer import TERM
from evenly.core.protocol.records import MAX_POOLS
from evenly.errors import InputError
from evenly.live.store import functions, link
from evenly.live.store.base import (
    AllUnavailableError,
    FleetSettings,
    NoPoolsError,
    Order,
    PoolState,
    StoreUnavailableError,
)
from evenly.live.store.link import StoreRefusedError
from evenly.live.store.valkey import ValkeyStore
from evenly.live.store_url import parse_store_url
from tests.live.certificates import Authority
from tests.live.processes import free_port
from tests.live.store.fleet import TIMES, Agents, drained, give, open_store, place
from tests.live.stores import StoreServer


def test_a_pick_names_the_pool_and_its_address(server: StoreServer) -> None:
    async def run() -> None:
        store, agents = await open_store(server, "picks")
        with pytest.raises(NoPoolsError):
            await place(store)
        await agents.join("a", "b", capacity=2)
        first, second = await place(store, 2)
        assert {first.pool, second.pool} == {"a", "b"}  # the second avoids the pool of the first
        assert first.address == f"http://{first.pool}"
        assert first.ticket >= store.term * TERM
        assert 0 < first.expires_in <= TIMES.lease
        tickets = [(await place(store, 1, "a", key="again"))[0].ticket for _ in range(2)]
        assert tickets[0] == tickets[1]
        with pytest.raises(KeyReusedError):
            await place(store, 2, "a", key="again")
        with pytest.raises(AllUnavailableError):
            await place(store, 1, "a", "b")
        with pytest.raises(AllUnavailableError):
            await place(store, 5)
        await store.release(first.pool, first.ticket)
        await store.release(first.pool, first.ticket)
        state = await store.state()
        assert state.released == 1
        assert {pool.name: (pool.expected, pool.capacity) for pool in state.pools}["b"][1] == 2
        assert sum(pool.expected for pool in state.pools) == 2
        await give(store, "a", drained=True)
        states = {pool.name: pool.state for pool in (await store.state()).pools}
        assert states["a"] is PoolState.DRAINING
        await give(store, "a", drained=False)
        await store.close()

    asyncio.run(run())


def test_two_dispatchers_see_one_truth(server: StoreServer) -> None:
    async def run() -> None:
        one, here = await open_store(server, "shared")
        other, there = await open_store(server, "shared")
        assert one.key == other.key
        await here.join("a")
        await there.join("b")
        for _ in range(20):
            (placed,) = await place(one)
            (here if placed.pool in here.peers else there).arrive(placed)
            await other.tick()
            await asyncio.gather(here.quiet(), there.quiet())
        await asyncio.gather(here.beat(), there.beat())
        threshold = (await one.state()).threshold
        assert here.peers["a"].threshold == there.peers["b"].threshold == threshold >= 9
        assert [peer.tasks for peer in (here.peers["a"], there.peers["b"])] == [10, 10]
        assert (await one.state()).pools == (await other.state()).pools
        await one.close()
        await other.close()

    asyncio.run(run())


def test_the_store_may_be_emptied(server: StoreServer) -> None:
    async def run() -> None:
        store, agents = await open_store(server, "emptied")
        emptied: list[bool] = []
        store.on_lapse = lambda: emptied.append(True)
        await agents.join("a", "b")
        (before,) = await place(store)
        key, term = store.key, store.term
        with server.client() as client:
            client.flushall()
            client.function_flush()
        with pytest.raises(NoPoolsError):
            await place(store)
        assert emptied == [True]
        assert (store.key, store.term > term) == (key, True)
        await agents.beat()
        (after,) = await place(store)
        assert after.ticket > before.ticket
        await store.close()

    asyncio.run(run())


def test_half_a_state_is_made_again(server: StoreServer) -> None:
    async def run() -> None:
        store, agents = await open_store(server, "half")
        await agents.join("a", "b")
        key = store.key
        for lost in ("ranked", "hot", "cold", "fleet"):
            with server.client() as client:
                client.delete(f"evenly:2:{{half}}:{lost}")
            for _ in range(3):  # what is missing is found out when it is needed
                with contextlib.suppress(NoPoolsError, AllUnavailableError):
                    await place(store, 3)
                await agents.beat()
            assert len(await place(store, 3)) == 3
            assert len((await store.state()).pools) == 2
        assert store.key == key
        await store.close()

    asyncio.run(run())


def test_a_restart_with_old_data_begins_a_term(tmp_path: Path) -> None:
    async def run(server: StoreServer) -> None:
        store, agents = await open_store(server, "restart")
        await agents.join("a")
        with server.client() as client:
            client.save()
        await place(store, 3)
        term, key = store.term, store.key
        server.kill()
        with pytest.raises(StoreUnavailableError):
            await place(store)
        server.start()
        (placed,) = await place(store)
        assert store.key == key
        assert store.term > term
        assert placed.ticket == store.term * TERM
        await store.close()

    with StoreServer("valkey", tmp_path) as server:
        asyncio.run(run(server))


def test_all_keys_have_the_hash_tag_and_none_is_left_over(server: StoreServer) -> None:
    async def run() -> None:
        settings = FleetSettings(alpha="0.93", lease=0.05, silence=600, memory=0.05, heartbeat=0.05)
        store, agents = await open_store(server, "bounded", settings)
        await agents.join("a", "b", "c", capacity=1000)
        for number in range(50):
            placed = await place(store, 4, "a", key=f"key {number}")
            await store.release(placed[0].pool, placed[0].ticket)
            agents.arrive(placed[1])
        await agents.quiet()
        with server.client() as client:
            assert set(client.keys("*bounded*")) <= {key.encode() for key in functions.keys_of("bounded")}
            assert all(b"{bounded}" in key for key in client.keys("*bounded*"))
            for pool in "abc":
                await store.disconnected(pool)
            for _ in range(6000):
                await asyncio.sleep(0.01)
                await store.tick()
                if len(client.keys("*bounded*")) == 2:
                    break
            # Where a pool is outlives the pool: it is registered before its first message.
            assert sorted(client.keys("*bounded*")) == [b"evenly:2:{bounded}:fleet", b"evenly:2:{bounded}:places"]
            assert client.hlen("evenly:2:{bounded}:fleet") == 3
            assert client.hlen("evenly:2:{bounded}:places") == 3
        state = await store.state()
        assert (state.pools, state.green, state.yellow) == ((), 0, 0)
        assert state.released + state.expired >= 150  # a place may expire before it is given back
        await store.close()

    asyncio.run(run())


@pytest.mark.parametrize("batch", [pytest.param(1, marks=pytest.mark.full), 100])
def test_picks_are_uniform(server: StoreServer, batch: int) -> None:
    """Chi-square with 999 degrees of freedom: 1,235 is exceeded with probability 4e-7."""
    pools, picks = 1000, 20_000

    async def run() -> Counter[str]:
        store = ValkeyStore(TIMES, parse_store_url(server.url), fleet=f"uniform-{batch}")
        store._random = random.Random(7)
        for number in range(pools):
            peer = PoolPeer(f"pool-{number}", incarnation=1)
            peer.begin("a session")
            await store.register(f"pool-{number}", incarnation=1, address="http://a", capacity=None)
            await store.receive(peer.heartbeat())
        counts: Counter[str] = Counter()
        for _ in range(picks // batch // 10):
            for placed in await asyncio.gather(*(place(store, batch) for _ in range(10))):
                counts.update(each.pool for each in placed)
        await store.close()
        return counts

    counts = asyncio.run(run())
    assert sum(counts.values()) == picks
    expected = picks / pools
    assert sum((counts[f"pool-{number}"] - expected) ** 2 / expected for number in range(pools)) < 1235


def test_an_agent_cannot_write_elsewhere(server: StoreServer) -> None:
    async def run() -> None:
        store, _ = await open_store(server, "garbage")
        for name in ("#0", "a b", "a/b", "", "a\nb", "a" * 101, "{x}"):
            with pytest.raises(InputError):
                await store.register(name, incarnation=1, address="http://a", capacity=None)
            with pytest.raises(InputError):
                await store.receive(PoolPeer(name, incarnation=1).heartbeat())
            with pytest.raises(InputError):
                await give(store, name, drained=True)
        odd = "\ud800\n\0 key"
        with pytest.raises(NoPoolsError):
            await place(store, 1, odd, key=odd)
        await store.close()

    asyncio.run(run())


def test_ends_of_drains_are_forgotten_where_there_are_too_many_orders(server: StoreServer) -> None:
    async def run() -> None:
        store, _ = await open_store(server, "orders")
        await store.order("kept", Order(1, drained=True))
        names = [f"ended-{number}" for number in range(MAX_POOLS - 1)]
        for start in range(0, len(names), 1000):
            await asyncio.gather(
                *(store.order(name, Order(1, drained=False)) for name in names[start : start + 1000])
            )
        assert len((await store.state()).orders) == MAX_POOLS
        await store.order("new", Order(1, drained=True))
        assert drained(await store.state()) == (await store.state()).orders.keys() == {"kept", "new"}
        await store.close()

    asyncio.run(run())


def test_a_user_with_few_rights_is_enough(server: StoreServer) -> None:
    """The reference lists these rights, for a dispatcher that does not announce itself."""
    page = (Path(__file__).parents[3] / "docs" / "reference" / "live.md").read_text()
    listed = page.split("A user with access to `~evenly:*` and the commands ")[-1].split(" is enough")[0]
    rights = [f"+{name}" for name in re.findall(r"`(.+?)`", listed)]
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "dispatcher", "on", ">right", "~evenly:*", "-@all", *rights)

    async def run() -> None:
        url = parse_store_url(f"redis://dispatcher:right@127.0.0.1:{server.port}")
        store = ValkeyStore(TIMES, url, fleet="rights")
        agents = Agents()
        agents.store = store
        await store.open()
        await agents.join("a", "b")
        placed = (await place(store, 1, "b", key="k"))[0]
        await store.release(placed.pool, placed.ticket)
        await give(store, "a", drained=True)
        assert drained(await store.state()) == {"a"}
        await agents.beat()
        await store.tick()
        await store.disconnected("b")
        await store.close()

    asyncio.run(run())


def test_too_many_waiting_calls_are_rejected(server: StoreServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        store, agents = await open_store(server, "waiting")
        await agents.join("a")
        monkeypatch.setattr(link, "MAX_WAITING", 5)
        results = await asyncio.gather(*(place(store) for _ in range(8)), return_exceptions=True)
        assert [isinstance(result, StoreUnavailableError) for result in results] == [False] * 5 + [True] * 3
        await store.close()

    asyncio.run(run())


def test_a_wrong_password_is_one_sentence_without_it(tmp_path: Path, server: StoreServer) -> None:
    async def run(url: str) -> None:
        store = ValkeyStore(TIMES, parse_store_url(url), fleet="guarded")
        try:
            await store.open()
            await store.tick()
        finally:
            await store.close()

    with StoreServer(server.kind, tmp_path, password="right") as guarded:
        for login in ("", ":wr0ng@", "user:wr0ng@"):
            with pytest.raises(StoreRefusedError, match=r"^The store rejected the user name or the password\.$"):
                asyncio.run(run(f"redis://{login}127.0.0.1:{guarded.port}"))
        asyncio.run(run(f"redis://:right@127.0.0.1:{guarded.port}"))
        asyncio.run(run(f"redis://default:right@127.0.0.1:{guarded.port}/3"))


@pytest.mark.full
def test_tls_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the system's redis-server is built with TLS."""
    authority = Authority(tmp_path, "ours")
    pair = authority.sign("store", host="store.test")
    port = free_port()
    files = ("--tls-cert-file", str(pair.cert), "--tls-key-file", str(pair.key))
    trusted = ("--tls-ca-cert-file", str(authority.cert), "--tls-auth-clients", "no")
    options = ("--tls-port", str(port), *files, *trusted)

    async def run(server: StoreServer, host: str) -> None:
        url = parse_store_url(f"rediss://{host}:{port}")
        store = ValkeyStore(TIMES, url, fleet="tls")
        try:
            await store.open()
            await store.tick()
        finally:
            await store.close()

    with StoreServer("redis", tmp_path, *options) as server:
        with pytest.raises(StoreUnavailableError, match="certificate"):
            asyncio.run(run(server, "127.0.0.1"))
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.cert))
        asyncio.run(run(server, "127.0.0.1"))
        with pytest.raises(StoreUnavailableError, match="certificate"):
            asyncio.run(run(server, "localhost"))


def test_a_long_lease_does_not_hold_up_shorter_ones(server: StoreServer) -> None:
    """Dispatchers may have different leases, at the latest while their options are being changed."""

    async def run() -> None:
        long, agents = await open_store(server, "leases", replace(TIMES, lease=600.0))
        short, _ = await open_store(server, "leases", replace(TIMES, lease=0.05))
        await agents.join("a")
        await place(long)
        await place(short, 3)
        while (await short.state()).expired < 3:
            await asyncio.sleep(0.02)
            await short.tick()
        assert [pool.expected for pool in (await short.state()).pools] == [1]
        await long.close()
        await short.close()

    asyncio.run(run())


def test_picks_within_one_lease_are_limited(own_server: StoreServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that get nothing do not count: they give back what they took."""
    text = functions.library()
    few = text.replace("MAX_PLACES = 500000", "MAX_PLACES = 3")
    assert few != text
    monkeypatch.setattr(functions, "library", lambda: few)

    async def run() -> None:
        store, agents = await open_store(own_server, "crowded")
        await agents.join("a", capacity=2)
        for _ in range(5):
            with pytest.raises(AllUnavailableError):
                await place(store, 3)
        for _ in range(2):
            assert len(await place(store, 2, key="k")) == 2
        await agents.join("b")
        await place(store)
        with pytest.raises(TooManyPicksError, match="within one lease"):
            await place(store)
        await agents.quiet()
        await store.close()

    asyncio.run(run())
