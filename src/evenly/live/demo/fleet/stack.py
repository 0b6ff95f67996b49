"""All parts of the fleet, started and ended together."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from evenly.live.addresses import Address
from evenly.live.demo.fleet.plan import DISPATCHERS
from evenly.live.demo.fleet.processes import Part, StorePart, dispatcher_command, find_store, pool_command
from evenly.live.demo.plan import POOLS
from evenly.live.gateway.resources import reserved_port

HEARTBEAT_S = 1.0
LEASE_S = 5.0
_HOST = "127.0.0.1"
ALPHA = "0.65"  # what `evenly tune` recommends for 20 pools; given, so that no dispatcher need search for it
_OPTIONS = ("--alpha", ALPHA, "--heartbeat", f"{HEARTBEAT_S:g}", "--lease", f"{LEASE_S:g}")
_PARALLEL_STARTS = 4


@dataclass(frozen=True)
class FleetStack:
    """The running fleet: the dispatchers with the addresses of their ports, and the pools by name."""

    dispatchers: tuple[Part, ...]
    api: tuple[Address, ...]
    admin: tuple[Address, ...]
    pools: tuple[Part, ...]


@asynccontextmanager
async def fleet_stack() -> AsyncIterator[FleetStack]:
    """Start all processes, and end them with the block. They log to a file, so that the screen stays clean.

    The ports are held here, so that a part that is killed comes back at the same address.
    """
    find_store()  # before anything is started
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="evenly-fleet-")))
        log = stack.enter_context((folder / "log").open("w+b"))
        ports = [stack.enter_context(reserved_port(Address(_HOST, 0))) for _ in range(1 + 2 * DISPATCHERS + POOLS)]
        store, api, admin = ports[0], ports[1 : 1 + DISPATCHERS], ports[1 + DISPATCHERS : 1 + 2 * DISPATCHERS]
        shared = StorePart(store, folder, log)
        dispatchers = tuple(
            Part(f"dispatcher {number}", dispatcher_command(*where, store, _OPTIONS), log)
            for number, where in enumerate(zip(api, admin, strict=True), start=1)
        )
        pools = tuple(
            Part(name, pool_command(name, address, api), log)
            for name, address in zip(pool_names(), ports[-POOLS:], strict=True)
        )
        await _start(stack, [shared])
        await _start(stack, dispatchers)
        await _start(stack, pools)
        yield FleetStack(dispatchers, tuple(api), tuple(admin), pools)


def pool_names() -> list[str]:
    """Return the names of the pools."""
    return [f"pool-{number:02}" for number in range(1, POOLS + 1)]


async def _start(stack: AsyncExitStack, parts: list[Part] | tuple[Part, ...]) -> None:
    """Start parts at the same time, but not too many: each takes a core for a moment."""
    free = asyncio.Semaphore(_PARALLEL_STARTS)

    async def start(part: Part) -> None:
        async with free:
            await part.start()

    stack.push_async_callback(_stop_all, parts)
    try:
        async with asyncio.TaskGroup() as tasks:
            for part in parts:
                tasks.create_task(start(part))
    except* Exception as group:
        raise group.exceptions[0] from None


async def _stop_all(parts: list[Part] | tuple[Part, ...]) -> None:
    await asyncio.gather(*(part.stop() for part in parts))
