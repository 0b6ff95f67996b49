"""Runs of the playground have the events and the figures of the Python simulator, from the same seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evenly.sim import Scenario, simulate
from evenly.sim.kernels.rng import _WIDTH
from tests.sim.network_reference import NetworkReference
from tests.web.playground.node import ROUNDING, differences, in_node

_SYSTEM = {"pools": 40, "load": 5.5}
RUNS: dict[str, dict[str, Any]] = {
    "learning": {"policy": "threshold", "alpha": "0.9"},
    "learning, from above": {"policy": "threshold", "alpha": "0.85", "threshold": 12, "initial": 9, "seed": 7},
    "fixed": {"policy": "threshold", "threshold": 5, "seed": 2**40 + 5},
    "too high": {"policy": "threshold", "threshold": 9},
    "jsq": {"policy": "jsq"},
    "random": {"policy": "random", "seed": 0},
    "two choices": {"policy": "power-of-d"},
    "four choices": {"policy": "power-of-d", "choices": 4},
    "round-robin": {"policy": "round-robin", "initial": 3},
    "jiq": {"policy": "jiq"},
    "jbt": {"policy": "jbt", "threshold": 6},
}
LATE = {
    name: {**RUNS[name], "delay": 0.05, "exponential": exponential}
    for name in ("learning", "fixed", "jsq", "random", "two choices")
    for exponential in (False, True)
    if exponential or name != "random"
}
_WARMUP: dict[str, Any] = {"time": 4.5, "type": "average", "value": 0}
_STEPS = [{"time": 6.0, "type": "load", "value": 11}, {"time": 9.13, "type": "load", "value": 2.25}]
_HORIZON = 16.0
_EVENTS = 1500


def _scenario(spec: dict[str, Any], *, steps: bool) -> Scenario:
    delay = spec.get("delay", 0)
    schedule = ",".join(["0:5.5", *(f"{step['time']}:{step['value']}" for step in _STEPS)])
    return Scenario(
        policy=spec["policy"],
        pools=40,
        load=None if steps else 5.5,
        schedule=schedule if steps else None,
        threshold=spec.get("threshold"),
        alpha=spec.get("alpha"),
        sample_size=spec.get("choices"),
        initial_tasks=spec.get("initial", 0),
        delay=f"exponential:{delay}" if spec.get("exponential") else delay,
        horizon=_HORIZON,
        warmup=_WARMUP["time"] if steps else 0,
    )


@pytest.fixture(scope="module")
def runs() -> dict[str, Any]:
    """All runs, in one process of Node."""
    wanted = {
        **{
            f"{name}{', late' * late}{', steps' * steps}": {
                "spec": {**_SYSTEM, **spec},
                "horizon": _HORIZON,
                "actions": [_WARMUP, *_STEPS] if steps else [],
            }
            for late, specs in ((False, RUNS), (True, LATE))
            for name, spec in specs.items()
            for steps in (False, True)
        },
        **{f"{name}, events": {"spec": {**_SYSTEM, **spec}, "steps": _EVENTS} for name, spec in LATE.items()},
    }
    return dict(zip(wanted, in_node("run.mjs", list(wanted.values())), strict=True))


@pytest.mark.parametrize("steps", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_figures_are_those_of_the_simulator(late: bool, steps: bool, runs: dict[str, Any]) -> None:
    for name, spec in (LATE if late else RUNS).items():
        result = simulate(_scenario(spec, steps=steps), seed=spec.get("seed", 1), batches=0).to_dict()
        ours = dict(runs[f"{name}{', late' * late}{', steps' * steps}"]["averages"])
        assert ours.pop("time") == _HORIZON - (_WARMUP["time"] if steps else 0)
        assert ours["events"] > 3000
        assert differences(ours, result) == [], name


@pytest.mark.parametrize("name", LATE)
def test_late_messages_are_handled_as_by_the_peers_of_the_protocol(name: str, runs: dict[str, Any]) -> None:
    spec = LATE[name]
    reference = NetworkReference(
        _scenario(spec, steps=False), np.random.SeedSequence(spec.get("seed", 1), spawn_key=(0,))
    )
    for index, ours in enumerate(runs[f"{name}, events"]["states"]):
        reference.step()
        assert ours["time"] == pytest.approx(reference.time, rel=ROUNDING), index
        assert ours["tasks"] == reference.tasks, index
        if spec["policy"] == "threshold":
            threshold, held = reference.dispatcher.threshold, reference.estimates()
            assert ours["threshold"] == threshold, index
            assert ours["tokens"] == [max(0, min(2, threshold + 1 - tasks)) for tasks in held], index


def test_the_edges_of_the_ziggurat_are_those_of_python() -> None:
    """The module holds them as data; see `sim/ziggurat.js`."""
    assert in_node("edges.mjs", None) == (_WIDTH * 2.0**53).tolist()


_KILLED = [
    *({"time": 3 + index / 10, "type": "kill", "value": index} for index in range(30)),
    {"time": 6.5, "type": "kill", "value": 3},  # dead already
    {"time": 7.0, "type": "load", "value": 3.0},
    *({"time": 8 + index / 100, "type": "revive", "value": index} for index in range(10)),
    {"time": 9.0, "type": "threshold", "value": 7},
]


@pytest.mark.full
def test_pools_can_be_killed_and_come_back() -> None:
    """No task goes to a dead pool or is lost, and a copy of a run goes on like the run itself."""
    specs = [{**_SYSTEM, **spec} for spec in (*RUNS.values(), *LATE.values()) if "initial" not in spec]
    runs = [{"spec": spec, "horizon": 12.0, "actions": _KILLED} for spec in specs]
    dead = in_node("run.mjs", [{**run, "horizon": 7.5, "actions": _KILLED[:-11]} for run in runs])
    ends = in_node("run.mjs", runs)
    assert in_node("run.mjs", [{**run, "detour": True} for run in runs]) == ends
    calm = {**runs[0], "actions": [action for action in _KILLED if action["type"] == "load"]}
    undisturbed = sum(in_node("run.mjs", [calm])[0]["tasks"])
    for spec, early, end in zip(specs, dead, ends, strict=True):
        assert sum(early["alive"]) == 10 and sum(end["alive"]) == 20, spec
        assert all(tasks == 0 for tasks, alive in zip(early["tasks"], early["alive"], strict=True) if not alive)
        averages = end["averages"]
        assert averages["events"] > 2000
        assert sum(averages["pools_with_exactly"]) == pytest.approx(1, abs=1e-12), spec
        assert sum(averages["max_tasks"]["distribution"]) == pytest.approx(1, abs=1e-12), spec
        # Tasks of a killed pool start again at once, so that their number is that of a run without kills.
        if not spec.get("delay") and spec.get("seed", 1) == 1:
            assert sum(end["tasks"]) == undisturbed
