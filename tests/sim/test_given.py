"""Runs whose sessions are given: against the peers of the protocol, against what is drawn, and by brute force."""

import heapq
import math
from typing import Any

import numpy as np
import pytest

from evenly import InputError
from evenly.core import JoinShortestQueue
from evenly.core.protocol import Pick
from evenly.sim import Scenario, simulate
from evenly.sim.given import GivenSessions
from evenly.sim.recorded import draw_sessions, simulate_recorded
from evenly.sim.simulation import Simulation
from tests.sim.network_reference import NetworkReference
from tests.sim.support import first_seed
from tests.tiers import rest_in_full

LAWS: list[dict[str, Any]] = [
    {"service": "lognormal:cv=2"},
    {"service": "deterministic", "arrivals": "renewal:cv=0.5", "service_rate": 3.7},
    {"arrivals": "bursty:ratio=10,share=0.1,length=0.2", "initial_tasks": 2.4},
    {"service": "pareto:shape=1.5,ratio=100", "schedule": "0:4,6:0,9:7~2/5", "load": None},
]


@pytest.mark.parametrize("options", LAWS)
def test_sessions_drawn_ahead_are_those_drawn_on_the_way(options: dict[str, Any]) -> None:
    scenario = Scenario(**{"pools": 7, "load": 4.2, "alpha": 0.6, "horizon": 40.0, "warmup": 3.0, **options})
    ahead, sessions = simulate_recorded(scenario, seed=3)
    on_the_way = simulate(scenario, seed=3, batches=0)
    assert ahead.events == on_the_way.events
    assert ahead.scalars() == pytest.approx(on_the_way.scalars(), rel=1e-12)
    assert ahead.threshold_share == pytest.approx(on_the_way.threshold_share, rel=1e-12)
    assert sessions.pools is not None and sessions.pools.min() >= 0
    counts = np.bincount(sessions.pools[: sessions.open_at_start], minlength=7)
    assert counts.tolist() == scenario.tasks_at_start().tolist()


def test_the_session_kernel_with_exponential_times_agrees_with_the_others() -> None:
    scenario = Scenario(pools=20, load=5.5, alpha=0.6, horizon=2000.0, warmup=20.0)
    followed, _ = simulate_recorded(scenario)
    usual = simulate(scenario, seed=2)
    widths = usual.half_widths(1 - 1e-7)
    for name in ("spread", "max_tasks", "messages_per_task", "threshold"):
        # Both have the same interval, since both are as long: the difference varies by the square root of two.
        assert abs(getattr(followed, name) - getattr(usual, name)) < math.sqrt(2) * widths[name]


class GivenReference(NetworkReference):
    """The peers with given sessions: the heap of the standard library knows when each ends."""

    def __init__(self, scenario: Scenario, seed: np.random.SeedSequence, given: GivenSessions) -> None:
        super().__init__(scenario, seed)
        self._given = given
        self._next = self._begun = given.open_at_start
        self._due = [
            (float(given.durations[number]), number, session) for number, session in enumerate(self._sessions)
        ]
        heapq.heapify(self._due)
        self._set_next()

    def _set_next(self) -> None:
        starts = self._given.starts
        arrival = float(starts[self._next]) if self._next < starts.size else math.inf
        self._next_time = min(arrival, self._due[0][0] if self._due else math.inf)

    def _send_task(self, pool: int, pick: Pick | None = None) -> None:
        number = self._next
        self._send("travel", lambda: self._begin_given(pool, pick, number))

    def _begin_given(self, pool: int, pick: Pick | None, number: int) -> None:
        before = len(self._sessions)
        self._begin(pool, pick)
        if len(self._sessions) > before:
            ends = self.time + float(self._given.durations[number])
            heapq.heappush(self._due, (ends, self._begun, self._sessions[-1]))
            self._begun += 1
        self._set_next()

    def _try_step(self) -> bool:
        while (first := min(self._next_delivery(), self._next_report)) <= self._next_time:
            if self._next_report < self._next_delivery():
                self._regular_report()
            else:
                self.time, _, deliver = heapq.heappop(self._flying)
                deliver()
            assert self.time == first
        self.time = self._next_time
        if self._due and self._due[0][0] == self.time:
            session = heapq.heappop(self._due)[2]
            self._depart(self._sessions.index(session))
        else:
            self._arrive()
            self._next += 1
        self._set_next()
        return True


DELAYED: dict[str, dict[str, Any]] = {
    "learning": {"alpha": 0.8, "initial_tasks": 2},
    "learning, capacity": {"alpha": 0.8, "capacity": 6},
    "fixed threshold": {"threshold": 3},
    "jsq": {"policy": "jsq", "initial_tasks": [0, 3, 1, 0, 0, 2, 0, 0, 5]},
    "jsq, capacity": {"policy": "jsq", "capacity": 5},
    "random": {"policy": "random"},
    "stale reports": {"policy": "stale-reports", "report_interval": 0.3},
}


@pytest.mark.parametrize(
    ("name", "delay"),
    [(name, (0.05, "exponential:0.3", 0.4)[place % 3]) for place, name in enumerate(DELAYED)]
    + [("learning", "exponential:0.3")],
)
def test_late_messages_with_given_sessions_go_the_way_of_the_peers(name: str, delay: float | str) -> None:
    options: dict[str, Any] = {"pools": 9, "load": 4.5, "horizon": 30.0, **DELAYED[name]}
    law: dict[str, Any] = {
        "policy": "random",
        "service": "lognormal:cv=2",
        "initial_tasks": options.get("initial_tasks", 0),
    }
    drawn = Scenario(pools=9, load=4.5, horizon=30.0, **law)
    scenario = Scenario(**options, delay=delay)
    given = draw_sessions(drawn, first_seed(4))
    kernel = Simulation(scenario, first_seed(5), given=given, keep_pools=True)
    peers = GivenReference(scenario, first_seed(5), given)
    for _ in range(600):
        kernel.advance(1e6, max_events=1)
        peers.step()
        network = kernel.network
        assert network is not None
        assert kernel.time == peers.time
        assert network.tasks.tolist() == peers.tasks
        assert network.flying == len(peers._flying)
        if scenario.policy == "threshold":
            assert kernel.state["threshold"] == peers.dispatcher.threshold
    assert (int(kernel.state["arrivals"]), int(kernel.state["lost"])) == (peers.arrivals, peers.lost)
    if scenario.capacity is not None:
        assert peers.lost > 0


@pytest.mark.parametrize(
    "options",
    rest_in_full(
        [{"policy": "random"}, {"policy": "jsq", "delay": 0.4}, {"policy": "pull", "capacity": 5},
         {"policy": JoinShortestQueue, "capacity": 4}], 2
    ),
)  # fmt: skip
def test_crowding_and_spread_are_those_of_the_tasks_over_time(options: dict[str, Any]) -> None:
    system: dict[str, Any] = {"pools": 6, "load": 3.4, "horizon": 30.0, "initial_tasks": [3, 0, 1, 0, 0, 2]}
    given = draw_sessions(Scenario(**system, policy="random"), first_seed(7))
    run = Simulation(Scenario(**system, **options), first_seed(8), given=given)
    crowded = spread = fullest = 0.0
    while run.time < 30.0:
        before, tasks = run.time, run.tasks
        assert tasks is not None
        if run.network is None:
            run.advance(30.0, max_events=1)
        else:  # tasks reach their pools between events
            run.advance(min(before + 0.005, 30.0))
        length = run.time - before
        crowded += tasks[tasks >= math.ceil(tasks.mean()) + 2].sum() * length
        spread += float(np.std(tasks)) * length
        fullest += tasks.max() * length
    tally = run.tally()
    slack = 1e-9 if run.network is None else 0.01  # a change is seen up to 0.005 later
    assert run.crowded == pytest.approx(crowded, rel=slack)
    assert tally.spread == pytest.approx(spread, rel=slack)
    assert tally.max_time @ np.arange(tally.max_time.size) == pytest.approx(fullest, rel=slack)


def test_observed_sessions_go_where_they_went() -> None:
    scenario = Scenario(policy="power-of-d", pools=5, load=3.0, horizon=40.0, warmup=2.0, initial_tasks=1.4)
    result, sessions = simulate_recorded(scenario, seed=9)
    free = GivenSessions(starts=sessions.starts, durations=sessions.durations, pools=sessions.pools)
    run = Simulation(Scenario(policy="random", pools=5, load=3.0), first_seed(1), given=free, observed=True)
    run.advance(2.0)
    first = run.tally()
    run.advance(40.0)
    window = run.tally() - first
    assert window.spread == result.window.spread
    assert window.max_time[:8].tolist() == result.window.max_time[:8].tolist()


BAD: list[tuple[dict[str, Any], str]] = [
    ({"starts": []}, "for 1 to"),
    ({"durations": [1.0]}, "one start and one duration each"),
    ({"starts": [2.0, 1.0]}, "ascending order"),
    ({"starts": [-1.0, 1.0]}, "at least 0"),
    ({"durations": [1.0, -1.0]}, "durations at least 0"),
    ({"open_at_start": 1}, "need their pools"),
]


@pytest.mark.parametrize(("change", "words"), BAD)
def test_sessions_that_cannot_be_are_rejected(change: dict[str, Any], words: str) -> None:
    values: dict[str, Any] = {"starts": [0.0, 1.0], "durations": [1.0, 2.0], **change}
    arrays: dict[str, Any] = {
        name: np.array(value) if isinstance(value, list) else value for name, value in values.items()
    }
    with pytest.raises(InputError, match=words):
        GivenSessions(**arrays)


def test_a_run_that_cannot_be_recorded_is_rejected() -> None:
    with pytest.raises(InputError, match="sizes cannot be recorded"):
        simulate_recorded(Scenario(policy="greedy-utility", sizes="2*1,1*2", load=2.0))
    with pytest.raises(InputError, match="for a run that is recorded"):
        simulate_recorded(Scenario(pools=10**8, load=2.0, threshold=2))
    with pytest.raises(InputError, match="nothing to record"):
        simulate_recorded(Scenario(pools=2, load=1e-6, policy="jsq", horizon=1.0))
