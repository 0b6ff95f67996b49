"""How long a fleet takes to recover when one of its parts is killed with SIGKILL and started again at once."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.measure import Figure
from bench.processes import ALPHA, HOST
from evenly.live.addresses import Address
from evenly.live.demo.fleet.counts import fetch_view
from evenly.live.demo.fleet.processes import Part, StorePart, dispatcher_command
from evenly.live.demo.fleet.traffic import SESSIONS_PATH
from evenly.live.demo.http_client import request
from evenly.live.dispatcher.views import FleetView
from evenly.live.gateway.resources import reserved_port
from evenly.live.store.base import PoolState

POOLS = 20
_POLL_S = 0.01
_CALM_S = 1.0  # a state that lasts this long has come to stay
_TIMEOUT_S = 60.0
_CREATED = 201

Good = Callable[[FleetView], bool]


@dataclass(frozen=True)
class Stack:
    """A running fleet. The last pool has a process of its own, so that it can be killed alone."""

    store: Part | None
    dispatchers: Sequence[Part]
    api: Sequence[Address]
    admin: Sequence[Address]
    last_pool: Part
    pools: int

    def all_serve(self, view: FleetView) -> bool:
        """Return whether all pools are members."""
        return _serving(view) == self.pools and view.store.available

    async def calm(self) -> None:
        """Wait until all is well."""
        for admin in self.admin:
            await until(admin, self.all_serve)


def _serving(view: FleetView) -> int:
    return sum(pool.state is PoolState.SERVING for pool in view.pools)


async def until(admin: Address, good: Good) -> float:
    """Return the seconds until the dispatcher's state is good, to stay so."""
    began = time.perf_counter()
    since: float | None = None
    async with asyncio.timeout(_TIMEOUT_S):
        while since is None or time.perf_counter() < since + _CALM_S:
            view = await fetch_view(admin)
            if view is None or not good(view):
                since = None
            elif since is None:
                since = time.perf_counter()
            await asyncio.sleep(_POLL_S)
    return since - began


async def until_picked(api: Sequence[Address]) -> float:
    """Return the seconds until a client has a place that asks these dispatchers in turn."""
    began = time.perf_counter()
    async with asyncio.timeout(_TIMEOUT_S):
        while True:
            for each in api:
                try:
                    answer = await request(each, "POST", SESSIONS_PATH)
                except OSError:
                    continue
                if answer.status == _CREATED:
                    return time.perf_counter() - began
            await asyncio.sleep(_POLL_S)


def pools_command(pools: dict[str, Address], dispatchers: Sequence[Address]) -> list[str]:
    """Return the command of a process with several pools."""
    return [
        *(sys.executable, "-m", "evenly.live.demo.fleet.pool"),
        *(word for name, address in pools.items() for word in ("--pool", f"{name}={address}")),
        *(word for each in dispatchers for word in ("--dispatcher", f"http://{each}")),
    ]


@asynccontextmanager
async def started(pools: int, dispatchers: int, *, shared: bool) -> AsyncIterator[Stack]:
    """Start a fleet. The ports are held here, so that a part comes back at the same address."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        log = stack.enter_context((folder / "log").open("w+b"))

        def port() -> Address:
            return stack.enter_context(reserved_port(Address(HOST, 0)))

        async def start(part: Part) -> Part:
            stack.push_async_callback(part.stop)
            await part.start()
            return part

        at, api, admin = port(), [port() for _ in range(dispatchers)], [port() for _ in range(dispatchers)]
        store = await start(StorePart(at, folder, log)) if shared else None
        options = ("--alpha", ALPHA)
        commands = [dispatcher_command(*where, at, options) for where in zip(api, admin, strict=True)]
        if not shared:
            commands = [_without_store(command) for command in commands]
        parts = [await start(Part("dispatcher", command, log)) for command in commands]
        *many, last = [(f"pool-{number:02}", port()) for number in range(pools)]
        await start(Part("pools", pools_command(dict(many), api), log))
        last_pool = await start(Part("pool", pools_command(dict([last]), api), log))
        yield Stack(store, parts, api, admin, last_pool, pools)


def _without_store(command: list[str]) -> list[str]:
    at = command.index("--store")
    return [*command[:at], *command[at + 2 :]]


async def lone_dispatcher(stack: Stack) -> dict[str, float]:
    """Kill the only dispatcher."""
    await stack.calm()
    await stack.dispatchers[0].kill()
    picked, members, _ = await asyncio.gather(
        until_picked(stack.api), until(stack.admin[0], stack.all_serve), stack.dispatchers[0].start()
    )
    return {"until picks succeed": picked, "until all pools are members": members}


async def one_of_two(stack: Stack) -> dict[str, float]:
    """Kill the dispatcher that has most of the agents."""
    await stack.calm()
    agents = [getattr(await fetch_view(admin), "agents", 0) for admin in stack.admin]
    first = agents.index(max(agents))
    killed, other = stack.dispatchers[first], 1 - first
    await killed.kill()
    anywhere, there, agents_moved, _ = await asyncio.gather(
        until_picked([stack.api[first], stack.api[other]]),
        until_picked([stack.api[first]]),
        until(stack.admin[other], lambda view: stack.all_serve(view) and view.agents == stack.pools),
        killed.start(),
    )
    return {
        "until clients that also ask the other get places": anywhere,
        "until it answers picks again": there,
        "until the other has all agents, and all pools are members": agents_moved,
    }


async def pool(stack: Stack) -> dict[str, float]:
    """Kill a pool. It is started again when it is out of rotation."""
    await stack.calm()
    await stack.last_pool.kill()
    picked, out = await asyncio.gather(
        until_picked(stack.api), until(stack.admin[0], lambda view: _serving(view) == stack.pools - 1)
    )
    back, _ = await asyncio.gather(until(stack.admin[0], stack.all_serve), stack.last_pool.start())
    return {
        "until picks succeed": picked,
        "until no pick names it": out,
        "from its start until all pools are members": back,
    }


async def store(stack: Stack) -> dict[str, float]:
    """Kill the store. It comes back empty."""
    assert stack.store is not None
    await stack.calm()
    await stack.store.kill()
    picked, lost = await asyncio.gather(
        until_picked(stack.api), until(stack.admin[0], lambda view: not view.store.available)
    )
    members = asyncio.gather(*(until(admin, stack.all_serve) for admin in stack.admin))
    again, back, _ = await asyncio.gather(until_picked(stack.api), members, stack.store.start())
    return {
        "until picks succeed, without it": picked,
        "until it is reported as lost": lost,
        "from its start, empty, until picks succeed": again,
        "from its start, empty, until all pools are members": max(back),
    }


async def measured(pools: int, rounds: int) -> list[Figure]:
    """Kill each part several times."""
    figures: list[Figure] = []

    async def times(name: str, act: Callable[[Stack], object], stack: Stack) -> None:
        rows = [await act(stack) for _ in range(rounds)]  # type: ignore[misc]
        for what in rows[0]:
            figures.append(Figure(f"{name} killed: {what}", median(row[what] for row in rows), "s"))

    async with started(pools, 1, shared=False) as stack:
        await times("embedded, only dispatcher", lone_dispatcher, stack)
        await times("embedded, a pool", pool, stack)
    async with started(pools, 2, shared=True) as stack:
        await times("Valkey, one of two dispatchers", one_of_two, stack)
        await times("Valkey, a pool", pool, stack)
        await times("Valkey, the store", store, stack)
    return figures


def recovery(rounds: int, scale: float) -> Iterator[Figure]:
    """Yield the figures of this module. A scale below 1 means fewer pools."""
    yield from asyncio.run(measured(max(round(min(scale, 1) * POOLS), 3), max(rounds // 3, 1)))
