"""Compile the kernels before a run, or load them from disk, so that no run is charged for it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

from evenly.core import RoundRobin
from evenly.sim.engine import uses_window
from evenly.sim.scenario import Scenario
from evenly.sim.simulation import Simulation


def compile_kernels(scenarios: Iterable[Scenario]) -> None:
    """Compile the kernels that the scenarios need."""
    for scenario in scenarios:
        _compile(*_smallest(scenario))
        if uses_window(scenario):
            _compile("threshold", "exponential")


def _smallest(scenario: Scenario) -> tuple[Any, str]:
    """Return policy and service of a small system that needs the same kernel."""
    service = "exponential" if scenario.memoryless else "deterministic"
    if scenario.info.own:
        return RoundRobin, service  # any class will do
    if scenario.sized:
        return "greedy-utility", service
    if scenario.networked:
        return "stale-reports", service
    return ("jsq" if scenario.aggregate or not scenario.memoryless else "round-robin"), service


@cache
def _compile(policy: str | type[Any], service: str) -> None:
    """Run a kernel once, on the smallest system."""
    simulation = Simulation(Scenario(policy=policy, pools=1, load=1.0, service=service), np.random.SeedSequence(0))
    simulation.advance(1.0, max_events=1)
    simulation.tally()
