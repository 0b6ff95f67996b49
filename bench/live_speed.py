"""Speed of the picker: session starts per second, processor time per session, and the latency added to a request.

Load generator, Envoy, pools and picker share the cores of one machine, so the throughput reflects their total
cost. The picker's own cost is its processor time per session. A client that calls the picker directly, as Envoy
does but more cheaply, measures what one whole core can do.
"""

from __future__ import annotations

import asyncio
import copy
import json
import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench import rivals, straight, wrk
from bench.cpp import compiled
from bench.measure import Figure
from bench.processes import (
    Config,
    Process,
    Processes,
    busy_seconds,
    cpu_seconds,
    envoy,
    evenly_picker,
    fetch,
    free_addresses,
    tries,
)
from evenly.live.addresses import Address
from evenly.live.envoy.bootstrap import envoy_config
from evenly.live.envoy.names import PICKER

POOLS = 20
GOAL = 5000  # session starts per second
PACE = GOAL / 2
DELAYS = 16, 29  # milliseconds: with these delays `wrk` sends slightly more than PACE
NO_WRK = "wrk is not installed"
NO_COMPILER = "no C++ compiler"
MAX_ADDED_MS = 4.0  # at p99

StartPicker = Callable[[Address, Sequence[Address]], Process]


@dataclass(frozen=True)
class Rig:
    """A picker behind a real Envoy; `plain` is the same Envoy without the picker."""

    processes: Processes
    picker: Process
    picks_at: Address
    gateway: Address
    plain: Address
    envoy_admin: Address

    def picker_seconds(self) -> float:
        """Return the processor time that the picker has used."""
        return cpu_seconds(self.picker.number)

    def unpicked(self) -> int:
        """Return the number of requests that Envoy let pass because the picker did not answer in time."""
        return self._stat("ext_proc.failure_mode_allowed")

    def wait(self) -> None:
        """Wait until the processes are ready and the pools pass Envoy's health checks."""
        self.processes.wait()
        for _ in tries("Envoy's health checks of the pools fail"):
            if self._stat("cluster.pools.membership_healthy") == POOLS:
                return

    def _stat(self, name: str) -> int:
        answer = fetch(f"http://{self.envoy_admin}/stats?filter={name}$")
        if not answer:
            raise RuntimeError(f"Envoy does not report its statistic {name}")
        return sum(int(line.rpartition(":")[2]) for line in answer.splitlines())


@contextmanager
def answering_pools(folder: Path) -> Iterator[list[Address]]:
    """Start pools that answer immediately, in a separate process from the measured Envoy."""
    admin, *pools = free_addresses(1 + POOLS)
    with Processes() as processes:
        processes.add(envoy(rivals.answering_pools(pools, admin), folder)).wait()
        yield pools


@contextmanager
def started(folder: Path, pools: Sequence[Address], start_picker: StartPicker | None = None) -> Iterator[Rig]:
    """Start a picker and its Envoy, and stop them at the end of the block. By default the picker is evenly's."""
    gateway, plain, envoy_admin, listen, admin = free_addresses(5)
    config = envoy_config(listen=gateway, picker=listen, pools=pools, admin=envoy_admin, health_path=None)
    listeners = config["static_resources"]["listeners"]
    listeners.append(without_picker(listeners[0], plain))
    if start_picker is not None:
        (cluster,) = (each for each in config["static_resources"]["clusters"] if each["name"] == PICKER)
        cluster.pop("health_checks")  # the others have no health service
    with Processes() as processes:
        picker = evenly_picker(listen, admin, pools) if start_picker is None else start_picker(listen, pools)
        processes.add(picker)
        processes.add(envoy(config, folder, concurrency=2))
        yield Rig(processes, picker, listen, gateway, plain, envoy_admin)


def without_picker(listener: Config, address: Address) -> Config:
    """Copy a listener to another port, without the filter that asks the picker: the fallback policy chooses."""
    made = copy.deepcopy(listener)
    made["name"] = "plain"
    made["address"]["socket_address"]["port_value"] = address.port
    manager = made["filter_chains"][0]["filters"][0]["typed_config"]
    manager["http_filters"] = [entry for entry in manager["http_filters"] if "ext_proc" not in json.dumps(entry)]
    return made


# --- maximum throughput ---------------------------------------------------------------------------------------


class Flood:
    """Throughput per round: starts per second, and the picker's processor time per start."""

    def __init__(self) -> None:
        self.rates: list[float] = []
        self.costs: list[float] = []

    def add(self, starts: float, seconds: float, cpu: float) -> None:
        """Add a round."""
        self.rates.append(starts / seconds)
        self.costs.append(cpu / starts)

    def figures(self, name: str, goal: float | None = None) -> list[Figure]:
        """Return the rows of the table."""
        cost = statistics.median(self.costs)
        return [
            Figure(f"{name}: starts through Envoy, all on these cores", statistics.median(self.rates), "/s"),
            Figure(f"{name}: processor time of the picker per session", cost * 1e6, "µs"),
            Figure(f"{name}: starts per core at that cost", 1 / cost if cost else math.inf, "/s", goal),
        ]


def floods(ours: Rig, theirs: Rig, rounds: int, seconds: float) -> list[Figure]:
    """Measure the maximum throughput with evenly's picker, the naive picker and no picker, in turn."""
    program = wrk.program()
    if program is None:
        return [Figure("starts through Envoy", math.nan, NO_WRK)]
    evenly, naive, plain = Flood(), Flood(), []
    for _ in range(rounds):
        for rig, flood in ((ours, evenly), (theirs, naive)):
            before, missed = rig.picker_seconds(), rig.unpicked()
            got = wrk.requests(program, rig.gateway, seconds)
            cpu = rig.picker_seconds() - before
            flood.add(got.answered - (rig.unpicked() - missed), got.seconds, cpu)
        got = wrk.requests(program, ours.plain, seconds)
        plain.append(got.answered / got.seconds)
    return [
        *evenly.figures("evenly", GOAL),
        *naive.figures("naive grpc.aio picker"),
        Figure("no picker: requests through Envoy", statistics.median(plain), "/s"),
    ]


def direct(rig: Rig, rounds: int, seconds: float) -> list[Figure]:
    """Measure the picker alone: its maximum throughput, and its latency at PACE."""
    flood, times = Flood(), []
    for _ in range(rounds):
        before = rig.picker_seconds()
        starts = asyncio.run(straight.flood(rig.picks_at, seconds))
        flood.add(starts, seconds, rig.picker_seconds() - before)
        times.append(asyncio.run(straight.answer_times(rig.picks_at, PACE, seconds)))
    busy = statistics.median(rate * cost for rate, cost in zip(flood.rates, flood.costs, strict=True))
    unit = f"/s, {busy:.0%} of a core busy"
    return [
        Figure("evenly: session starts, direct to the picker", statistics.median(flood.rates), unit, GOAL),
        Figure(f"evenly: the picker's answers at {PACE:,.0f} starts/s, p50", _middle(times, 50), "ms"),
        Figure(f"evenly: the picker's answers at {PACE:,.0f} starts/s, p99", _middle(times, 99), "ms"),
    ]


def _middle(rounds: list[list[float]], percent: int) -> float:
    """Return the median of a percentile over the rounds, in milliseconds."""
    return 1000 * statistics.median(sorted(times)[len(times) * percent // 100] for times in rounds)


# --- at half the goal -----------------------------------------------------------------------------------------


class Latencies:
    """The runs at half the goal through one picker: latencies, starts per second, and how busy the cores were."""

    def __init__(self, name: str, rig: Rig) -> None:
        self.name = name
        self._rig = rig
        self._runs: list[wrk.Answers] = []
        self._starts: list[float] = []
        self._busy: list[float] = []

    def measure(self, program: str, seconds: float) -> None:
        """Add a run."""
        missed, before = self._rig.unpicked(), busy_seconds()
        got = wrk.requests(program, self._rig.gateway, seconds, DELAYS)
        self._busy.append((busy_seconds() - before) / got.seconds / (os.cpu_count() or 1))
        self._runs.append(got)
        self._starts.append((got.answered - (self._rig.unpicked() - missed)) / got.seconds)

    def figures(self, without: list[wrk.Answers], goal: float | None) -> Iterator[Figure]:
        """Yield medians over the rounds, and the median of the differences within rounds."""
        pace = None if goal is None else PACE
        yield Figure(f"{self.name}: starts during the latency runs", statistics.median(self._starts), "/s", pace)
        for percent in (50, 99):
            got = [each.at(percent) for each in self._runs]
            added = statistics.median(more - less.at(percent) for less, more in zip(without, got, strict=True))
            limit = goal if percent == 99 else None
            yield Figure(f"{self.name}: request latency, p{percent}", statistics.median(got), "ms")
            yield Figure(f"{self.name}: added latency, p{percent}", added, "ms", limit, at_least=False)
        yield Figure(f"{self.name}: busy share of all cores", 100 * statistics.median(self._busy), "%")


def added_latency(ours: Rig, echo: Rig | None, rounds: int, seconds: float) -> Iterator[Figure]:
    """Measure the latency of a request without a picker, with ours and with the echo, in turn."""
    program = wrk.program()
    if program is None:
        yield Figure("evenly: added latency", math.nan, NO_WRK)
        return
    without: list[wrk.Answers] = []
    evenly = Latencies("evenly", ours)
    floor = None if echo is None else Latencies("echo picker in C++", echo)
    for _ in range(rounds):
        without.append(wrk.requests(program, ours.plain, seconds, DELAYS))
        evenly.measure(program, seconds)
        if floor is not None:
            floor.measure(program, seconds)
    requests = statistics.median(got.answered / got.seconds for got in without)
    yield Figure("no picker: requests during the latency runs", requests, "/s")
    for percent in (50, 99):
        latency = statistics.median(each.at(percent) for each in without)
        yield Figure(f"no picker: request latency, p{percent}", latency, "ms")
    yield from evenly.figures(without, MAX_ADDED_MS)
    if floor is None:
        yield Figure("echo picker in C++", math.nan, NO_COMPILER)
    else:
        yield from floor.figures(without, None)


def speed(rounds: int, scale: float) -> Iterator[Figure]:
    """Yield the figures of this module."""
    seconds = max(0.4 * scale, 0.2)
    with (
        tempfile.TemporaryDirectory() as name,
        answering_pools(Path(name)) as pools,
        started(Path(name), pools) as ours,
    ):
        with started(Path(name), pools, rivals.naive_picker) as naive:
            ours.wait()
            naive.wait()
            time.sleep(1)  # the picker reads the health of the pools from Envoy
            yield from floods(ours, naive, rounds, seconds)
        yield from direct(ours, rounds, seconds)
        with started_echo(Path(name), pools) as echo:
            yield from added_latency(ours, echo, rounds, 1.5 * seconds)


@contextmanager
def started_echo(folder: Path, pools: Sequence[Address]) -> Iterator[Rig | None]:
    """Start the echo picker and its Envoy. Yield None if there is no compiler."""
    program = compiled(Path(__file__).with_name("echo_picker.cpp"), folder)
    if program is None:
        yield None
        return
    with started(folder, pools, partial(rivals.echo_picker, program)) as rig:
        rig.wait()
        yield rig
