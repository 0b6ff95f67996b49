"""A log written by the simulator and replayed gives that simulation's numbers, bit for bit, for every policy."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenly.logs import read_log
from evenly.sim import Scenario
from evenly.sim.given import GivenSessions
from evenly.sim.recorded import simulate_recorded
from evenly.sim.tally import Averages, averages
from evenly.whatif import replay_log
from evenly.whatif.record import save_sessions
from tests.sim.own_policies import Counting
from tests.sim.support import OPTIONS

LAWS: list[dict[str, Any]] = [
    {},
    {"service": "deterministic"},
    {"service": "lognormal:cv=4", "arrivals": "renewal:cv=2"},
    {"arrivals": "bursty:ratio=10,share=0.1,length=0.5"},
    {"service": "erlang:stages=2", "arrivals": "renewal:cv=0"},
]
LATE: dict[str, dict[str, Any]] = {
    "late, learning": {"alpha": 0.8, "delay": 0.05, "initial_tasks": 2.5},
    "late, fixed threshold": {"threshold": 3, "delay": "exponential:0.2", "capacity": 5},
    "late, jsq": {"policy": "jsq", "delay": 0.3},
    "late, power of three": {"policy": "power-of-d", "sample_size": 3, "delay": "exponential:0.1"},
    "late, random": {"policy": "random", "delay": 0.1},
    "stale reports": {"policy": "stale-reports", "report_interval": 0.2, "initial_tasks": 1.5},
    "late and stale reports": {"policy": "stale-reports", "report_interval": 0.3, "delay": 0.1},
}
OWN: dict[str, dict[str, Any]] = {"own policy": {"policy": Counting, "capacity": 6, "initial_tasks": 2.3}}
# Each law with a policy that is told of pools and one that is told of levels, with and without losses.
INSTANT = (
    "threshold with capacity",
    "learning",
    "learning from above",
    "jsq with capacity",
    "power of two",
    "random",
    "round-robin with capacity",
    "jiq",
    "jbt at its capacity",
    "pull with room",
    "steps, threshold",
    "waves, jsq",
)
SYSTEMS = {**{name: OPTIONS[name] for name in INSTANT}, **LATE, **OWN}


def same_averages(found: Averages, wanted: Averages) -> None:
    """Compare all but the imbalance: a log does not know the load."""
    for each in fields(Averages):
        if each.name != "imbalance":
            one, two = getattr(found, each.name), getattr(wanted, each.name)
            same = np.array_equal(one, two) if isinstance(one, np.ndarray) else one == two
            assert same, (each.name, one, two)


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_recorded_simulation_replays_exactly(name: str, tmp_path: Path) -> None:
    options = {"pools": 12, "load": 3.3, "horizon": 20.0, "warmup": 1.5, **SYSTEMS[name]}
    laws = {} if name in LATE else LAWS[list(SYSTEMS).index(name) % len(LAWS)]
    scenario = Scenario(**options, **laws)
    result, sessions = simulate_recorded(scenario, seed=11)
    path = tmp_path / "run.log"
    save_sessions(path, sessions)
    takes = scenario.info.parameters
    again = replay_log(
        path,
        policies=[scenario.policy],
        servers=scenario.pools,
        threshold=scenario.initial_threshold if "threshold" in takes else None,
        alpha=scenario.alpha,
        sample_size=scenario.sample_size,
        report_interval=scenario.report_interval,
        capacity=scenario.capacity,
        delay=scenario.delay,
        warmup=1.5,
        until=20.0,
        seed=11,
    )
    [outcome] = again.policies
    same_averages(outcome.averages, averages(result.window, scenario.pools))
    for count in ("arrivals", "events", "lost_tasks", "without_token", "green", "yellow", "resync",
                  "other", "change_count"):  # fmt: skip
        assert getattr(outcome.window, count) == getattr(result.window, count)
    assert again.log.sessions == len(sessions)


def test_a_log_keeps_every_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    pools = rng.integers(0, 3, 500).astype(np.int32)
    sessions = GivenSessions(
        starts=np.sort(np.concatenate([np.zeros(20), rng.exponential(1e3, 480)])),
        durations=np.exp(rng.normal(0, 6, 500)),
        open_at_start=20,
        pools=pools,
    )
    save_sessions(tmp_path / "log", sessions)
    log = read_log(tmp_path / "log")
    assert log.open_at_start == 20
    assert not log.has_clock and not log.written_at_end
    assert np.array_equal(log.starts, sessions.starts)
    assert np.array_equal(log.durations, sessions.durations)
    assert log.servers is not None
    assert [int(log.server_names[server]) for server in log.servers] == pools.tolist()


def test_the_observed_row_of_a_recorded_simulation_is_that_simulation(tmp_path: Path) -> None:
    scenario = Scenario(
        policy="jsq", pools=4, load=3.0, initial_tasks=2, horizon=30.0, service="weibull:shape=0.5"
    )
    result, sessions = simulate_recorded(scenario, seed=2)
    save_sessions(tmp_path / "log", sessions)
    again = replay_log(tmp_path / "log", policies=["jsq"], until=30.0, seed=2)
    assert again.servers == 4 and again.window.warmup == 0
    assert again.observed is not None
    assert again.observed.spread == again["jsq"].spread == result.spread
    assert again.observed.max_tasks == result.max_tasks
    assert again.observed.crowded_share == again["jsq"].crowded_share
    assert again.observed.messages_per_session is None
