"""Measure how evenly sessions are spread: evenly and common balancers, on the same visits at the same time.

Every balancer has its own pools, once with one gateway and once with four. JSQ is replayed on the same visits
without a network or delays. All balancers get the visits at the same time, so that a slow moment of the machine
affects them alike.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import rivals
from bench.measure import Figure
from bench.processes import Processes, busy_seconds, envoy, evenly_picker, free_addresses
from evenly.core import JoinShortestQueue
from evenly.live.addresses import Address
from evenly.live.demo.balance import Balance, balance, ideal
from evenly.live.demo.pools import embedded_pools
from evenly.live.demo.traffic import Session, drive
from evenly.live.envoy.bootstrap import envoy_config
from evenly.sim.intervals import half_width
from evenly.workload.demand import Phase
from evenly.workload.trace import Visit, draw_visits

POOLS, LOAD = 20, 5.5
MEAN_STAY = 4.0  # seconds: long compared with the milliseconds that it takes to notice the end of a session
SETTLE = 5 * MEAN_STAY  # seconds excluded while the pools fill and the threshold is learned
BATCHES = 10
GATEWAYS = (1, 4)
REPLAYS = 5  # of JSQ, which breaks ties at random
SEED = 1


@dataclass(frozen=True)
class System:
    """A balancer under traffic."""

    name: str
    gateways: Sequence[Address]
    pools: Sequence[Address]


@dataclass(frozen=True)
class Averages:
    """Time averages per batch."""

    batches: Sequence[Balance]

    @property
    def spread(self) -> float:
        """Time average of the standard deviation of the sessions over the pools."""
        return statistics.fmean(batch.spread for batch in self.batches)

    @property
    def fullest(self) -> float:
        """Time average of the sessions at the fullest pool."""
        return statistics.fmean(batch.max_tasks for batch in self.batches)

    def spread_over(self, other: Averages) -> tuple[float, float]:
        """Return the ratio of the spreads on the same visits, and the half-width of its 95 % interval."""
        pairs = zip(self.batches, other.batches, strict=True)
        ratio = self.spread / other.spread
        # A ratio of means: its standard error comes from the residuals of the batches.
        rests = [(one.spread - ratio * two.spread) / other.spread for one, two in pairs]
        return ratio, half_width(rests)


def averages(sessions: Sequence[Session], pools: Sequence[str], begin: float, end: float) -> Averages:
    """Average over batches of equal length."""
    times = [begin + (end - begin) * number / BATCHES for number in range(BATCHES + 1)]
    return Averages([balance(sessions, pools, *edges) for edges in itertools.pairwise(times)])


def visits_until(end: float) -> list[Visit]:
    """Draw the visits. None lasts much longer than the measurement."""
    drawn = draw_visits(pools=POOLS, schedule=[Phase(0, LOAD)], horizon=end, mean_stay=MEAN_STAY, seed=SEED)
    return [Visit(visit.start, min(visit.stay, end + 0.1 - visit.start)) for visit in drawn]


def jsq(visits: Sequence[Visit], begin: float, end: float) -> Averages:
    """Replay the visits under JSQ several times, and average the replays in each batch."""
    names = [str(number) for number in range(POOLS)]
    replays = [
        averages(ideal(visits, POOLS, JoinShortestQueue(), seed), names, begin, end).batches
        for seed in range(REPLAYS)
    ]
    return Averages([_mean(batches) for batches in zip(*replays, strict=True)])


def _mean(batches: Sequence[Balance]) -> Balance:
    return Balance(
        statistics.fmean(batch.spread for batch in batches),
        statistics.fmean(batch.max_tasks for batch in batches),
        [],
        statistics.fmean(batch.mean_tasks for batch in batches),
    )


# --- the balancers --------------------------------------------------------------------------------------------


@asynccontextmanager
async def systems(folder: Path) -> AsyncIterator[list[System]]:
    """Start all balancers, each with its own pools."""
    policies = ("least_request", "round_robin")
    program = rivals.haproxy_program()
    count = len(GATEWAYS) * (1 + len(policies) + (program is not None))
    async with embedded_pools(count * POOLS) as pools:
        sets = iter([pools[at : at + POOLS] for at in range(0, len(pools), POOLS)])
        plain = [
            System(f"Envoy {policy}", free_addresses(number), next(sets))
            for policy in policies
            for number in GATEWAYS
        ]
        [admin] = free_addresses(1)
        with Processes() as processes:
            found = [_evenly(processes, folder, number, next(sets)) for number in GATEWAYS]
            processes.add(envoy(rivals.plain_envoy(_fronts(plain), admin), folder))
            found += plain
            if program is not None:
                least = [System("HAProxy leastconn", free_addresses(n), next(sets)) for n in GATEWAYS]
                processes.add(rivals.haproxy(program, _fronts(least), folder))
                found += least
            processes.wait()
            yield found


def _fronts(found: Sequence[System]) -> list[rivals.Front]:
    """Return the gateways of rivals. The policy is the last word of a name."""
    return [
        rivals.Front(gateway, system.name.split()[-1], system.pools)
        for system in found
        for gateway in system.gateways
    ]


def _evenly(processes: Processes, folder: Path, number: int, pools: Sequence[Address]) -> System:
    """Start one picker, and an Envoy for each gateway."""
    listen, admin, *addresses = free_addresses(2 + 2 * number)
    processes.add(evenly_picker(listen, admin, pools))
    gateways = addresses[:number]
    for gateway, envoy_admin in zip(gateways, addresses[number:], strict=True):
        config = envoy_config(listen=gateway, picker=listen, pools=pools, admin=envoy_admin, health_path=None)
        processes.add(envoy(config, folder))
    return System("evenly", gateways, pools)


# --- the figures ----------------------------------------------------------------------------------------------


async def measured(begin: float, end: float) -> list[Figure]:
    """Drive all balancers with the same visits at the same time."""
    visits = visits_until(end)
    with tempfile.TemporaryDirectory() as folder:
        async with systems(Path(folder)) as found:
            busy, started = busy_seconds(), time.perf_counter()
            runs = await asyncio.gather(*(drive(visits, system.gateways, seed=SEED) for system in found))
            share = (busy_seconds() - busy) / (time.perf_counter() - started) / (os.cpu_count() or 1)
    best = jsq(visits, begin, end)
    figures = [
        Figure("JSQ: spread", best.spread, "sessions"),
        Figure("JSQ: fullest pool", best.fullest, "sessions"),
    ]
    for system, sessions in zip(found, runs, strict=True):
        got = averages(sessions, [str(pool) for pool in system.pools], begin, end)
        figures += _rows(system, got, best)
    if rivals.haproxy_program() is None:
        figures.append(Figure("HAProxy leastconn", math.nan, "haproxy is not installed"))
    failed = sum(not session.pool for sessions in runs for session in sessions)
    figures.append(Figure(f"sessions that failed, of {len(visits) * len(found):,}", failed, "", 0, at_least=False))
    figures.append(Figure("busy share of all cores", 100 * share, "%"))
    return figures


def _rows(system: System, got: Averages, best: Averages) -> list[Figure]:
    count = len(system.gateways)
    name = f"{system.name}, {count} gateway{'s' * (count > 1)}"
    ratio, error = got.spread_over(best)
    goal = 1.05 if system.name == "evenly" else None
    return [
        Figure(f"{name}: spread", got.spread, "sessions"),
        Figure(f"{name}: spread / JSQ's", ratio, f"± {error:.2g} times", goal, at_least=False),
        Figure(f"{name}: fullest pool", got.fullest, "sessions"),
    ]


def evenness(scale: float) -> Iterator[Figure]:
    """Yield the figures of this module, from `60 * scale` seconds of traffic."""
    begin = min(scale, 1) * SETTLE
    yield from asyncio.run(measured(begin, begin + 60 * scale))
