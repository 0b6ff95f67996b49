"""A policy of the user's own with other service laws and arrivals: exactly what the session kernel does."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from evenly import InputError, Scenario, simulate
from evenly.core import Choose, RoundRobin, ThresholdPolicy
from evenly.policies import AGGREGATE, PARAMETERS
from evenly.sim.kernels.ahead import Events
from evenly.sim.own_run import OwnRun
from evenly.sim.reference import new_policy
from evenly.sim.simulation import Simulation
from evenly.sim.system import System
from evenly.sim.tally import Tally
from tests.sim.own_policies import Counting
from tests.sim.session_reference import PoolOrder
from tests.sim.support import ONE_SIZE, first_seed, scenario_of
from tests.sim.test_session_kernel import ARRIVALS, SERVICES

# Every way to ask a policy and to end a session, with every law of service and of arrivals.
ASKED = (
    "threshold with capacity",
    "learning from above",
    "jsq",
    "power of five with capacity",
    "random past the first levels",
    "jiq with capacity",
    "pull with one place",
    "steps, threshold",
    "waves, round-robin",
)
BURSTY = "bursty:ratio=10,share=0.1,length=0.2"


def in_python(scenario: Scenario) -> Scenario:
    """Return the scenario with a class of its own that makes the kernel's decisions.

    It wraps the policy of `evenly.core`. Where pools are interchangeable, it offers candidates in the kernel's
    order.
    """

    class Wrapped:
        def __init__(self) -> None:
            self.policy = new_policy(scenario)
            self.order = PoolOrder(scenario.tasks_at_start().tolist(), [0] * scenario.pools)

        @property
        def messages(self) -> object:
            return self.policy.messages

        @property
        def threshold(self) -> int | None:
            return self.policy.threshold if isinstance(self.policy, ThresholdPolicy) else None

        def join(self, pool: int, tasks: int) -> None:
            self.policy.join(pool, tasks)

        def leave(self, pool: int) -> None: ...

        def arrive(self, choose: Choose) -> Any:  # noqa: ANN401
            ranked: Choose = choose
            if scenario.policy in AGGREGATE:
                ranked = lambda candidates: choose(self.order.ranked(candidates))  # noqa: E731
            pool: Any = self.policy.arrive(ranked)
            if pool is not None:
                self.order.move(pool, 1)
            return pool

        def depart(self, pool: int) -> None:
            self.policy.depart(pool)
            self.order.move(pool, -1)

    none: dict[str, Any] = dict.fromkeys(PARAMETERS)
    return replace(scenario, policy=Wrapped, **none)


@pytest.mark.parametrize("name", ASKED)
def test_it_does_exactly_what_the_kernel_does(name: str) -> None:
    place = ASKED.index(name)
    arrivals, service = ARRIVALS[place % len(ARRIVALS)], SERVICES[1 + place % (len(SERVICES) - 1)]
    scenario = scenario_of(ONE_SIZE[name], service=service, arrivals=arrivals, horizon=20.0, warmup=3.0)
    run: dict[str, Any] = {"seed": 7, "points": 41, "batches": 3}
    kernel, python = simulate(scenario, **run), simulate(in_python(scenario), **run)
    assert python.events == kernel.events > 60
    but = {"without_token"} | ({"threshold_time"} if scenario.policy != "threshold" else set())
    for mine, theirs in zip(python.windows, kernel.windows, strict=True):
        for field in fields(Tally):
            if field.name not in but:
                assert np.array_equal(getattr(mine, field.name), getattr(theirs, field.name)), field.name
    for column in ("pools_at_least", "max_tasks", "imbalance", "change_times", "change_thresholds"):
        first, second = (getattr(result.trajectories[0], column) for result in (python, kernel))
        assert np.array_equal(first, second), column


def test_stops_and_budgets_change_nothing_with_losses() -> None:
    scenario = Scenario(
        policy=Counting, pools=5, load=3.0, capacity=3, service="lognormal:cv=4", arrivals=BURSTY, initial_tasks=2
    )
    once, often = (Simulation(scenario, first_seed(2)) for _ in range(2))
    once.advance(80.0)
    while often.time < 40.0:
        often.advance(80.0, max_events=1)
    for stop in np.linspace(often.time, 80.0, 300)[1:]:
        often.advance(float(stop))
    assert once.tally().lost_tasks > 100
    for field in fields(Tally):
        assert np.array_equal(getattr(once.tally(), field.name), getattr(often.tally(), field.name)), field.name


def test_many_sessions_make_room() -> None:
    scenario = Scenario(policy=RoundRobin, pools=10, schedule="0:1,2:400", service="erlang:stages=2", horizon=8.0)
    own, kernel = simulate(scenario), simulate(replace(scenario, policy="round-robin"))
    assert own.max_tasks == kernel.max_tasks > 250
    assert own.spread == kernel.spread


def test_too_many_sessions_are_refused() -> None:
    with pytest.raises(InputError, match="every session is stored: at most 20000000"):
        Scenario(policy=RoundRobin, pools=10**7, load=3.0, service="deterministic")


class Given:
    """A source of given sessions, which a replay can use in place of a law."""

    arrivals = None
    redraws = False
    events = Events(
        np.array([1.0, 2.0, 3.0, 4.0, 6.0, 7.0]), np.array([-1, -2, -3, 1, 0, 2]), *np.zeros((2, 6), np.int64)
    )
    size = 3

    def draw(self, until: float, most: int) -> tuple[Events, int, bool]:
        count = min(int(np.searchsorted(self.events.times, until, "right")), most)
        return self.events, count, True

    def lose(self, index: int) -> None: ...


def test_given_sessions_drive_the_same_loop() -> None:
    system = System(
        Scenario(policy=RoundRobin, pools=2, load=1.0), first_seed(1), mean_holding=False, keep_path=False
    )
    run = OwnRun(system, Given())
    run.advance(until=8.0, budget=100)
    assert (system.state["time"], system.state["events"], system.state["arrivals"]) == (8.0, 6, 3)
    # Pool 0 has a task from 1 to 6 and one from 3 to 7, pool 1 from 2 to 4.
    assert (system.book.area + system.book.at_least * 8.0).tolist()[:4] == [16.0, 6.0 + 2.0, 3.0, 0.0]
    assert run.tasks.tolist() == [0, 0]
