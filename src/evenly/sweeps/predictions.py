"""What the fluid limit predicts for a value at a point, for the lines in pictures."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from evenly.policies import LIMIT, PARAMETERS, POLICIES
from evenly.theory.equilibrium import Equilibrium, predict_equilibrium
from evenly.theory.tuning import is_optimal

PREDICTED = ("spread", "mean_tasks", "max_tasks", "mean_threshold")
_NOTHING = 1e-12  # a smaller share of pools is none
_OTHER_SYSTEMS = {
    "delay": 0.0,
    "sticky": 0.0,
    "service": "exponential",
    "arrivals": "poisson",
}  # what the limit is known for


def fluid_value(value: str, options: Mapping[str, Any]) -> float | None:
    """Return the value in equilibrium in the large-system limit; None where no prediction is known.

    That is for a constant load, exponential service, Poisson arrivals, no delays, no capacity and pools of one
    size. A threshold that learns is known to settle at the optimum where Cor. 2 of the paper applies.
    """
    given = {name: each for name, each in options.items() if each is not None}
    policy = POLICIES.get(str(given.get("policy")))
    for name in PARAMETERS:
        if policy is not None and name not in policy.parameters:
            given.pop(name, None)  # it is for another policy of the sweep
    if value not in PREDICTED or not _is_known(given):
        return None
    learns = "alpha" in given  # then it starts at the threshold given, and moves to floor(load)
    threshold = None if learns else given.get("threshold")
    found = _equilibrium(given["policy"], float(given["load"]), threshold, given.get("sample_size"))
    if value == "mean_threshold":
        return None if found.threshold is None else float(found.threshold)
    if value == "max_tasks":
        return float((found.occupancy > _NOTHING).sum() - 1)
    return found.spread if value == "spread" else found.mean_tasks


def _is_known(given: Mapping[str, Any]) -> bool:
    """Return True if the limit of a system is known."""
    usual = all(given.get(name, value) == value for name, value in _OTHER_SYSTEMS.items())
    if (
        not usual
        or given.get("policy") not in LIMIT
        or "load" not in given
        or {"capacity", "sizes"} & given.keys()
    ):
        return False
    return "alpha" not in given or _settles_at_optimum(float(given["load"]), str(given["alpha"]))


@cache
def _settles_at_optimum(load: float, alpha: str) -> bool:
    return is_optimal(load=load, alpha=alpha)


@cache
def _equilibrium(policy: str, load: float, threshold: int | None, sample_size: int | None) -> Equilibrium:
    own = {"threshold": {"threshold": threshold}, "power-of-d": {"sample_size": sample_size}}.get(policy, {})
    return predict_equilibrium(policy=policy, load=load, **own)  # type: ignore[arg-type]
