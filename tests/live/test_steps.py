"""Long work leaves the event loop to others: in steps, and through the admin ports of a real socket."""

from __future__ import annotations

import asyncio
import json
import random
import socket
from collections.abc import Iterator
from time import perf_counter

import httpx
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from evenly.core import LearningRule, ThresholdPolicy
from evenly.live.addresses import Address
from evenly.live.admin.balancer_source import BalancerSource
from evenly.live.admin.exposition import Family, Sample, labels, lines, pick_seconds
from evenly.live.admin.json_pieces import json_pieces
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.latency import Latency
from evenly.live.dashboard.feed import Feed
from evenly.live.log import Log
from evenly.live.steps import STEP_S, in_steps
from evenly.live.store.base import FleetState
from evenly.live.store.local import LocalStore
from tests.live.processes import PATIENCE
from tests.live.store.fleet import TIMES, Agents

POOLS = 1000


class Clock:
    """Every item takes this many seconds."""

    def __init__(self, seconds: float) -> None:
        self.now = 0.0
        self.seconds = seconds

    def __call__(self) -> float:
        return self.now

    def items(self, count: int) -> Iterator[int]:
        for number in range(count):
            self.now += self.seconds
            yield number


@pytest.mark.parametrize(("seconds", "turns"), [(STEP_S / 10, 10), (STEP_S * 3, 100)])
def test_others_run_whenever_a_step_has_taken_its_time(seconds: float, turns: int) -> None:
    async def play() -> tuple[list[int], int]:
        seen, done = 0, False

        async def other() -> None:
            nonlocal seen
            while not done:
                await asyncio.sleep(0)
                seen += 1

        task, clock = asyncio.create_task(other()), Clock(seconds)
        made = await in_steps(clock.items(100), clock=clock)
        counted, done = seen, True
        await task
        return made, counted

    made, counted = asyncio.run(play())
    assert made == list(range(100))
    assert turns - 2 <= counted <= turns


# --- the admin port --------------------------------------------------------------------------------------------


IN_A_STEP = 50


def take_a_while() -> None:
    """Take the part of a step that lets `IN_A_STEP` calls fill it, however fast the processor is."""
    end = perf_counter() + STEP_S / IN_A_STEP
    while perf_counter() < end:
        pass


class CountedAddress(Address):
    """An address that counts how often it is written, which every line about a pool does."""

    written = 0

    def __str__(self) -> str:
        CountedAddress.written += 1
        take_a_while()
        return super().__str__()


def balancer() -> Balancer:
    made = Balancer(
        ThresholdPolicy(0, LearningRule("0.6")),
        name="threshold",
        choose=random.Random(1).choice,
        clock=lambda: 0.0,
        slow_start=0.0,
        report=lambda event: None,
    )
    for port in range(1, POOLS + 1):
        made.add(CountedAddress("127.0.0.1", port), Address("127.0.0.1", port), slowly=False)
    for _ in range(3 * POOLS):
        made.open()
    return made


async def same(address: Address) -> Address:
    return address


async def most_written_in_a_turn(path: str) -> tuple[httpx.Response, int, int]:
    """Ask for a path; return the answer, and how many addresses were written, in all and in one turn of the loop.

    The port and its client are in this loop. In each turn of it, a task looks how many were written.
    """
    from evenly.live.admin.app import admin_app
    from evenly.live.admin.server import serve_admin

    sock = socket.create_server(("127.0.0.1", 0))
    app = admin_app(
        balancer=balancer(),
        latency=Latency(),
        envoys=list,
        token=None,
        bound=Address("127.0.0.1", sock.getsockname()[1]),
        resolve=same,
        ready=lambda: True,
        publish=lambda: None,
        feed=Feed(BalancerSource(balancer(), list), Log(None)),
    )
    most, done = 0, False

    async def look() -> None:
        nonlocal most
        before = CountedAddress.written
        while not done:
            await asyncio.sleep(0)
            most, before = max(most, CountedAddress.written - before), CountedAddress.written

    async with serve_admin(app, sock), httpx.AsyncClient(timeout=PATIENCE, trust_env=False) as client:
        first, looking = CountedAddress.written, asyncio.create_task(look())
        answer = await client.get(f"http://127.0.0.1:{sock.getsockname()[1]}{path}")
        done = True
        await looking
    return answer, CountedAddress.written - first, most


def test_no_step_of_an_answer_writes_all_pools() -> None:
    for path in ("/metrics", "/state"):
        answer, total, most = asyncio.run(most_written_in_a_turn(path))
        assert answer.status_code == 200
        assert int(answer.headers["content-length"]) == len(answer.content)
        assert total >= POOLS
        assert most < 2 * IN_A_STEP  # its last item may write several


# --- the text of metrics and JSON ------------------------------------------------------------------------------

ODD = 'a "quoted"\\back\nline é'


class Theirs(Collector):
    """The same figures for `prometheus_client`."""

    def __init__(self, latency: Latency) -> None:
        self._latency = latency

    def collect(self) -> Iterator[Metric]:
        odd = GaugeMetricFamily("evenly_odd", "Some text.", labels=["pool", "state"])
        odd.add_metric([ODD, "x"], 3)
        odd.add_metric(["", "y"], 0.1)
        yield odd
        buckets = [(labels_le(bound), count) for bound, count in self._latency.cumulative()]
        yield HistogramMetricFamily(
            "evenly_pick_seconds", "How long.", buckets=buckets, sum_value=self._latency.total
        )


def labels_le(bound: float) -> str:
    return "+Inf" if bound == float("inf") else str(bound)


def test_the_text_is_that_of_the_prometheus_client() -> None:
    latency = Latency()
    for seconds in (1e-5, 0.003, 7.0):
        latency.observe(seconds)
    samples = [Sample(3, labels(pool=ODD, state="x")), Sample(0.1, labels(pool="", state="y"))]
    ours = "".join(
        lines([Family("gauge", "evenly_odd", "Some text.", samples), pick_seconds(latency, "How long.")])
    )
    registry = CollectorRegistry()
    registry.register(Theirs(latency))

    assert ours == generate_latest(registry).decode()
    names = [family.name for family in text_string_to_metric_families(ours)]
    assert names == ["evenly_odd", "evenly_pick_seconds"]


def test_json_in_pieces_is_json() -> None:
    values = {"a": 1, "none": None, ODD: [ODD], "list": iter([{"b": 1.5}, "c"]), "empty": iter(())}
    expected = {"a": 1, "none": None, ODD: [ODD], "list": [{"b": 1.5}, "c"], "empty": []}
    assert json.loads("".join(json_pieces(values))) == expected
    assert "".join(json_pieces({})) == "{}"


class CountedName(str):
    """A pool's name that counts how often it is written."""

    __slots__ = ()
    written = 0

    def __str__(self) -> str:
        CountedName.written += 1
        take_a_while()
        return super().__str__()


def test_no_step_of_a_snapshot_reads_all_pools() -> None:
    async def play() -> tuple[FleetState, int]:
        agents = Agents()
        store = agents.store = LocalStore(TIMES, term=1)
        await agents.join(*(CountedName(f"pool-{number}") for number in range(POOLS)))
        taking = asyncio.create_task(store.state())
        most, before = 0, CountedName.written
        while not taking.done():
            await asyncio.sleep(0)
            most, before = max(most, CountedName.written - before), CountedName.written
        return taking.result(), most

    state, most = asyncio.run(play())
    assert [pool.name for pool in state.pools] == [f"pool-{number}" for number in range(POOLS)]
    assert 0 < most < 2 * IN_A_STEP  # its last item may write several
