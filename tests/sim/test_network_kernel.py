"""The kernel for late messages and the peers of `evenly.core.protocol` go the same way, event by event."""

from typing import Any

import numpy as np
import pytest

from evenly.sim import Scenario
from evenly.sim.simulation import Simulation
from tests.sim.network_reference import NetworkReference

SYSTEMS: dict[str, dict[str, Any]] = {
    "fixed threshold": {"threshold": 3},
    "threshold zero": {"threshold": 0, "load": 0.7},
    "learning": {"alpha": 0.8},
    "learning, from a high threshold": {"alpha": 0.8, "threshold": 9, "initial_tasks": 6},
    "learning, few pools": {"alpha": 0.6, "pools": 2},
    "learning, high load": {"alpha": 0.9, "load": 12.25, "initial_tasks": 12},
    "learning, unequal start": {"alpha": 0.75, "initial_tasks": [0, 1, 2, 3, 4, 5, 6, 7, 0, 0, 1, 1]},
    "learning, service rate": {"alpha": 0.8, "service_rate": 2.5},
    "learning, steps": {"alpha": 0.8, "load": None, "schedule": "0:4,3:0,3.4:0,8:9,12:2~1/3"},
    "learning, hundreds on the way": {
        "alpha": 0.5,
        "pools": 2,
        "load": 400.0,
        "threshold": 400,
        "initial_tasks": 400,
    },
    "learning, wave": {"alpha": 0.8, "load": None, "schedule": "0:4~3/5"},
    "learning, capacity": {"alpha": 0.8, "capacity": 6, "initial_tasks": 2},
    "fixed threshold, capacity": {"threshold": 4, "capacity": 5, "load": 7.0},
    "jsq": {"policy": "jsq", "initial_tasks": 1.5},
    "jsq, capacity": {"policy": "jsq", "capacity": 6},
    "jsq, high load": {"policy": "jsq", "load": 70.0, "pools": 4},
    "power of two": {"policy": "power-of-d"},
    "power of five": {"policy": "power-of-d", "sample_size": 5, "load": 9.0},
    "power of two, capacity": {"policy": "power-of-d", "capacity": 7},
    "random, capacity": {"policy": "random", "capacity": 5},
    "random": {"policy": "random", "initial_tasks": 3},
    "stale reports": {"policy": "stale-reports", "report_interval": 0.3},
    "stale reports, capacity": {"policy": "stale-reports", "capacity": 9},
    "frequent reports": {"policy": "stale-reports", "report_interval": 0.01, "service_rate": 0.5},
}
FIXED, RANDOM = (0.001, 0.05, 0.4), ("exponential:0.02", "exponential:1")
# Each system with two delays: as swift as the events of a pool, as slow as its tasks, and in between. One of them,
# in turn a fixed and a random one, in `make test`.
CASES = [
    pytest.param(name, delay, marks=[] if place % 2 == kind else pytest.mark.full)
    for place, name in enumerate(SYSTEMS)
    for kind, delay in enumerate((FIXED[place // 2 % len(FIXED)], RANDOM[place // 2 % len(RANDOM)]))
]
EVENTS = 1200  # the buffers of random numbers are filled again at 512


@pytest.mark.parametrize(("name", "delay"), CASES)
def test_kernel_and_peers_go_the_same_way(name: str, delay: float | str) -> None:
    scenario = Scenario(**{"pools": 12, "load": 5.5, "horizon": 1e6, "delay": delay, **SYSTEMS[name]})
    seed = np.random.SeedSequence(7, spawn_key=(len(name),))
    kernel, peers = Simulation(scenario, seed), NetworkReference(scenario, seed)
    for _ in range(EVENTS):
        kernel.advance(1e6, max_events=1)
        peers.step()
        network = kernel.network
        assert network is not None
        assert kernel.time == peers.time
        assert network.tasks.tolist() == peers.tasks
        assert network.flying == len(peers._flying)
        if scenario.policy not in ("power-of-d", "random"):
            assert network.estimates.tolist() == peers.estimates()
        if scenario.policy == "threshold":
            assert kernel.state["threshold"] == peers.dispatcher.threshold
    assert (int(kernel.state["arrivals"]), int(kernel.state["lost"])) == (peers.arrivals, peers.lost)
    if scenario.capacity is not None and scenario.policy != "jsq":
        assert peers.lost > 0
    if scenario.policy == "threshold":
        tally = kernel.tally()
        assert [tally.green, tally.yellow, tally.resync] == peers.messages_since_start()
        assert tally.without_token == peers.without_token
    if scenario.policy == "stale-reports":
        assert kernel.tally().other == peers.reports


def test_delays_of_zero_are_the_paper_s_system() -> None:
    assert not Scenario(pools=3, load=1.0).networked
    assert Scenario(pools=3, load=1.0, delay="exponential:0").aggregate
