"""The playground's predictions are those of `evenly.theory`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evenly.theory import alpha_min, predict_equilibrium, predict_fluid, predict_settling
from evenly.theory.fluid.other_policies import power_of_d_fluid, random_fluid
from tests.web.playground.node import in_node

LOADS = (0.5, 1.0, 3.0, 5.5, 9.99, 20.0)
EQUILIBRIA: list[dict[str, Any]] = [
    *(
        {"policy": "threshold", "load": load, "threshold": at}
        for load in LOADS
        for at in (0, 1, 2, 5, 8, 9, 20, 25)
    ),
    *({"policy": policy, "load": load} for policy in ("random", "jsq") for load in LOADS),
    *({"policy": "power-of-d", "load": load, "choices": d} for d in (1, 2, 4) for load in LOADS),
]
SETTLING: list[dict[str, Any]] = [
    {"load": load, "alpha": alpha, "start": start}
    for load in (0.5, 5.5, 5.57, 7.0, 9.3)
    for alpha in ("0.5", "0.57", "0.93", "0.99")
    for start in (0, 4, 30)
]
FLUIDS: dict[str, dict[str, Any]] = {
    "optimal": {"policy": "threshold", "load": 5.5, "threshold": 5},
    "too high": {"policy": "threshold", "load": 5.5, "threshold": 9},
    "too low": {"policy": "threshold", "load": 5.5, "threshold": 2},
    "learning": {"policy": "threshold", "load": 5.5, "alpha": "0.93"},
    "learning, from above": {"policy": "threshold", "load": 3.3, "alpha": "0.85", "threshold": 9, "initial": 8},
    "demand that changes": {
        "policy": "threshold",
        "load": 5.5,
        "alpha": "0.93",
        "steps": [[4.0, 11.0], [9.0, 2.5]],
    },
    "random": {"policy": "random", "load": 5.5, "initial": 9},
    "two choices": {"policy": "power-of-d", "load": 5.5},
}
TIMES = np.linspace(0.0, 14.0, 57)


@pytest.fixture(scope="module")
def predicted() -> dict[str, Any]:
    found: dict[str, Any] = in_node(
        "theory.mjs",
        {
            "equilibria": EQUILIBRIA,
            "settling": SETTLING,
            "fluids": [{**spec, "times": TIMES.tolist()} for spec in FLUIDS.values()],
        },
    )
    return found


def test_equilibria(predicted: dict[str, Any]) -> None:
    for spec, ours in zip(EQUILIBRIA, predicted["equilibria"], strict=True):
        theirs = predict_equilibrium(
            policy=spec["policy"],
            load=spec["load"],
            threshold=spec.get("threshold"),
            sample_size=spec.get("choices"),
        )
        for name, expected in (("occupancy", theirs.occupancy), ("exactly", theirs.pools_with_exactly)):
            size = max(len(ours[name]), len(expected))
            found = np.pad(ours[name], (0, size - len(ours[name])))
            np.testing.assert_allclose(
                found, np.pad(expected, (0, size - len(expected))), atol=2e-11, err_msg=f"{spec}"
            )
        assert ours["spread"] == pytest.approx(theirs.spread, abs=1e-9), spec


def test_where_and_when_the_threshold_settles(predicted: dict[str, Any]) -> None:
    for spec, ours in zip(SETTLING, predicted["settling"], strict=True):
        theirs = predict_settling(load=spec["load"], alpha=spec["alpha"], initial_tasks=spec["start"])
        assert tuple(ours["thresholds"]) == theirs.settled_threshold, spec
        assert ours["optimal"] == theirs.optimal, spec
        bound = theirs.settle_time_bound
        assert ours["bound"] == (None if bound is None else pytest.approx(bound)), spec
        assert ours["alphaMin"] == pytest.approx(alpha_min(spec["load"])), spec


@pytest.mark.parametrize("name", FLUIDS)
def test_fluid_paths(name: str, predicted: dict[str, Any]) -> None:
    """Steps of 1/256 are accurate to about their size times the load: invisible in a chart."""
    spec = FLUIDS[name]
    ours = predicted["fluids"][list(FLUIDS).index(name)]
    more = {"horizon": float(TIMES[-1]), "points": TIMES.size, "initial_tasks": spec.get("initial", 0)}
    path: Any
    if spec["policy"] == "random":
        path = random_fluid(load=spec["load"], **more)
    elif spec["policy"] == "power-of-d":
        path = power_of_d_fluid(load=spec["load"], **more)
    else:
        schedule = ",".join(f"{time}:{load}" for time, load in [[0, spec["load"]], *spec.get("steps", [])])
        path = predict_fluid(schedule=schedule, threshold=spec.get("threshold"), alpha=spec.get("alpha"), **more)
        late = [abs(row["threshold"] - at) for row, at in zip(ours, path.threshold, strict=True)]
        assert max(late) <= 1 and sum(late) <= 3, "changes are at most a moment early or late"
    for row, expected in zip(ours, path.occupancy, strict=True):
        size = max(len(row["occupancy"]), len(expected))
        found = np.pad(row["occupancy"], (0, size - len(row["occupancy"])))
        np.testing.assert_allclose(found, np.pad(expected, (0, size - len(expected))), atol=0.02)
