"""Scenarios as the records that `chain.h` takes, and which scenarios it can simulate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenly.errors import InputError
from evenly.sim.scenario import Scenario

SOURCE = Path(__file__).parent
MAX_SAMPLED = 4
POLICIES = {"threshold": 0, "jsq": 1, "power-of-d": 2, "random": 3}  # as `Policy` in chain.h
_LEVELS = (64, 256, 1024)
_WORD = 2.0**32
_MAX_POOLS = 2**20  # sums of squares fit into 32 bits, and counts into single precision
_DEVIATIONS = 12  # of a Poisson number, which are never seen

# As `Point` and `Sums` in chain.h.
POINT = np.dtype(
    [
        *(
            (name, np.int32)
            for name in ("policy", "pools", "learning", "fall_at", "highest", "sampled", "threshold")
        ),
        *((name, np.int32) for name in ("tasks", "fuller", "shift")),
        ("peak", np.uint32),
        ("balanced", np.float32),
        ("warmup", np.float64),
        ("horizon", np.float64),
    ],
    align=True,
)
SUMS = np.dtype(
    [
        *((name, np.float64) for name in ("time", "tasks", "spread", "max_tasks", "threshold", "imbalance")),
        *((name, np.uint64) for name in ("events", "arrivals", "green", "yellow", "resync", "changes")),
        *((name, np.uint64) for name in ("without_token", "plain", "dropped", "warmup_events")),
    ]
)


def why_not(scenario: Scenario) -> str | None:
    """Return what the chain cannot simulate about a scenario; None if it can."""
    phase = scenario.phases[0]
    reasons = {
        f"the policy {scenario.info.name}": scenario.info.name not in POLICIES,
        "other service laws and arrivals": not scenario.memoryless,
        "pools of different sizes": scenario.sized,
        "late messages": scenario.networked,
        "clients who return": scenario.sticky > 0,
        "a capacity": scenario.capacity is not None,
        "a load that varies, or is 0": len(scenario.phases) > 1 or phase.amplitude != 0 or phase.load == 0,
        f"a sample of more than {MAX_SAMPLED} pools": scenario.sampled > MAX_SAMPLED,
        "a number of initial tasks for each pool": not isinstance(scenario.initial_tasks, int | float),
    }
    found = next((reason for reason, applies in reasons.items() if applies), None)
    if found is None and not _fits(scenario):
        return f"{scenario.pools} pools at load {phase.load}"
    return found


def _fits(scenario: Scenario) -> bool:
    return scenario.pools <= _MAX_POOLS and _levels_for(scenario) <= _LEVELS[-1] and _shift(scenario) > 0


def _most(mean: float) -> float:
    """Return a number that a Poisson variable of this mean never reaches."""
    return mean + _DEVIATIONS * math.sqrt(mean) + 30


def _start(scenario: Scenario) -> float:
    tasks = scenario.initial_tasks
    assert isinstance(tasks, int | float)
    return float(tasks)


def _levels_for(scenario: Scenario) -> int:
    tallest = max(_most(scenario.load_at_start), _start(scenario) + 2)
    return math.ceil(max(tallest, (scenario.initial_threshold or 0) + 4)) + 4


def levels(scenarios: Sequence[Scenario]) -> int:
    """Return a number of levels that is enough for all scenarios."""
    return next(size for size in _LEVELS if size >= max(map(_levels_for, scenarios)))


def _shift(scenario: Scenario) -> int:
    """Return the binary digits of a rate after the point: as many as 32 bits allow."""
    offered = scenario.pools * scenario.load_at_start
    most = offered + max(_most(offered), scenario.pools * _start(scenario) + _most(offered))
    return min(24, math.floor(math.log2(_WORD / most)))


def as_points(scenarios: Sequence[Scenario], size: int) -> NDArray[Any]:
    """Return one record per scenario, for chains of `size` levels. Times are in mean task times."""
    points = np.zeros(len(scenarios), POINT)
    for point, scenario in zip(points, scenarios, strict=True):
        reason = why_not(scenario)
        if reason is not None:
            raise InputError(f"The GPU cannot simulate {reason}.")
        tasks = scenario.tasks_at_start()
        rule = scenario.rule
        point["policy"] = POLICIES[scenario.info.name]
        point["pools"] = scenario.pools
        point["learning"] = rule is not None
        point["fall_at"] = -1 if rule is None else rule.fall_at(scenario.pools)
        point["highest"] = size - 5
        point["sampled"] = scenario.sampled
        point["threshold"] = scenario.initial_threshold or 0
        point["tasks"], point["fuller"] = tasks.min(), (tasks > tasks.min()).sum()
        point["shift"] = _shift(scenario)
        point["peak"] = round(scenario.pools * scenario.load_at_start * 2 ** int(point["shift"]))
        point["balanced"] = scenario.pools * scenario.load_at_start
        point["warmup"], point["horizon"] = (
            t * scenario.service_rate for t in (scenario.warmup, scenario.horizon)
        )
    return points
