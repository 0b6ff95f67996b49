"""Speed of a dispatcher: picks per second of its core, and how long a client waits for a pick.

Sessions begin and end at connected agents, so that the dispatcher's work includes all their messages. The load
generator has the other core; a shared store takes a part of both. So a dispatcher's limit is its processor time
per pick, and not the rate.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from redis import Redis

from bench.fleet_load import LightAgent, Load, beat
from bench.fleet_rig import Dispatcher, start_dispatcher, start_store
from bench.fleet_rivals import AT_ONCE, constant_server, naive_picks
from bench.measure import Figure
from bench.processes import Process, Processes, cpu_seconds
from evenly.live.addresses import Address
from evenly.live.demo.fleet.counts import Counts

POOLS, LOAD = 20, 5.5
PACE = 500.0  # picks per second
GOALS = {"embedded": 5000, "Valkey": 3000}
_HEARTBEAT_S = 2.0


@dataclass
class System:
    """A dispatcher, its agents and its clients, and what the rounds have measured."""

    name: str
    dispatcher: Dispatcher
    agents: list[LightAgent]
    load: Load
    rates: list[float] = field(default_factory=list)  # picks per second
    costs: list[float] = field(default_factory=list)  # seconds of the dispatcher per pick
    store_costs: list[float] = field(default_factory=list)
    messages: list[float] = field(default_factory=list)  # of agents, per pick

    async def flood(self, seconds: float, store: Process) -> None:
        """Measure a round."""
        before, cpu, store_cpu = self._counts(), self.dispatcher.cpu(), cpu_seconds(store.number)
        picks = await self.load.flood(seconds)
        used, store_used = self.dispatcher.cpu() - cpu, cpu_seconds(store.number) - store_cpu
        counts = self._counts()
        all_picks = counts.picks - before.picks  # also those after the end
        self.rates.append(picks / seconds)
        self.costs.append(used / all_picks)
        self.store_costs.append(store_used / all_picks)
        self.messages.append((sum(counts.messages.values()) - sum(before.messages.values())) / all_picks)

    def _counts(self) -> Counts:
        return self.dispatcher.counts()

    def figures(self) -> Iterator[Figure]:
        """Yield the rows of the table."""
        cost, rate = statistics.median(self.costs), statistics.median(self.rates)
        yield Figure(f"{self.name}: picks per second of the dispatcher's core", 1 / cost, "/s", GOALS[self.name])
        yield Figure(f"{self.name}: processor time of the dispatcher per pick", 1e6 * cost, "µs")
        yield Figure(f"{self.name}: messages from and to agents per pick", statistics.median(self.messages), "")
        yield Figure(f"{self.name}: picks of one dispatcher, all on these cores", rate, "/s")


@asynccontextmanager
async def connected(name: str, dispatcher: Dispatcher, pools: int) -> AsyncIterator[System]:
    """Connect agents and clients while the block runs."""
    agents = [LightAgent(f"pool-{number}", dispatcher.api) for number in range(pools)]
    await asyncio.gather(*(agent.connect() for agent in agents))
    load = Load(dispatcher.api, agents, round(pools * LOAD))
    await load.connect()
    beating = asyncio.create_task(beat(agents, _HEARTBEAT_S))
    try:
        yield System(name, dispatcher, agents, load)
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)
        load.close()
        for agent in agents:
            agent.close()


@dataclass
class Rivals:
    """What the dispatchers are compared with, per round: picks or requests per second of a core."""

    constant: list[float] = field(default_factory=list)
    one_by_one: list[float] = field(default_factory=list)
    pipelined: list[float] = field(default_factory=list)
    fcall_us: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)  # of the pipelined one

    async def measure(self, seconds: float, constant: Process, load: Load, store: Address) -> None:
        """Measure a round."""
        before = cpu_seconds(constant.number)
        answers = await load.flood(seconds)
        self.constant.append(answers / (cpu_seconds(constant.number) - before))
        for pipelined, rates in ((False, self.one_by_one), (True, self.pipelined)):
            picks, used = await asyncio.to_thread(naive_picks, store, POOLS, seconds, pipelined=pipelined)
            rates.append(picks / used)
        self.rates.append(picks / seconds)


def _fcall(store: Address) -> tuple[int, int]:
    """Return the calls of the store's functions so far and their time in µs."""
    with Redis(host=store.host, port=store.port) as client:
        stats = client.info("commandstats").get("cmdstat_fcall", {"calls": 0, "usec": 0})
    return stats["calls"], stats["usec"]


def _ratio(over: list[float], under: list[float]) -> float:
    return statistics.median(one / two for one, two in zip(over, under, strict=True))


async def floods(
    systems: list[System],
    store: tuple[Process, Address],
    constant: tuple[Process, Address],
    rounds: int,
    seconds: float,
) -> list[Figure]:
    """Measure the maximum throughput of all, in turn."""
    rivals = Rivals()
    bare = Load(constant[1], [], 0)
    await bare.connect()
    calls: list[tuple[float, float]] = []  # of the store's functions: per pick, and µs per call
    for _ in range(rounds):
        for system in systems:
            before, picks = _fcall(store[1]), system.load.picks
            await system.flood(seconds, store[0])
            after = _fcall(store[1])
            if system.name == "Valkey":
                number = after[0] - before[0]
                calls.append((number / (system.load.picks - picks), (after[1] - before[1]) / number))
        await rivals.measure(seconds, constant[0], bare, store[1])
    bare.close()
    own, shared = systems
    per_core = {system.name: [1 / cost for cost in system.costs] for system in systems}
    return [
        *own.figures(),
        *shared.figures(),
        Figure("Valkey: processor time of the store per pick", 1e6 * statistics.median(shared.store_costs), "µs"),
        Figure("Valkey: calls of the store's functions per pick", statistics.median(one for one, _ in calls), ""),
        Figure("Valkey: time of such a call in the store", statistics.median(two for _, two in calls), "µs"),
        Figure(
            "bare uvicorn, constant answer: requests per second of a core",
            statistics.median(rivals.constant),
            "/s",
        ),
        Figure("embedded / bare uvicorn", _ratio(per_core["embedded"], rivals.constant), "times"),
        Figure("Valkey / bare uvicorn", _ratio(per_core["Valkey"], rivals.constant), "times"),
        Figure(
            "redis.asyncio, one by one: picks per second of a core", statistics.median(rivals.one_by_one), "/s"
        ),
        Figure(
            f"redis.asyncio, {AT_ONCE} in a pipeline: picks per second of a core",
            statistics.median(rivals.pipelined),
            "/s",
        ),
        Figure("redis.asyncio in a pipeline: picks, all on these cores", statistics.median(rivals.rates), "/s"),
        Figure("Valkey / redis.asyncio one by one", _ratio(per_core["Valkey"], rivals.one_by_one), "times"),
        Figure("Valkey / redis.asyncio in a pipeline", _ratio(per_core["Valkey"], rivals.pipelined), "times"),
    ]


async def latencies(systems: list[System], rounds: int, seconds: float) -> AsyncIterator[Figure]:
    """Measure how long a client waits, at a moderate rate and at half of the maximum, in turn."""
    paces = {system.name: (PACE, statistics.median(system.rates) / 2) for system in systems}
    times: dict[tuple[str, float], list[list[float]]] = {}
    for _ in range(rounds):
        for system in systems:
            for pace in paces[system.name]:
                got = await system.load.latencies(pace, seconds)
                times.setdefault((system.name, pace), []).append(got)
    for (name, pace), got_times in times.items():
        at = f"{pace:,.0f} picks/s" + (", half of the maximum" if pace != PACE else "")
        for percent in (50, 99):
            yield Figure(f"{name}: wait for a pick at {at}, p{percent}", _middle(got_times, percent), "ms")


def _middle(rounds: list[list[float]], percent: int) -> float:
    """Return the median of a percentile over the rounds, in milliseconds."""
    return 1000 * statistics.median(sorted(times)[len(times) * percent // 100] for times in rounds)


async def measured(rounds: int, seconds: float) -> AsyncIterator[Figure]:
    """Yield the figures as they are measured."""
    with tempfile.TemporaryDirectory() as folder, Processes() as processes:
        store, address = start_store(processes, Path(folder))
        store.wait()
        dispatchers = {"embedded": None, "Valkey": address}
        started = {name: start_dispatcher(processes, where) for name, where in dispatchers.items()}
        constant = constant_server()
        processes.add(constant[0])
        processes.wait()
        async with (
            connected("embedded", started["embedded"], POOLS) as own,
            connected("Valkey", started["Valkey"], POOLS) as shared,
        ):
            systems = [own, shared]
            for system in systems:
                await system.load.flood(seconds)  # learn the threshold, and warm the caches
            for figure in await floods(systems, (store, address), constant, rounds, seconds):
                yield figure
            async for figure in latencies(systems, rounds, seconds):
                yield figure


async def _list(rounds: int, seconds: float) -> list[Figure]:
    return [figure async for figure in measured(rounds, seconds)]


def speed(rounds: int, scale: float) -> Iterator[Figure]:
    """Yield the figures of this module."""
    yield from asyncio.run(_list(rounds, max(0.2 * scale, 0.05)))
