"""NumPy numbers give the same results as plain ones, ready for JSON."""

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenly
from evenly import Result, Scenario, theory

INT: Any = np.int64
FLOAT: Any = np.float32
YES: Any = np.bool_(True)


def simulated(**given: Any) -> Any:  # noqa: ANN401
    run = {name: given.pop(name) for name in ("seed", "replications", "batches", "points") if name in given}
    return evenly.simulate(Scenario(horizon=20.0, **given), mean_holding_times=YES, **run)


FUNCTIONS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "simulate": (simulated, {"pools": 5, "load": 2.5, "alpha": 0.5, "seed": 3, "replications": 2, "points": 5}),
    "simulate, power-of-d": (simulated, {"policy": "power-of-d", "pools": 5, "load": 2.5, "sample_size": 3}),
    "solve_exact": (evenly.solve_exact, {"pools": 2, "load": 1.5, "alpha": 0.4, "threshold": 1, "capacity": 4}),
    "predict_fluid": (
        evenly.predict_fluid,
        {"load": 2.5, "alpha": 0.9, "threshold": 1, "initial_tasks": 2, "horizon": 2.0, "points": 3},
    ),
    "power_of_d_fluid": (
        theory.power_of_d_fluid,
        {"load": 2.5, "sample_size": 3, "points": 3, "initial_tasks": 2},
    ),
    "predict_equilibrium": (evenly.predict_equilibrium, {"load": 2.5, "threshold": 4}),
    "predict_diffusion": (
        evenly.predict_diffusion,
        {"load": 2.5, "pools": 20, "horizon": 2.0, "points": 3, "paths": 2, "seed": 5},
    ),
    "predict_settling": (evenly.predict_settling, {"load": 5.5, "alpha": 0.93, "initial_tasks": 9}),
    "predict_stability": (evenly.predict_stability, {"pools": 20, "load": 1.5, "alpha": 0.8}),
    "recommend_alpha": (evenly.recommend_alpha, {"pools": 3, "load_max": 1.5, "seed": 2}),
    "tune, load": (evenly.tune, {"load": 1.5, "alpha": 0.8, "pools": 20, "initial_tasks": 2}),
    "couple_with_jsq": (evenly.couple_with_jsq, {"pools": 4, "load": 1.5, "seed": 2, "events": 9}),
}


def of_numpy(value: object) -> object:
    if isinstance(value, int):
        return INT(value)
    return FLOAT(value) if isinstance(value, float) else value


def written(result: Any) -> str:  # noqa: ANN401
    report = result.to_dict()
    report.pop("seconds", None)
    return json.dumps(report, allow_nan=False)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numpy_numbers_give_the_same_result(name: str) -> None:
    function, given = FUNCTIONS[name]
    plain = function(**given)
    found = function(**{key: of_numpy(value) for key, value in given.items()})
    assert written(found) == written(plain)
    assert found == plain
    assert repr(found) == repr(plain)


def test_a_run_with_numpy_numbers_is_saved(tmp_path: Path) -> None:
    scenario = Scenario(pools=INT(5), load=FLOAT(2.5), alpha=FLOAT(0.9), threshold=INT(1), horizon=FLOAT(20))
    assert scenario == Scenario(pools=5, load=2.5, alpha=0.9, threshold=1, horizon=20.0)
    result = evenly.simulate(scenario, seed=INT(3), replications=INT(2), mean_holding_times=YES)
    result.save(tmp_path / "run.npz")
    assert Result.read(tmp_path / "run.npz") == result
    (run,) = evenly.simulate_sizes(scenario, pools=[INT(4)], seed=INT(3), points=INT(5))
    assert json.loads(json.dumps(run.to_dict()))["seed"] == 3


def test_an_alpha_that_is_not_of_numpy_stays_as_it_was_written() -> None:
    assert evenly.predict_settling(load=5.5, alpha="0.930").alpha == "0.930"
    assert evenly.predict_settling(load=5.5, alpha=Decimal("0.93")).alpha == Decimal("0.93")
