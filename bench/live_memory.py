"""Memory per open session: 10,000 idle WebSocket sessions, in the picker and in Envoy.

A session needs two file descriptors in Envoy, so the limit on open files determines the number of Envoys.
"""

from __future__ import annotations

import asyncio
import json
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.measure import Figure
from bench.processes import Config, Process, Processes, envoy, evenly_picker, fetch, free_addresses
from evenly.live.addresses import Address
from evenly.live.demo.pools import embedded_pools
from evenly.live.demo.traffic import drive
from evenly.live.envoy.bootstrap import envoy_config
from evenly.workload.trace import Visit

POOLS = 20
SESSIONS = 10_000
OPENED_PER_SECOND = 200
TIMEOUT_S = 60.0  # after the last session was started


def resident_bytes(process: Process) -> int:
    """Return the private memory of a process, as reported by the kernel."""
    lines = Path(f"/proc/{process.number}/smaps_rollup").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


async def opened(gateways: Sequence[Address], pools: Sequence[Address], count: int) -> asyncio.Task[object]:
    """Open `count` sessions, and return when the pools count them all. They last until the task is cancelled."""
    beyond_the_end = 10 * TIMEOUT_S + count / OPENED_PER_SECOND
    visits = [Visit(number / OPENED_PER_SECOND, beyond_the_end) for number in range(count)]
    task: asyncio.Task[object] = asyncio.create_task(drive(visits, gateways))
    deadline = time.monotonic() + count / OPENED_PER_SECOND + TIMEOUT_S
    while (there := await asyncio.to_thread(_open_sessions, pools[0])) < count:
        if time.monotonic() > deadline or task.done():
            task.cancel()
            raise RuntimeError(f"only {there} of {count} sessions are open")
        await asyncio.sleep(0.2)
    return task


def _open_sessions(pool: Address) -> int:
    """Return the number of sessions of all pools, which every pool of the process reports."""
    return sum(json.loads(fetch(f"http://{pool}/sessions") or "{}").values())


async def measured(count: int) -> list[Figure]:
    """Measure memory with `count` sessions and with none, in the same processes."""
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    number = 1 + 2 * count // (most - 1000)
    listen, admin, *addresses = free_addresses(2 + 2 * number)
    gateways, envoy_admins = addresses[:number], addresses[number:]
    async with embedded_pools(POOLS) as pools:
        with tempfile.TemporaryDirectory() as folder, Processes() as processes:
            picker = processes.add(evenly_picker(listen, admin, pools))
            envoys = [
                processes.add(envoy(_config(listen, pools, *at), Path(folder)))
                for at in zip(gateways, envoy_admins, strict=True)
            ]
            processes.wait()
            before = resident_bytes(picker), sum(map(resident_bytes, envoys))
            sessions = await opened(gateways, pools, count)
            after = resident_bytes(picker), sum(map(resident_bytes, envoys))
            sessions.cancel()
            await asyncio.wait([sessions])
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, most))
    return [
        Figure(f"memory of the picker, {POOLS} pools, no sessions", before[0] / 2**20, "MB"),
        Figure(f"memory per session in the picker, {count:,} sessions", (after[0] - before[0]) / count, "bytes"),
        Figure(f"memory per session in Envoy, {count:,} sessions", (after[1] - before[1]) / count, "bytes"),
    ]


def _config(picker: Address, pools: Sequence[Address], listen: Address, admin: Address) -> Config:
    return envoy_config(listen=listen, picker=picker, pools=pools, admin=admin, health_path=None)


def memory(scale: float) -> Iterator[Figure]:
    """Yield the figures of this module. A scale below 1 means fewer sessions."""
    yield from asyncio.run(measured(round(min(scale, 1) * SESSIONS)))
