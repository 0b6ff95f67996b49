"""Many picks at once are as level as those of join-the-shortest-queue, embedded and on a shared store."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from statistics import pstdev
from tempfile import TemporaryDirectory

import pytest

from evenly.live.store.base import Store
from evenly.live.store.local import LocalStore
from evenly.live.store.valkey import ValkeyStore
from evenly.live.store_url import parse_store_url
from tests.live.dispatcher.rig import fleet
from tests.live.store.fleet import TIMES, Agents, place
from tests.live.stores import StoreServer

EMBEDDED, SHARED = "embedded", "valkey"
ALPHA = {10: "0.6", 20: "0.75", 100: "0.9"}


@asynccontextmanager
async def fleet_of(kind: str, tasks: Sequence[int], threshold: int, folder: Path) -> AsyncIterator[Store]:
    """Yield a store that knows pools with these tasks."""
    settings = replace(TIMES, alpha=ALPHA[len(tasks)])
    agents = Agents()
    if kind == EMBEDDED:
        agents.store = LocalStore(settings, term=1, threshold=threshold)
        await join(agents, tasks)
        yield agents.store
    else:
        with StoreServer(SHARED, folder) as server:
            store = ValkeyStore(settings, parse_store_url(server.url), fleet="burst", threshold=threshold)
            agents.store = store
            await store.open()
            await join(agents, tasks)
            yield store
            await store.close()


async def join(agents: Agents, tasks: Sequence[int]) -> None:
    names = [f"p{number:03}" for number in range(len(tasks))]
    await agents.join(*names)
    for name, count in zip(names, tasks, strict=True):
        for session in range(count):
            agents.say(agents.peers[name].begin(session))
    await agents.beat()


def shortest_queue(tasks: Sequence[int], picks: int) -> float:
    """Return the spread after join-the-shortest-queue has placed these picks: ties do not change it."""
    counts = list(tasks)
    for _ in range(picks):
        counts[counts.index(min(counts))] += 1
    return pstdev(counts)


def spread_after(kind: str, tasks: Sequence[int], clients: int, each: int, count: int, threshold: int) -> float:
    """Return the spread of sessions and places after clients have asked at once, each several times."""

    async def run(folder: Path) -> float:
        async with fleet_of(kind, tasks, threshold, folder) as store:

            async def client() -> None:
                for _ in range(each):
                    await place(store, count)

            await asyncio.gather(*(client() for _ in range(clients)))
            pools = (await store.state()).pools
            assert sum(pool.expected for pool in pools) == clients * each * count
            return pstdev(pool.sessions + pool.expected for pool in pools)

    with TemporaryDirectory() as folder:
        return asyncio.run(run(Path(folder)))


@pytest.mark.parametrize("kind", [EMBEDDED, SHARED])
@pytest.mark.parametrize(
    ("pools", "clients", "each", "count", "threshold"),
    [(10, 20, 25, 1, 0), (100, 500, 1, 1, 0), (10, 1, 1, 100, 0), (10, 20, 5, 1, 50)],
    ids=["500 by 20 clients", "500 on 100 pools", "100 in one request", "threshold left at 50"],
)
def test_a_burst_on_idle_pools_is_level(
    kind: str, pools: int, clients: int, each: int, count: int, threshold: int
) -> None:
    tasks = [0] * pools
    spread = spread_after(kind, tasks, clients, each, count, threshold)
    assert spread <= shortest_queue(tasks, clients * each * count) + 0.5


@pytest.mark.parametrize("kind", [EMBEDDED, SHARED])
def test_a_burst_on_busy_pools_is_level(kind: str) -> None:
    source = random.Random(4)
    tasks = [sum(source.random() < 0.55 for _ in range(10)) for _ in range(20)]
    assert spread_after(kind, tasks, 40, 1, 1, 5) <= 1.1 * shortest_queue(tasks, 40)


def test_a_burst_over_http_is_level() -> None:
    pools = tuple("abcdefghij")
    with fleet("--lease=600", "--alpha=0.6", pools=pools) as (dispatcher, _), dispatcher.client() as client:

        def ask(_: int) -> str:
            return str(client.post("/v1/sessions").json()["pool"])

        with ThreadPoolExecutor(20) as clients:
            places = Counter(clients.map(ask, range(500)))
    assert pstdev(places[pool] for pool in pools) <= 0.5
