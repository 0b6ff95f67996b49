"""The session kernel against the objects of `evenly.core`, on the same random numbers, event by event."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenly.sim import Phase, Scenario
from evenly.sim.simulation import Simulation
from evenly.workload.arrivals import ArrivalProcess, recorded_arrivals
from evenly.workload.service import ServiceLaw, empirical_law
from tests.sim.session_reference import SessionReference
from tests.sim.support import CORE, LAWS, OPTIONS, scenario_of
from tests.sim.test_kernels_against_reference import FAR, assert_equal_now, scenarios

SERVICES: list[str | ServiceLaw] = [
    "exponential",
    *LAWS,
    empirical_law([1, 2, 2, 7]),
]
ARRIVALS: list[str | ArrivalProcess] = [
    "poisson",
    "renewal:cv=0",
    "renewal:cv=0.5",
    "renewal:cv=3",
    "renewal:lognormal:cv=2",
    "bursty:ratio=10,share=0.1,length=0.2",
    recorded_arrivals([0, 1, 1, 1, 2, 5, 6, 6, 9]),
]


def assert_step_together(scenario: Scenario, steps: int, seed: int) -> None:
    kernel = Simulation(scenario, np.random.SeedSequence(seed))
    reference = SessionReference(scenario, np.random.SeedSequence(seed))
    assert not scenario.memoryless
    for done in range(1, steps + 1):
        kernel.advance(FAR, max_events=1)
        reference.step()
        assert kernel.state["events"] == done
        assert kernel.tasks is not None
        assert_equal_now(kernel, reference, tolerance=1e-7)  # a wave can stand still


@pytest.mark.parametrize("name", CORE)
def test_every_policy_and_demand_goes_the_same_way(name: str) -> None:
    place = CORE.index(name)
    arrivals, service = ARRIVALS[place % len(ARRIVALS)], SERVICES[1 + place % (len(SERVICES) - 1)]
    assert_step_together(scenario_of(OPTIONS[name], service=service, arrivals=arrivals), steps=300, seed=3)


@st.composite
def laws(draw: st.DrawFn) -> dict[str, Any]:
    service = draw(st.sampled_from(SERVICES))
    return {
        "service": service,
        "arrivals": draw(st.sampled_from(ARRIVALS[1:] if service == "exponential" else ARRIVALS)),
    }


@pytest.mark.long
@settings(max_examples=100)
@given(scenario=scenarios(laws()), seed=st.integers(0, 2**32))
def test_any_scenario_goes_the_same_way(scenario: Scenario, seed: int) -> None:
    assert_step_together(scenario, steps=100, seed=seed)


def test_sessions_that_end_together_end_in_the_order_of_their_beginnings() -> None:
    scenario = Scenario(policy="jsq", pools=5, load=2.0, service="deterministic", initial_tasks=[3, 1, 0, 2, 4])
    assert_step_together(scenario, steps=200, seed=1)
    kernel = Simulation(scenario, np.random.SeedSequence(1))
    kernel.advance(math.nextafter(1.0, 0.0))
    before = int(kernel.state["events"])
    kernel.advance(1.0)
    assert int(kernel.state["events"]) == before + 10  # all ten of time 0


def test_the_heap_makes_room() -> None:
    schedule = (Phase(0.0, 0.5), Phase(1.0, 400.0))
    scenario = Scenario(policy="jsq", pools=20, schedule=schedule, service="erlang:stages=2")
    kernel = Simulation(scenario, np.random.SeedSequence(2))
    kernel.advance(6.0)
    assert 6000 < kernel.state["total"] < 10_000  # 8000 +- 22 standard deviations
    once = Simulation(scenario, np.random.SeedSequence(2))
    for stop in np.linspace(0.01, 6.0, 600):
        once.advance(float(stop))
    assert once.tasks is not None and kernel.tasks is not None
    assert once.tasks.tolist() == kernel.tasks.tolist()
    assert once.state["spread_area"] == kernel.state["spread_area"]
