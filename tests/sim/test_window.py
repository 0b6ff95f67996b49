"""The window of the threshold policy against the plain kernel, and runs that leave out records: bit for bit."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.cpp import compiled
from bench.records import SOURCE, run_lean
from evenly.sim import Scenario
from evenly.sim.kernels import aggregate, window
from evenly.sim.kernels.rng import BUFFER
from evenly.sim.records import ALL, Records
from evenly.sim.replication import replicate
from evenly.sim.run import plan_for
from evenly.sim.simulation import Simulation
from evenly.sweeps.planning import make_plan
from evenly.sweeps.point import Plan, prepare, run_point
from evenly.sweeps.values import VALUES, columns
from evenly.theory.exact import solve_exact
from tests.needs import needs

SYSTEMS: dict[str, dict[str, Any]] = {
    "the paper's": {"pools": 500, "load": 10.5, "alpha": "0.97", "horizon": 30.0},
    "a high threshold": {"pools": 200, "load": 10.5, "alpha": "0.3", "horizon": 40.0},
    "few pools": {"pools": 7, "load": 3.2, "alpha": "0.8", "horizon": 2000.0},
    "one pool": {"pools": 1, "load": 1.5, "alpha": "0.5", "horizon": 3000.0},
    "a whole load": {"pools": 60, "load": 4.0, "alpha": "0.9", "horizon": 300.0, "service_rate": 0.37},
    "a fixed threshold": {"pools": 80, "load": 5.6, "threshold": 5, "horizon": 200.0},
    "a capacity": {"pools": 30, "load": 4.4, "alpha": "0.9", "capacity": 5, "horizon": 200.0},
    "steps": {"pools": 90, "schedule": "0:5.5,20:9.25,40:2.75", "alpha": "0.9", "horizon": 90.0},
    "a billion pools": {"pools": 10**9, "load": 2.5, "alpha": "0.9", "initial_tasks": 2.5, "horizon": 1e-5},
}


def stepped_through(scenario: Scenario, *, mean_holding: bool = False, records: Records = ALL) -> Simulation:
    """Run with stops at odd times and after odd numbers of events."""
    simulation = Simulation(scenario, np.random.SeedSequence(5), mean_holding=mean_holding, records=records)
    for number, until in enumerate(np.linspace(0, scenario.horizon, 12)[1:]):
        simulation.advance(float(until), max_events=37 * number)
        simulation.advance(float(until))
    return simulation


def books(simulation: Simulation) -> dict[str, Any]:
    """Return all that the kernels write; used random numbers are replaced sooner or later."""
    state = {name: simulation.state[name].item() for name in simulation.state.dtype.names}
    state["choice_position"] %= BUFFER
    book = simulation._system.book._asdict()
    return state | {name: array.tobytes() for name, array in book.items()}


def without_window(*arguments: Any) -> None:  # noqa: ANN401
    *arrays, _log, until, budget = arguments
    rules, state, book, streams, ranks = arrays
    aggregate.advance(rules, state, book, streams, ranks, until, budget)


@pytest.mark.parametrize(
    ("name", "mean_holding"),
    [*((name, False) for name in SYSTEMS), ("the paper's", True), ("few pools", True), ("a capacity", True)],
)
def test_the_window_writes_the_same_bits(name: str, mean_holding: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = Scenario(**SYSTEMS[name])
    quick = books(stepped_through(scenario, mean_holding=mean_holding))
    monkeypatch.setattr(window, "advance", without_window)
    assert quick == books(stepped_through(scenario, mean_holding=mean_holding))
    assert quick["events"] > 5000


@pytest.mark.parametrize(
    ("policy", "records"),
    [
        *(("threshold", part) for part in (Records(0), *Records)),
        ("jsq", Records(0)),
        ("jsq", ALL & ~Records.SPREAD),
    ],
)
def test_a_run_that_leaves_out_records_keeps_all_other_bits(policy: str, records: Records) -> None:
    options: dict[str, Any] = {"alpha": "0.9"} if policy == "threshold" else {}
    scenario = Scenario(policy=policy, pools=100, load=5.5, horizon=60.0, **options)
    whole, part = stepped_through(scenario).tally(), stepped_through(scenario, records=records).tally()
    kept = {"spread": Records.SPREAD, "gap": Records.IMBALANCE, "at_least": Records.LEVELS}
    for field, value in vars(whole).items():
        if field in kept and kept[field] not in records:
            assert np.isnan(getattr(part, field)).all()
        else:
            assert np.array_equal(getattr(part, field), value), field


GRID = {"pools": [50, 100], "load": 5.5, "alpha": 0.9, "horizon": 60, "replications": 3}


def row_of(plan: Plan, index: int) -> dict[str, Any]:
    row = run_point(plan, index)
    assert row.error is None
    return dict(zip(columns(plan.values), row.values, strict=True))


def test_a_sweep_records_only_what_its_values_need() -> None:
    whole = make_plan(GRID, values=list(VALUES))
    everything = row_of(whole, 1)
    assert prepare(whole, whole.grid.values(1), 1)[1].records == ALL
    for name, value in VALUES.items():
        plan = make_plan(GRID, values=name)
        assert prepare(plan, plan.grid.values(1), 1)[1].records == value.needs
        row = row_of(plan, 1)
        assert row == {column: everything[column] for column in row}, name


def test_a_sweep_records_what_its_goal_needs() -> None:
    plan = make_plan(GRID, values="max_tasks", until="spread < 10%")
    assert prepare(plan, plan.grid.values(0), 1)[1].records == Records.SPREAD
    assert row_of(plan, 0)["max_tasks"] is not None


def test_a_value_that_is_not_recorded_is_no_number() -> None:
    scenario = Scenario(pools=20, load=2.5, alpha="0.9", horizon=30.0)
    plan = replace(plan_for(scenario, 1, 1, 0, False), records=Records(0))
    tally = replicate(scenario, plan, 0, lambda _: None).windows[0]
    assert math.isnan(tally.spread) and math.isnan(tally.gap) and np.isnan(tally.at_least).all()
    assert tally.threshold_time.sum() == pytest.approx(30.0)


def test_the_lean_chain_of_the_benchmark_has_the_exact_law(tmp_path: Path) -> None:
    needs("g++")
    program = compiled(SOURCE, tmp_path)
    assert program is not None
    share = run_lean(program, 2.0, 20_000_000, 3, pools=5, alpha="0.6")["threshold_time"]
    exact = solve_exact(pools=5, load=2.0, alpha="0.6").threshold_share
    # A million mean task times; the threshold forgets within a few. Six deviations are below 0.006.
    for level, expected in exact.items():
        assert share.get(str(level), 0.0) == pytest.approx(expected, abs=0.006), json.dumps(share)
