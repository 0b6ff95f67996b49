"""Results of sweeps: frames, xarray, pictures, JSON, progress, estimates."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenly import SweepResult, predict_equilibrium
from evenly.errors import InputError
from evenly.sweeps.estimate import estimate
from evenly.sweeps.picture import check_picture
from evenly.sweeps.predictions import fluid_value
from evenly.sweeps.progress import Pace, Status
from tests.sweeps.support import run_inline, small_plan


@pytest.fixture(scope="module", autouse=True)
def without_a_window() -> None:
    import matplotlib as mpl

    mpl.use("agg")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> SweepResult:
    path = tmp_path_factory.mktemp("result")
    plan = small_plan(
        policy="threshold,jsq", seed="1,2", values="spread,max_tasks,threshold_share", replications=2
    )
    run_inline(path, plan)
    return SweepResult.load(path)


def test_frames_have_one_row_per_point_in_the_order_of_the_grid(result: SweepResult) -> None:
    pandas, polars = result.to_pandas(), result.to_polars()
    assert len(pandas) == len(polars) == 2 * (3 + 1) * 2
    assert pandas["load"].tolist() == polars["load"].to_list()
    found = list(zip(polars["policy"], polars["load"], polars["alpha"], polars["seed"], strict=True))
    assert found[:3] == [("threshold", 1.5, 0.7, 1), ("threshold", 1.5, 0.7, 2), ("threshold", 1.5, 0.8, 1)]
    assert found[-1] == ("jsq", 2.5, None, 2)


def test_the_representation_has_the_numbers_that_matter(result: SweepResult) -> None:
    assert "2 policy x 2 load x 3 alpha x 2 seed: 16 of 16 points" in repr(result)
    assert "<caption>" in result._repr_html_()
    assert result == SweepResult.load(result.folder)
    assert hash(result) == hash(SweepResult.load(result.folder))
    summary = result.to_dict()
    assert json.loads(json.dumps(summary)) == summary
    assert (summary["points"], summary["rows"], summary["failed"], summary["reused"]) == (16, 16, 0, None)


def test_xarray_has_a_dimension_per_axis(result: SweepResult) -> None:
    data = result.to_xarray()
    assert dict(data.sizes) == {"policy": 2, "load": 2, "alpha": 3, "seed": 2}
    assert set(data.data_vars) == {"spread", "spread_ci95", "max_tasks", "max_tasks_ci95"}
    rows = result.to_polars()
    for row in rows.iter_rows(named=True):
        place = {"policy": row["policy"], "load": row["load"], "seed": row["seed"]}
        here = data["spread"].sel(place if row["alpha"] is None else {**place, "alpha": row["alpha"]})
        assert np.all(here == row["spread"])  # under jsq, for every alpha
    assert not np.isnan(data["spread"]).any()


def test_zipped_options_share_a_dimension(tmp_path: Path) -> None:
    plan = small_plan(alpha="0.7,0.8", load="1.5,2.5", zipped="alpha,load", pools="4,5")
    run_inline(tmp_path, plan)
    data = SweepResult.load(tmp_path).to_xarray()
    assert dict(data.sizes) == {"load": 2, "pools": 2} or dict(data.sizes) == {"alpha": 2, "pools": 2}
    assert {"alpha", "load"} <= set(data.coords)
    figure = SweepResult.load(tmp_path).plot(x="load", y="pools", value="spread")
    assert figure.axes[0].get_xlabel() == "load"


def test_missing_points_are_nan(tmp_path: Path) -> None:
    run_inline(tmp_path, small_plan(load="1.5"))
    from evenly.sweeps.folder import Folder

    Folder(tmp_path, small_plan()).close()  # a sweep that was killed at its start
    data = SweepResult.load(tmp_path).to_xarray()
    assert np.isnan(data["spread"].sel(load=2.5)).all()
    assert not np.isnan(data["spread"].sel(load=1.5)).any()
    assert SweepResult.load(tmp_path).plot() is not None


@pytest.mark.parametrize(
    ("picture", "panels"),
    [
        ({"x": "alpha", "y": "load", "value": "spread", "facet": "policy"}, 2),
        ({"value": "spread,max_tasks"}, 4),
        ({"x": "load"}, 2),
    ],
)
def test_pictures_have_a_panel_per_value_and_facet(
    result: SweepResult, picture: dict[str, str], panels: int
) -> None:
    figure = result.plot(**picture)  # type: ignore[arg-type]
    assert len([axes for axes in figure.axes if axes.get_title(loc="left")]) == panels


def test_a_map_shows_the_mean_over_seeds(result: SweepResult) -> None:
    figure = result.plot(x="alpha", y="load", value="spread", facet="policy")
    mesh = figure.axes[0].collections[0]
    expected = result.to_xarray()["spread"].mean("seed").sel(policy="threshold").transpose("load", "alpha")
    assert np.allclose(np.asarray(mesh.get_array()).ravel(), expected.to_numpy().ravel())


def test_one_axis_gives_lines(tmp_path: Path) -> None:
    run_inline(tmp_path, small_plan(alpha="0.9", replications=3))
    figure = SweepResult.load(tmp_path).plot()
    (axes,) = figure.axes
    assert axes.get_xlabel() == "load"
    assert [line.get_label() for line in axes.lines][-1] == "fluid limit"


@pytest.mark.parametrize(
    ("picture", "message"),
    [
        ({"value": "imbalance"}, "The sweep does not record imbalance: add it to values."),
        ({"value": "threshold_share"}, "threshold_share is a list at each point"),
        ({"x": "pools"}, "x must be an option with several values (policy, load, alpha, seed), not 'pools'."),
        ({"x": "load", "y": "load"}, "x, y and facet must be different options."),
        ({"value": "spred"}, "did you mean 'spread'"),
    ],
)
def test_a_picture_that_cannot_be_drawn_is_refused(
    result: SweepResult, picture: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as refusal:
        result.plot(**picture)
    assert message in str(refusal.value)


def test_a_fourth_axis_is_refused(result: SweepResult) -> None:
    manifest = result.manifest
    manifest["options"]["pools"] = [5, 6]
    with pytest.raises(InputError, match="at most three axes, x, y and facet: give pools one value only"):
        check_picture(manifest, value=None, x="load", y="alpha", facet="policy")


@pytest.mark.parametrize(
    ("value", "options", "expected"),
    [
        ("spread", {"policy": "jsq", "load": 2.5}, 0.5),
        ("spread", {"policy": "threshold", "load": 2.5, "alpha": 0.9}, 0.5),
        ("spread", {"policy": "random", "load": 4.0}, 2.0),
        ("max_tasks", {"policy": "jsq", "load": 2.5}, 3.0),
        ("mean_threshold", {"policy": "threshold", "load": 2.5, "alpha": 0.9}, 2.0),
        ("spread", {"policy": "threshold", "load": 2.5, "alpha": 0.5}, None),  # Cor. 2 does not apply
        ("spread", {"policy": "jsq", "load": 2.5, "delay": 0.1}, None),
        ("spread", {"policy": "jsq", "load": 2.5, "capacity": 3}, None),
        ("spread", {"policy": "round-robin", "load": 2.5}, None),
        ("imbalance", {"policy": "jsq", "load": 2.5}, None),
    ],
)
def test_the_fluid_limit_is_predicted_where_it_is_known(
    value: str, options: dict[str, Any], expected: float | None
) -> None:
    found = fluid_value(value, options)
    assert found == (expected if expected is None else pytest.approx(expected, abs=1e-9))


def test_a_fixed_threshold_has_its_own_prediction() -> None:
    found = fluid_value("spread", {"policy": "threshold", "load": 2.5, "threshold": 4})
    assert found == predict_equilibrium(load=2.5, threshold=4).spread


def test_the_time_left_follows_the_later_half() -> None:
    """Ten seconds to start, then a point per second, then two."""
    times = iter([10.0, 11.0, 20.0, 30.0, 31.0])
    pace = Pace(lambda: next(times))
    assert pace.seconds_left(1, 100) is None
    assert pace.seconds_left(2, 99) == pytest.approx(99)
    assert pace.seconds_left(11, 90) == pytest.approx(90)
    assert pace.seconds_left(31, 70) == pytest.approx(35)
    assert pace.seconds_left(33, 68) == pytest.approx(34)


def test_nothing_is_estimated_before_the_first_point() -> None:
    assert Pace().seconds_left(0, 100) is None
    assert Status(0, 0, 0, 0, None).fraction == 1.0


def test_an_estimate_is_near_what_happens(tmp_path: Path) -> None:
    plan = small_plan(replications=3, horizon=50)
    found = estimate(plan, len(plan.grid), 2)
    run_inline(tmp_path, plan)
    events = int(SweepResult.load(tmp_path).rows()["events"].sum())
    assert found.events == pytest.approx(events, rel=0.2)  # 3,000 events each: five deviations are below 10 %
    assert found.points == found.missing == 6
    assert 0 < found.seconds < math.inf
    assert "6 points, 6 of them to run: about" in found.text()
    assert set(found.to_dict()) == {"points", "missing", "events", "minutes", "megabytes", "workers"}
