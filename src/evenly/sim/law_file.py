"""Service laws and arrivals in the file of a result: the numbers that they hold are saved with it.

So a result can be read, and its scenario repeated, where the file that the numbers came from is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenly.errors import InputError
from evenly.sim.scenario import Scenario
from evenly.workload.arrivals import ArrivalProcess, recorded_arrivals
from evenly.workload.service import ServiceLaw, empirical_law

Arrays = dict[str, NDArray[Any]]


def described_laws(scenario: Scenario) -> dict[str, Any]:
    """Return both laws for the description: a text, or a table with the source of the numbers."""
    laws = {"service": scenario.service, "arrivals": scenario.arrivals}
    return {name: law if isinstance(law, str) else {"source": law.source} for name, law in laws.items()}


def law_arrays(scenario: Scenario) -> Arrays:
    """Return the numbers that the laws hold."""
    found: Arrays = {}
    if isinstance(scenario.service, ServiceLaw):
        found["service.values"] = np.array(scenario.service.values)
    if isinstance(scenario.arrivals, ArrivalProcess):
        found["arrivals.times"] = np.array(scenario.arrivals.times)
    return found


def laws_of(described: Mapping[str, Any], data: Arrays) -> dict[str, Any]:
    """Return the laws that hold numbers."""
    found: dict[str, Any] = {}
    for name, array, make in (
        ("service", "service.values", empirical_law),
        ("arrivals", "arrivals.times", recorded_arrivals),
    ):
        if isinstance(described.get(name), dict):
            numbers = data[array]
            if numbers.dtype != np.float64 or numbers.ndim != 1:
                raise InputError(f"its array {array} has the wrong type or shape.")
            found[name] = make(numbers.tolist(), str(described[name]["source"]))
    return found
