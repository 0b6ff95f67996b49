"""Measure what attackers cost other clients: evenly's gateway and HAProxy's leastconn, one after the other.

Each attack meets a fresh balancer with the same pools, the same innocent WebSocket sessions and the same limit on
open files. The attacks are those of `chaos`. During the attack and after it, newcomers try to open sessions.
"""

from __future__ import annotations

import asyncio
import math
import random
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench import rivals
from bench.measure import Figure
from bench.processes import Process, free_addresses, listens
from chaos import attackers
from chaos.field import in_background
from chaos.gateway import Gateway
from chaos.innocents import crowd, try_once
from chaos.pools import Pool, pool_servers
from chaos.processes import limited, usage
from evenly.live.addresses import Address
from evenly.live.processes import raise_fd_limit

POOLS, INNOCENTS, FILES = 20, 500, 4000
HOLD_S = 10.0  # an attack lasts this long
SERVED_S = 30.0  # after the attack, newcomers must be served again within this time
_TRY_EVERY_S = 0.2
_SAMPLE_S = 0.2
_START_S = 60.0
_SEED = 1


@dataclass(frozen=True)
class Balancer:
    """A running balancer: its address, and the resident memory of its processes in bytes."""

    listen: Address
    memory: Callable[[], int]


Attack = Callable[[Address], AbstractAsyncContextManager[object]]
Start = Callable[[Path, Sequence[Pool]], AbstractAsyncContextManager[Balancer]]


@dataclass
class Measured:
    """What an attack cost."""

    lost: int = 0
    tried: int = 0
    refused: int = 0
    unserved: float = 0.0  # longest time in seconds without a newcomer being served
    memory: int = 0  # peak, in bytes


# --- the balancers --------------------------------------------------------------------------------------------


@asynccontextmanager
async def evenly(folder: Path, pools: Sequence[Pool]) -> AsyncIterator[Balancer]:
    """Start `evenly gateway`."""
    gateway = Gateway(folder, [pool.address for pool in pools], files=FILES)
    try:
        await gateway.start()
        yield Balancer(gateway.listen, lambda: sum(usage(pid).memory for pid in gateway.pids().values()))
    finally:
        await gateway.stop()


@asynccontextmanager
async def haproxy(folder: Path, pools: Sequence[Pool]) -> AsyncIterator[Balancer]:
    """Start HAProxy. It derives its limit of connections from the files that it may open."""
    program = rivals.haproxy_program()
    assert program is not None
    [listen] = free_addresses(1)
    front = rivals.Front(listen, "leastconn", [pool.address for pool in pools])
    file = folder / "haproxy.cfg"
    file.write_text(haproxy_config(front), encoding="utf-8")
    with Process(limited(FILES, [program, "-db", "-f", str(file)]), lambda: listens(listen)) as process:
        await asyncio.to_thread(process.wait)
        yield Balancer(listen, lambda: usage(process.number).memory)


def haproxy_config(front: rivals.Front) -> str:
    """Return a config as its manual recommends it: headers must arrive within 10 s, and there is no maxconn."""
    text = rivals.haproxy_config([front])
    return text.replace("  maxconn 8000\n", "").replace(
        "  timeout client 1m\n", "  timeout client 1m\n  timeout http-request 10s\n"
    )


BALANCERS: dict[str, Start] = {"evenly": evenly, "HAProxy leastconn": haproxy}


# --- the attacks ----------------------------------------------------------------------------------------------


@asynccontextmanager
async def _resets(server: Address, clients: int, streams: int) -> AsyncIterator[None]:
    await attackers.rapid_resets(server, clients, streams)
    yield


def attacks(scale: float) -> dict[str, Attack]:
    """Return the attacks by name. A scale below 1 makes them smaller."""
    chance = random.Random(_SEED)

    def scaled(count: int) -> int:
        return max(round(scale * count), 1)

    files, posts, slow = scaled(FILES), scaled(400), scaled(300)
    clients, resetting = scaled(60), scaled(10)  # a server allows 100 streams or more
    return {
        f"{clients} HTTP/2 clients with hanging streams": partial(attackers.hanging_streams, connections=clients),
        f"{files:,} silent connections": partial(attackers.silent_connections, count=files),
        f"{slow} POSTs, a byte per second": partial(
            attackers.slow_connections, count=slow, start=attackers.slow_body(2**20), chance=chance
        ),
        f"{posts} waiting POSTs of 1 MB": partial(attackers.waiting_posts, count=posts, size=10**6),
        f"{resetting * 1000:,} rapid resets": partial(_resets, clients=resetting, streams=1000),
    }


# --- the measurements -----------------------------------------------------------------------------------------


async def attacked(start: Start, attack: Attack, scale: float) -> Measured:
    """Start a balancer and attack it once. Return what that cost."""
    with tempfile.TemporaryDirectory() as folder:
        async with pool_servers(max(round(scale * POOLS), 2)) as pools, start(Path(folder), pools) as balancer:
            innocents = max(round(scale * INNOCENTS), 10)
            async with crowd(balancer.listen, innocents) as people:
                if not await people.wait(_START_S):
                    raise RuntimeError(f"only {len(people.open)} of {innocents} innocents were served")
                result = Measured()
                async with in_background(_sample(balancer, result)), in_background(_newcomers(balancer, result)):
                    async with attack(balancer.listen):
                        await asyncio.sleep(scale * HOLD_S)
                    await _served_again(balancer)
                result.lost = len(people.lost)
    return result


async def _sample(balancer: Balancer, result: Measured) -> None:
    while True:
        result.memory = max(result.memory, balancer.memory())
        await asyncio.sleep(_SAMPLE_S)


async def _newcomers(balancer: Balancer, result: Measured) -> None:
    """Try to open sessions all the time, as clients do that come while the attack is on."""
    served = time.monotonic()
    while True:
        reason = await try_once(balancer.listen)
        result.tried += 1
        result.refused += bool(reason)
        result.unserved = max(result.unserved, time.monotonic() - served)
        if not reason:
            served = time.monotonic()
        await asyncio.sleep(_TRY_EVERY_S)


async def _served_again(balancer: Balancer) -> None:
    """Wait until the newcomers are served again, so that they can measure how long that took."""
    deadline = time.monotonic() + SERVED_S
    while await try_once(balancer.listen) and time.monotonic() < deadline:
        await asyncio.sleep(_TRY_EVERY_S)
    await asyncio.sleep(2 * _TRY_EVERY_S)


def siege(scale: float) -> Iterator[Figure]:
    """Yield the figures of this module. A scale below 1 means smaller and shorter attacks."""
    scale = min(scale, 1)
    raise_fd_limit()
    found = {name: start for name, start in BALANCERS.items() if name == "evenly" or rivals.haproxy_program()}
    for title, attack in attacks(scale).items():
        for name, start in found.items():
            result = asyncio.run(attacked(start, attack, scale))
            yield from _rows(f"{title}: {name}", result, goal=0 if name == "evenly" else None)
    if len(found) < len(BALANCERS):
        yield Figure("HAProxy leastconn", math.nan, "haproxy is not installed")


def _rows(name: str, result: Measured, goal: float | None) -> Iterator[Figure]:
    yield Figure(f"{name}, innocents lost", result.lost, "", goal, at_least=False)
    yield Figure(f"{name}, newcomers refused", result.refused, f"of {result.tried}")
    yield Figure(f"{name}, longest time without a newcomer served", result.unserved, "s")
    yield Figure(f"{name}, peak memory", result.memory / 2**20, "MiB")
