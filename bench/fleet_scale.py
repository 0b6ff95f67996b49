"""A thousand agents at one dispatcher: how long they take to join, and what they cost."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.fleet_load import LightAgent, Load, beat
from bench.fleet_rig import Dispatcher, start_dispatcher, start_store
from bench.fleet_speed import GOALS, LOAD
from bench.live_memory import resident_bytes
from bench.measure import Figure
from bench.processes import Process, Processes, cpu_seconds
from evenly.live.processes import raise_fd_limit

AGENTS = 1000
ALPHA = "0.9"
_HEARTBEAT_S = 2.0


async def measured(
    name: str, dispatcher: Dispatcher, store: Process | None, count: int, seconds: float
) -> list[Figure]:
    """Connect the agents all at once, let them only send heartbeats, then begin and end sessions at them."""
    memory = resident_bytes(dispatcher.process)
    await asyncio.sleep(seconds / 4)
    idle = await _busy_share(dispatcher, None, seconds)
    agents = [LightAgent(f"pool-{number}", dispatcher.api) for number in range(count)]
    started = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for agent in agents:
            tasks.create_task(agent.connect())
    dispatcher.wait_for(count)
    joined = time.perf_counter() - started
    used = resident_bytes(dispatcher.process) - memory
    beating = asyncio.create_task(beat(agents, _HEARTBEAT_S))
    load = Load(dispatcher.api, agents, round(count * LOAD))
    try:
        await asyncio.sleep(seconds / 4)
        share = await _busy_share(dispatcher, None, seconds)
        store_share = await _busy_share(dispatcher, store, seconds) if store else 0.0
        await load.connect()
        while load.picks < count * LOAD:
            await load.flood(seconds / 4)
        before, cpu = dispatcher.counts().picks, dispatcher.cpu()
        await load.flood(2 * seconds)
        cpu = dispatcher.cpu() - cpu
        picks = dispatcher.counts().picks - before
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)
        load.close()
        for agent in agents:
            agent.close()
    every = f"heartbeats of {count:,} agents every {_HEARTBEAT_S:g} s"
    return [
        Figure(f"{name}: until {count:,} agents that connect at once are members", joined, "s"),
        Figure(f"{name}: memory of the dispatcher, no agents", memory / 2**20, "MB"),
        Figure(f"{name}: memory of the dispatcher per agent", used / count / 1024, "kB"),
        Figure(f"{name}: a core of the dispatcher without agents", 100 * idle, "%"),
        Figure(f"{name}: a core of the dispatcher with the {every}", 100 * share, "%"),
        *([Figure(f"{name}: a core of the store with the {every}", 100 * store_share, "%")] if store else []),
        Figure(
            f"{name}: picks per second of the dispatcher's core, {count:,} pools", picks / cpu, "/s", GOALS[name]
        ),
    ]


async def _busy_share(dispatcher: Dispatcher, store: Process | None, seconds: float) -> float:
    """Return the share of a core that the dispatcher uses, or the store."""
    process = dispatcher.process if store is None else store
    before, started = cpu_seconds(process.number), time.perf_counter()
    await asyncio.sleep(seconds)
    return (cpu_seconds(process.number) - before) / (time.perf_counter() - started)


async def both(count: int, seconds: float) -> list[Figure]:
    """Measure one after the other, each with processes of its own."""
    raise_fd_limit()
    figures = []
    for name in ("embedded", "Valkey"):
        with tempfile.TemporaryDirectory() as folder, Processes() as processes:
            store, address = None, None
            if name == "Valkey":
                store, address = start_store(processes, Path(folder))
                store.wait()
            dispatcher = start_dispatcher(processes, address, alpha=ALPHA)
            processes.wait()
            figures += await measured(name, dispatcher, store, count, seconds)
    return figures


def scale_up(scale: float) -> Iterator[Figure]:
    """Yield the figures of this module. A scale below 1 means fewer agents."""
    count = max(round(min(scale, 1) * AGENTS), 10)
    yield from asyncio.run(both(count, min(max(scale, 0.4), 4)))
