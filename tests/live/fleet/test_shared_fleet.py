"""Two dispatcher processes on one real store, with real agents: what a client sees when parts of it die."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from evenly.live.agents import Agent
from evenly.live.agents.agent import Session
from tests.live.dispatcher.rig import Dispatcher, Loop
from tests.live.processes import eventually
from tests.live.stores import KINDS, StoreServer

POOLS = tuple("abcdef")


class Pools:
    """Pools with agents, in one event loop beside the test, and the sessions that are open there."""

    def __init__(self, *dispatchers: Dispatcher) -> None:
        self.loop = Loop()
        self.sessions: dict[str, list[Session]] = {pool: [] for pool in POOLS}
        urls = [dispatcher.url for dispatcher in dispatchers]
        self.agents = {
            pool: Agent(pool=pool, address=f"ws://{pool}.example:1", dispatchers=urls) for pool in POOLS
        }

    def arrive(self, place: dict[str, str]) -> None:
        async def begin() -> Session:
            return self.agents[place["pool"]].begin(place["id"])

        self.sessions[place["pool"]].append(self.loop.run(begin()))

    def counts(self) -> dict[str, int]:
        return {pool: agent.sessions for pool, agent in self.agents.items()}


async def _start(agents: list[Agent]) -> None:
    for agent in agents:
        agent.start()


async def _close(agents: list[Agent]) -> None:
    await asyncio.gather(*(agent.close() for agent in agents))


@contextmanager
def two_dispatchers(store: StoreServer, *, heartbeat: int = 1) -> Iterator[tuple[Dispatcher, Dispatcher, Pools]]:
    """Run two dispatchers that know all pools; each agent is connected to one of them."""
    options = (f"--store={store.url}", "--fleet=games", "--lease=600", f"--heartbeat={heartbeat}")
    with Dispatcher(*options) as one, Dispatcher(*options) as other:
        pools = Pools(one, other)
        agents = list(pools.agents.values())
        pools.loop.run(_start(agents))
        try:
            for dispatcher in (one, other):
                dispatcher.wait_for(lambda state: {pool["name"] for pool in state["pools"]} == set(POOLS))
            yield one, other, pools
        finally:
            pools.loop.run(_close(agents))
            pools.loop.close()


def known(dispatcher: Dispatcher) -> dict[str, int]:
    return {pool["name"]: pool["sessions"] for pool in dispatcher.state()["pools"]}


def placed(dispatcher: Dispatcher) -> dict[str, int]:
    """Return the sessions of each pool, with those whose clients are not known to have arrived."""
    return {pool["name"]: pool["sessions"] + pool["expected"] for pool in dispatcher.state()["pools"]}


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoreServer]:
    with StoreServer(request.param, tmp_path) as server:
        yield server


@pytest.mark.long
def test_two_dispatchers_place_as_one(store: StoreServer) -> None:
    """Every pool gets its first session before any gets its second."""
    with two_dispatchers(store) as (one, other, pools):
        places = [(one, other)[number % 2].post().json() for number in range(2 * len(POOLS))]
        assert Counter(place["pool"] for place in places[: len(POOLS)]) == dict.fromkeys(POOLS, 1)
        assert Counter(place["pool"] for place in places) == dict.fromkeys(POOLS, 2)
        for place in places:
            pools.arrive(place)
        for dispatcher in (one, other):
            eventually(lambda d=dispatcher: known(d), lambda seen: seen == pools.counts())  # type: ignore[misc]
            assert dispatcher.state()["expected"] == 0
        assert one.state()["threshold"] == other.state()["threshold"]


@pytest.mark.full
def test_a_key_is_known_to_both_dispatchers_and_so_is_a_drain(store: StoreServer) -> None:
    with two_dispatchers(store) as (one, other, _):
        first = one.post(Idempotency_Key="k1").json()
        again = other.post(Idempotency_Key="k1").json()
        assert (first["id"], first["pool"]) == (again["id"], again["pool"])
        assert other.post({"exclude": ["a"]}, Idempotency_Key="k1").json()["code"] == "key_reused"
        with other.client() as client:
            assert client.delete(f"/v1/sessions/{first['id']}").status_code == 204
        assert one.state()["expected"] == 0
        for pool in POOLS[1:]:
            assert one.admin("POST", f"/pools/{pool}/drain").status_code == 200
        assert {other.post().json()["pool"] for _ in range(3)} == {"a"}
        assert other.post({"exclude": ["a"]}).json()["code"] == "all_full_or_draining"


@pytest.mark.long
def test_a_dispatcher_that_dies_takes_no_pool_along(store: StoreServer) -> None:
    with two_dispatchers(store) as (one, other, pools):
        for _ in range(6):
            pools.arrive(one.post().json())
        one.kill()
        eventually(lambda: other.state()["agents"], lambda agents: agents == len(POOLS))
        eventually(lambda: known(other), lambda seen: seen == pools.counts())
        pools.arrive(other.post().json())
        one.start()
        eventually(lambda: known(one), lambda seen: seen == pools.counts())
        pools.arrive(one.post().json())


@pytest.mark.full
def test_without_the_store_each_dispatcher_goes_on_and_says_so(store: StoreServer) -> None:
    """Every agent is connected to one dispatcher: without the store, each places sessions at its own pools.

    No heartbeat is due for a minute: a dispatcher that has lost its store, or found it empty, asks its agents.
    """
    with two_dispatchers(store, heartbeat=60) as (one, other, pools):
        for _ in range(6):
            pools.arrive(one.post().json())
        threshold = one.state()["threshold"]
        store.kill()
        here = {dispatcher: {p for p in POOLS if pools.agents[p].dispatcher == _websocket(dispatcher)}
                for dispatcher in (one, other)}  # fmt: skip
        assert set.union(*here.values()) == set(POOLS)
        for dispatcher, own in here.items():
            _place_without_store(dispatcher, own, pools)
            at = {pool: count for pool, count in pools.counts().items() if pool in own}
            eventually(lambda d=dispatcher: placed(d), lambda seen, at=at: seen == at, seconds=30)  # type: ignore[misc]
        assert one.state()["threshold"] >= threshold - 1 or not here[one]  # its first pick may take a step
        store.start()  # empty
        for dispatcher in (one, other):
            dispatcher.wait_for(lambda state: state["store"]["available"] and len(state["pools"]) == len(POOLS))
            eventually(lambda d=dispatcher: known(d), lambda seen: seen == pools.counts())  # type: ignore[misc]
            assert dispatcher.admin("GET", "/readyz").json() == {"status": "ready", "store": "available"}
            assert len(dispatcher.events("store lost")) == len(dispatcher.events("store back")) == 1
        # All agents follow one threshold again.
        eventually(
            lambda: ({agent.threshold for agent in pools.agents.values()}, {one.state()["threshold"]}),
            lambda seen: seen[0] == seen[1],
        )
        pools.arrive(other.post().json())


def _websocket(dispatcher: Dispatcher) -> str:
    return f"{dispatcher.url.replace('http', 'ws', 1)}/v1/agents"


def _place_without_store(dispatcher: Dispatcher, own: set[str], pools: Pools) -> None:
    if not own:
        answer = eventually(dispatcher.post, lambda found: found.status_code == httpx.codes.SERVICE_UNAVAILABLE)
        assert answer.json()["code"] == "store_unavailable"
        return
    place = dispatcher.post().json()
    assert place["pool"] in own
    pools.arrive(place)
    ready = eventually(lambda: dispatcher.admin("GET", "/readyz").json(), lambda found: "store" in found)
    assert ready == {"status": "ready", "store": "unavailable"}
    with dispatcher.client() as client:
        assert client.get("/readyz").json() == ready
    assert "evenly_store_available 0.0" in dispatcher.admin("GET", "/metrics").text
    assert dispatcher.state()["store"] == {"kind": "shared", "available": False, "outages": 1}


@pytest.mark.full
def test_a_dispatcher_without_store_and_pools_says_which_is_missing(tmp_path: Path) -> None:
    server = StoreServer("valkey", tmp_path)
    with Dispatcher(f"--store={server.url}") as dispatcher:
        answer = dispatcher.post()
        assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
        with server:
            dispatcher.wait_for(lambda state: state["store"]["available"])
            assert dispatcher.post().json()["code"] == "no_pools"
