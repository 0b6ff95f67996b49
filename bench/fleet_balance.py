"""Measure how evenly a fleet spreads its sessions, with and without a shared store, on the same visits.

Every fleet has its own pools, and all get the visits at the same time, so that a slow moment of the machine
affects them alike. JSQ, stale reports and random choice are replayed on the same visits without a network.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from bench.fleet_rig import Dispatcher, start_dispatcher, start_store
from bench.live_balance import LOAD, MEAN_STAY, POOLS, SEED, SETTLE, Averages, averages, jsq, visits_until
from bench.measure import Figure
from bench.processes import Process, Processes, busy_seconds, free_addresses, listens
from evenly.core import RandomRouting
from evenly.live.addresses import Address
from evenly.live.demo.balance import ideal
from evenly.live.demo.fleet.counts import Counts
from evenly.live.demo.fleet.replay import replay_stale_reports
from evenly.live.demo.fleet.traffic import FleetTraffic
from evenly.live.demo.traffic import Session

GOAL = 1.05
REPORT_INTERVAL_S = 1.0  # of the stale reports
_MODELS = [str(number) for number in range(POOLS)]
assert (LOAD, MEAN_STAY) == (5.5, 4.0), "the page says so"


@dataclass(frozen=True)
class Fleet:
    """A fleet under traffic."""

    name: str
    dispatchers: Sequence[Dispatcher]
    pools: Sequence[str]

    def counts(self) -> Counts:
        """Return the messages and picks of all its dispatchers."""
        return sum((each.counts() for each in self.dispatchers), Counts())


def start_pools(processes: Processes, pools: dict[str, Address], dispatchers: Sequence[Dispatcher]) -> Process:
    """Start pools with agents, all in one process."""
    command = [sys.executable, "-m", "evenly.live.demo.fleet.pool"]
    options = [word for name, address in pools.items() for word in ("--pool", f"{name}={address}")]
    to = [word for each in dispatchers for word in ("--dispatcher", f"http://{each.api}")]
    last = list(pools.values())[-1]
    return processes.add(Process([*command, *options, *to], lambda: listens(last)))


def start_fleet(processes: Processes, name: str, store: Address | None, dispatchers: int) -> Fleet:
    """Start the dispatchers of a fleet and its pools."""
    options = ("--fleet", f"{name.lower()}-{dispatchers}")
    started = [start_dispatcher(processes, store, *options) for _ in range(dispatchers)]
    for each in started:
        each.process.wait()
    pools = {f"pool-{number:02}": address for number, address in enumerate(free_addresses(POOLS))}
    start_pools(processes, pools, started)
    count = f"{dispatchers} dispatcher{'s' * (dispatchers > 1)}"
    return Fleet(f"{name}, {count}", started, list(pools))


async def drive(fleet: Fleet, begin: float, end: float) -> tuple[FleetTraffic, list[Session], Counts, int]:
    """Run the visits. Return the traffic, the sessions, and messages and sessions of the measured time."""
    sessions: list[Session] = []
    traffic = FleetTraffic([each.api for each in fleet.dispatchers], seed=SEED, ended=sessions.append)
    running = asyncio.create_task(traffic.run(visits_until(end), end))
    await asyncio.sleep(begin)
    first, begun = await asyncio.to_thread(fleet.counts), traffic.tally.sessions
    await asyncio.sleep(end - begin)
    last = await asyncio.to_thread(fleet.counts)
    begun = traffic.tally.sessions - begun
    await running
    difference = {name: number - first.messages[name] for name, number in last.messages.items()}
    return traffic, sessions, Counts(**difference, picks=last.picks - first.picks), begun


async def measured(begin: float, end: float) -> list[Figure]:
    """Drive all fleets with the same visits at the same time."""
    with tempfile.TemporaryDirectory() as folder, Processes() as processes:
        store, address = start_store(processes, Path(folder))
        store.wait()
        kinds = (("embedded", None, 1), ("Valkey", address, 1), ("Valkey", address, 4))
        fleets = [start_fleet(processes, *kind) for kind in kinds]
        processes.wait()
        for fleet in fleets:
            fleet.dispatchers[-1].wait_for(POOLS)
        busy, started = busy_seconds(), time.perf_counter()
        runs = await asyncio.gather(*(drive(fleet, begin, end) for fleet in fleets))
        share = (busy_seconds() - busy) / (time.perf_counter() - started) / (os.cpu_count() or 1)
    best = jsq(visits_until(end), begin, end)
    figures = [
        Figure("JSQ: spread", best.spread, "sessions"),
        Figure("JSQ: fullest pool", best.fullest, "sessions"),
    ]
    messages = []
    for fleet, (_, sessions, counts, begun) in zip(fleets, runs, strict=True):
        figures += _rows(fleet.name, averages(sessions, fleet.pools, begin, end), best, GOAL)
        messages += _messages(fleet.name, counts, begun)
    delay = fmean(time for traffic, *_ in runs for time in traffic.tally.pick_s) / 2
    for name, sessions in _models(end, delay):
        figures += _rows(name, averages(sessions, _MODELS, begin, end), best, None)
    tallies = [traffic.tally for traffic, *_ in runs]
    visits = sum(tally.visits for tally in tallies)
    failed = sum(tally.lost + tally.cut + tally.unreachable + tally.refused.total() for tally in tallies)
    return [
        *figures,
        *messages,
        Figure(f"sessions that failed, of {visits:,}", failed, "", 0, at_least=False),
        Figure("mean time of a pick, with a new connection", 2000 * delay, "ms"),
        Figure("busy share of all cores", 100 * share, "%"),
    ]


def _models(end: float, delay: float) -> Iterator[tuple[str, list[Session]]]:
    visits = visits_until(end)
    stale = replay_stale_reports(visits, POOLS, delay=delay, interval=REPORT_INTERVAL_S, seed=SEED)
    yield f"model of reports every {REPORT_INTERVAL_S:g} s", stale
    yield "model of random choice", ideal(visits, POOLS, RandomRouting(), SEED)


def _rows(name: str, got: Averages, best: Averages, goal: float | None) -> list[Figure]:
    ratio, error = got.spread_over(best)
    return [
        Figure(f"{name}: spread", got.spread, "sessions"),
        Figure(f"{name}: spread / JSQ's", ratio, f"± {error:.2g} times", goal, at_least=False),
        Figure(f"{name}: fullest pool", got.fullest, "sessions"),
    ]


def _messages(name: str, counts: Counts, sessions: int) -> list[Figure]:
    per = {kind: number / max(sessions, 1) for kind, number in counts.messages.items()}
    others = ", ".join(f"{kind} {per[kind]:.2f}" for kind in per if kind not in ("green", "yellow") and per[kind])
    return [
        Figure(
            f"{name}: tokens per session (green {per['green']:.2f}, yellow {per['yellow']:.2f})",
            counts.tokens / max(sessions, 1),
            "",
            2,
            at_least=False,
        ),
        Figure(f"{name}: other messages per session ({others})", counts.others / max(sessions, 1), ""),
    ]


def evenness(scale: float) -> Iterator[Figure]:
    """Yield the figures of this module, from `30 * scale` seconds of traffic."""
    begin = min(scale, 1) * SETTLE
    yield from asyncio.run(measured(begin, begin + 30 * scale))
