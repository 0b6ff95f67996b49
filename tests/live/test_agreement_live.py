"""A live run of a scenario, with a real Envoy, ends up where the simulator predicts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from evenly.core import LearningRule, Policy, RandomRouting, ThresholdPolicy
from evenly.live.addresses import Address
from evenly.live.demo.balance import Balance, balance, ideal
from evenly.live.demo.pools import embedded_pools
from evenly.live.demo.traffic import Session, drive
from evenly.logs import read_log
from evenly.sim import Scenario, simulate
from evenly.whatif import WhatIf, replay_log
from evenly.workload.demand import Phase
from evenly.workload.trace import Visit, draw_visits
from tests.live.processes import eventually
from tests.live.rig import Envoy, Picker

POOLS = 10
LOAD = 3.5
ALPHA = "0.6"
STAY = 1.5  # seconds, on average
SECONDS = 28.0
WARMUP = 6.0
REPLICATIONS = 2000
REPLAYS = 100
FALSE_ALARM = 1e-6  # of all comparisons of a run together

# A client sees a session some milliseconds after the pick, and the picker its end some after the client. In
# this time one pool looks different to the two, which moves a share of 1 / POOLS between levels. There are
# POOLS * LOAD / STAY beginnings and as many ends a second.
DELAY = 0.01  # seconds, on average over beginnings and ends
SLACK = 2 * DELAY * LOAD / STAY


def visits() -> tuple[Visit, ...]:
    return draw_visits(pools=POOLS, schedule=[Phase(0, LOAD)], horizon=SECONDS, mean_stay=STAY, seed=1)


def figures(mean_tasks: float, pools_with_exactly: list[float]) -> NDArray[np.float64]:
    """Return the mean, and the shares of pools with at most 2 sessions, 3, 4, and at least 5.

    Shares of rarer levels are far from normal.
    """
    shares = [*pools_with_exactly, *[0.0] * 5]
    return np.array([mean_tasks, sum(shares[:3]), shares[3], shares[4], sum(shares[5:])])


@pytest.fixture(scope="module")
def simulated() -> NDArray[np.float64]:
    """Return the figures of runs as long as the live one, one row per run."""
    scenario = Scenario(pools=POOLS, load=LOAD, alpha=ALPHA, horizon=SECONDS / STAY, warmup=WARMUP / STAY)
    results = (simulate(scenario, seed=seed).to_dict() for seed in range(REPLICATIONS))
    return np.array([figures(result["mean_tasks"], result["pools_with_exactly"]) for result in results])


def distances(run: Balance, simulated: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far a run is from the simulated ones. Up to 1, randomness and the network explain the distance.

    The shares depend on how many sessions there happened to be, so they are compared with what a parabola through
    the simulated runs gives for the run's own mean. The residuals are close to normal, and the interval is
    Student's for one more run.
    """
    from scipy.stats import t

    live = figures(run.mean_tasks, run.pools_with_exactly)
    loads = simulated[:, 0]
    centre = loads.mean()
    design = np.vander(loads - centre, 3)
    parabola = np.linalg.lstsq(design, simulated[:, 1:], rcond=None)[0]
    residuals = np.column_stack([loads - centre, simulated[:, 1:] - design @ parabola])
    gap = live - np.concatenate([[centre], np.vander([live[0] - centre], 3)[0] @ parabola])
    freedom = len(simulated) - 3
    error = np.sqrt((residuals**2).sum(axis=0) / freedom * (1 + 3 / freedom))
    width = float(t.isf(FALSE_ALARM / 2 / live.size, freedom)) * error
    return np.asarray(np.abs(gap) / (width + SLACK))


@dataclass(frozen=True)
class LiveRun:
    """The sessions as their clients saw them, the pools, and the picker's own record."""

    done: list[Session]
    pools: list[str]
    record: Path


async def live_run(record: Path) -> tuple[list[Session], list[str]]:
    options: tuple[str, ...] = ("--policy", "threshold", "--alpha", ALPHA, "--record", str(record))
    async with embedded_pools(POOLS) as addresses:
        options += tuple(word for address in addresses for word in ("--pool", str(address)))
        with Picker(*options) as picker, Envoy(picker, patient=True) as envoy:
            picker.wait()
            envoy.wait()
            gateway = Address("127.0.0.1", envoy.port)
            done = await drive(visits(), [gateway])
            await asyncio.to_thread(eventually, lambda: len(read_log(record)), lambda count: count >= len(done))
            return done, [str(address) for address in addresses]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> LiveRun:
    record = tmp_path_factory.mktemp("live") / "sessions.log"
    done, pools = asyncio.run(live_run(record))
    return LiveRun(done, pools, record)


@pytest.mark.full
def test_a_live_run_lands_where_the_simulator_says(live: LiveRun, simulated: NDArray[np.float64]) -> None:
    assert len(live.done) == len(visits())
    assert all(session.pool for session in live.done)
    far = distances(balance(live.done, live.pools, WARMUP, SECONDS), simulated)
    assert far.max() < 1, f"{far}"


@pytest.mark.full
def test_a_replay_of_the_record_gives_the_live_spread(live: LiveRun) -> None:
    """The live run is one more replay of its own sessions, with other random choices."""
    from scipy.stats import t

    log = read_log(live.record)
    assert len(log) == len(live.done)

    def replayed(policy: str, seed: int) -> WhatIf:
        alpha = ALPHA if policy == "threshold" else None
        return replay_log(log, policies=[policy], alpha=alpha, warmup=WARMUP, until=SECONDS, seed=seed)

    runs = [replayed("threshold", seed) for seed in range(REPLAYS)]
    spreads = np.array([run["threshold"].spread for run in runs])
    width = float(t.isf(FALSE_ALARM / 2, REPLAYS - 1)) * spreads.std(ddof=1) * np.sqrt(1 + 1 / REPLAYS)
    observed = runs[0].observed
    assert observed is not None and observed.servers == POOLS
    assert abs(observed.spread - spreads.mean()) < width
    assert replayed("random", 1)["random"].spread > spreads.mean() + width  # the test can tell policies apart


@pytest.mark.full
@pytest.mark.parametrize(
    ("policy", "agrees"), [(ThresholdPolicy(0, LearningRule(ALPHA)), True), (RandomRouting(), False)]
)
def test_the_comparison_tells_policies_apart(policy: Policy, agrees: bool, simulated: NDArray[np.float64]) -> None:
    """Without a network: the same visits under the same policy are close, and under another one they are not."""
    done = ideal(visits(), POOLS, policy, seed=2)
    far = distances(balance(done, [str(pool) for pool in range(POOLS)], WARMUP, SECONDS), simulated)
    assert (far.max() < 1) == agrees, f"{far}"
