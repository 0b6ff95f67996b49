"""Values by name, and goals for their accuracy."""

import math
from pathlib import Path

import numpy as np
import pytest

from evenly import Scenario, simulate
from evenly.errors import InputError
from evenly.sweeps import values
from evenly.sweeps.goal import MAX_REPLICATIONS, Goal, read_goal
from tests.sweeps.support import rows_of, run_inline, small_plan


@pytest.fixture(scope="module")
def plan_rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    path = tmp_path_factory.mktemp("values") / "out"
    run_inline(path, small_plan(load="2.5", policy="threshold,jsq", values=list(values.VALUES), replications=3))
    return rows_of(path)


def test_values_are_those_of_simulate(plan_rows: list[dict[str, object]]) -> None:
    row = next(row for row in plan_rows if row["alpha"] == 0.8)
    result = simulate(
        Scenario(pools=5, load=2.5, alpha="0.8", horizon=5), replications=3, seed=int(str(row["point_seed"]))
    )
    widths = result.half_widths()
    for name, value in result.scalars().items():
        column = "mean_threshold" if name == "threshold" else name
        assert row[column] == value
        expected = widths[name]
        assert row[f"{column}_ci95"] == (None if math.isnan(expected) else expected)
    assert row["change_rate"] == result.change_rate
    assert row["pools_with_exactly"] == result.pools_with_exactly.tolist()
    share = result.threshold_share
    assert row["threshold_share"] == [share.get(level, 0.0) for level in range(max(share) + 1)]
    assert (row["events"], row["replications"], row["error"]) == (result.events, 3, None)


def test_values_that_a_policy_does_not_have_are_null(plan_rows: list[dict[str, object]]) -> None:
    row = next(row for row in plan_rows if row["policy"] == "jsq")
    assert row["mean_threshold"] is row["mean_threshold_ci95"] is row["change_rate"] is row["alpha"] is None
    assert row["mean_utility"] is None
    assert row["threshold_share"] == []


def test_the_diffusion_gap_is_relative_to_half_a_normal_law(plan_rows: list[dict[str, object]]) -> None:
    for row in plan_rows:
        predicted = math.sqrt(2 / math.pi * 2.5 / 5)
        assert row["diffusion_gap"] == pytest.approx(abs(float(str(row["imbalance"])) / predicted - 1))


@pytest.mark.parametrize(
    ("written", "found"),
    [("spread", ("spread",)), ("spread,threshold", ("spread", "mean_threshold")), (["max-tasks"], ("max_tasks",))],
)
def test_values_are_found_by_name(written: object, found: tuple[str, ...]) -> None:
    assert values.read_values(written) == found
    assert values.read_values(None) == values.DEFAULT


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("spraed", "There is no value 'spraed'; did you mean 'spread'?"),
        ("", "There is no value ''"),
        ([], "values must be names separated by commas"),
        ([3], "values must be names separated by commas"),
    ],
)
def test_an_unknown_value_is_refused(written: object, message: str) -> None:
    with pytest.raises(InputError) as refusal:
        values.read_values(written)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("written", "goal"),
    [
        ("spread < 0.005", Goal("spread", 0.005, relative=False)),
        ("spread<1%", Goal("spread", 0.01, relative=True)),
        ("threshold < 2e-3", Goal("mean_threshold", 0.002, relative=False)),
        (None, None),
    ],
)
def test_goals_are_read(written: str | None, goal: Goal | None) -> None:
    assert read_goal(written) == goal
    if goal:
        assert read_goal(str(goal)) == goal


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("spread > 1", "until must be written like"),
        (3, "until must be written like"),
        ("spraed < 1", "did you mean 'spread'"),
        ("change_rate < 1", "until must name a value with an interval"),
        ("spread < 0", "until must have a positive limit"),
    ],
)
def test_a_goal_that_makes_no_sense_is_refused(written: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_goal(written)


def test_replications_are_added_until_the_goal_is_reached(tmp_path: Path) -> None:
    """The replications that a point had before count: the result is that of simulating all of them at once."""
    run_inline(tmp_path / "out", small_plan(alpha="0.8", horizon=20, until="spread < 0.02", values="spread"))
    rows = rows_of(tmp_path / "out")
    assert len(rows) == 2
    for row in rows:
        assert 0 < row["spread_ci95"] < 0.02
        assert 4 < row["replications"] < MAX_REPLICATIONS
        scenario = Scenario(pools=5, load=row["load"], alpha="0.8", horizon=20)
        whole = simulate(scenario, replications=row["replications"], seed=row["point_seed"])
        assert row["spread"] == pytest.approx(whole.spread, rel=1e-12)
        assert row["events"] == whole.events
        half = simulate(scenario, replications=row["replications"] // 2 - 1, seed=row["point_seed"])
        assert half.half_widths()["spread"] > 0.02  # no more were run than needed, twice over


def test_a_goal_that_is_out_of_reach_ends() -> None:
    result = simulate(Scenario(pools=5, load=1.5, horizon=5), replications=4)
    assert Goal("spread", 1e-9, relative=False).next_replications(result) == 8
    assert Goal("mean_utility", 1e-9, relative=False).next_replications(result) == 4  # there is no such value
    assert Goal("spread", 1e9, relative=False).next_replications(result) == 4
    assert np.isfinite(Goal("spread", 0.5, relative=True).excess(result))
