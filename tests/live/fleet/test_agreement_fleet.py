"""A live run of a fleet ends up where `evenly simulate --delay` predicts: real dispatcher, agents and sessions.

The messages of a live run take different times, which depend on the machine. So the prediction is an interval: the
union of what simulations give with delays from 0 to the time in which all but one in a hundred sessions of the run
got from their request to the greeting of their pool. Those are four hops through the same event loops that a
message passes in one, so hardly a message takes longer. On a machine that is so busy that the times grow, the
interval grows by the same rule.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import defaultdict
from contextlib import AsyncExitStack
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from evenly import Scenario, simulate
from evenly.live.addresses import Address, parse_address
from evenly.live.demo.balance import balance
from evenly.live.demo.fleet.counts import fetch_view
from evenly.live.demo.fleet.pool import served_pool
from evenly.live.demo.fleet.traffic import FleetTraffic
from evenly.live.demo.traffic import Session
from evenly.live.store.base import PoolState
from evenly.sim.tally import averages
from evenly.workload.demand import Phase
from evenly.workload.trace import draw_visits
from tests.live.processes import PATIENCE, Process, free_port

POOLS = 10
LOAD = 3.5
ALPHA = "0.6"
STAY = 0.5  # seconds, on average
SECONDS = 14.0
WARMUP = 4.0
REPLICATIONS = 500
USUAL = 0.1  # mean stays, 50 ms: the time of such a session on a machine whose cores are shared

# The mean spread of a run is an average over 20 mean stays, close to normal; the interval of each delay is
# Student's for one more run. The union over delays contains the one of the true delays, so its false alarms are
# at most as many. A tenth of 1e-6 leaves room for the law not being quite normal.
FALSE_ALARM = 1e-7


@dataclass(frozen=True)
class Interval:
    low: float
    high: float


def simulated(policy: str, delay: float, **options: float | str) -> NDArray[np.float64]:
    """Return the mean spread of simulated runs as long as the live one."""
    scenario = Scenario(
        policy=policy,
        pools=POOLS,
        load=LOAD,
        delay=delay,
        horizon=SECONDS / STAY,
        warmup=WARMUP / STAY,
        **options,  # type: ignore[arg-type]
    )
    result = simulate(scenario, seed=5, replications=REPLICATIONS)
    return np.array([averages(sample, POOLS).spread for sample in result.windows])


def interval(spreads: NDArray[np.float64]) -> Interval:
    """Return where one more run ends up."""
    from scipy.stats import t

    width = t.isf(FALSE_ALARM / 2, REPLICATIONS - 1) * (1 + 1 / REPLICATIONS) ** 0.5 * spreads.std(ddof=1)
    return Interval(spreads.mean() - width, spreads.mean() + width)


def predicted(slow: float) -> Interval:
    """Return where a run ends up whose messages take up to `slow`, in mean stays."""
    each = [interval(simulated("threshold", share * slow, alpha=ALPHA)) for share in (0, 0.25, 0.5, 1)]
    return Interval(min(one.low for one in each), max(one.high for one in each))


@dataclass(frozen=True)
class Live:
    spread: float
    slow: float  # seconds from the request to the greeting in which 99 % of the sessions began
    sessions: int
    visits: int


async def live_run(listen: Address, admin: Address) -> Live:
    """Run the sessions, and count them where they are: at the pools."""
    loop = asyncio.get_running_loop()
    moves: list[tuple[str, int, float]] = []
    visits = draw_visits(pools=POOLS, schedule=[Phase(0, LOAD)], horizon=SECONDS, mean_stay=STAY, seed=1)
    names = [f"pool-{number}" for number in range(POOLS)]
    async with AsyncExitStack() as stack:
        for name in names:
            await stack.enter_async_context(
                served_pool(
                    name,
                    Address("127.0.0.1", 0),
                    [f"http://{listen}"],
                    lambda pool, step: moves.append((pool, step, loop.time())),
                )
            )
        async with asyncio.timeout(PATIENCE):
            while await serving(admin) < POOLS:
                await asyncio.sleep(0.05)
        traffic = FleetTraffic([listen], seed=1, ended=lambda _: None)
        beginning = loop.time()
        await traffic.run(visits, until=SECONDS + PATIENCE)
    sessions = as_sessions(moves, beginning)
    found = balance(sessions, names, WARMUP, SECONDS)
    return Live(found.spread, float(np.quantile(traffic.tally.begin_s, 0.99)), traffic.tally.sessions, len(visits))


async def serving(admin: Address) -> int:
    view = await fetch_view(admin)
    return 0 if view is None else sum(pool.state is PoolState.SERVING for pool in view.pools)


def as_sessions(moves: list[tuple[str, int, float]], beginning: float) -> list[Session]:
    """Pair the beginnings and ends of each pool in order: it has the same number of sessions at all times."""
    times: dict[tuple[str, int], list[float]] = defaultdict(list)
    for pool, step, time in moves:
        times[pool, step].append(time - beginning)
    return [
        Session(pool, begin, end)
        for pool in {pool for pool, _, _ in moves}
        for begin, end in zip(times[pool, 1], times[pool, -1], strict=True)
    ]


@pytest.mark.full
def test_a_live_run_lands_where_the_simulator_says() -> None:
    options = ("--alpha", ALPHA, "--heartbeat", "0.5", "--lease", "5")
    listen = f"127.0.0.1:{free_port()}"
    command = (sys.executable, "-m", "evenly", "dispatcher", "--ready-json", "--listen", listen)
    with Process(*command, "--admin", "127.0.0.1:0", *options) as dispatcher:
        ready = json.loads(dispatcher.ready_line(0, "{"))
        live = asyncio.run(live_run(parse_address(ready["listen"]), parse_address(ready["admin"])))
    assert live.sessions == live.visits
    expected = predicted(live.slow / STAY)
    assert expected.low < live.spread < expected.high, f"{live} {expected}"


@pytest.mark.full
def test_the_comparison_tells_policies_apart() -> None:
    """With the times of a usual machine, runs of other policies end up outside, as surely as ours inside."""
    ours = predicted(USUAL)
    others = {
        "random": interval(simulated("random", USUAL)),
        "reports every half stay": interval(simulated("stale-reports", USUAL, report_interval=0.5)),
        "power-of-d": interval(simulated("power-of-d", USUAL)),
    }
    assert {name for name, other in others.items() if other.low <= ours.high} == set(), f"{ours} {others}"
