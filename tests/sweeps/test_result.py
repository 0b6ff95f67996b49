"""Results of sweeps: frames, xarray, pictures, JSON, progress, estimates."""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenly import SweepResult, predict_equilibrium
from evenly.errors import InputError
from evenly.sweeps.estimate import estimate
from evenly.sweeps.picture import read_picture
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
    return SweepResult.read(path)


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
    assert result == SweepResult.read(result.folder)
    assert hash(result) == hash(SweepResult.read(result.folder))
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
    data = SweepResult.read(tmp_path).to_xarray()
    assert dict(data.sizes) == {"load": 2, "pools": 2} or dict(data.sizes) == {"alpha": 2, "pools": 2}
    assert {"alpha", "load"} <= set(data.coords)
    axes = SweepResult.read(tmp_path).plot(x="load", y="pools", value="spread")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("load", "pools")


def test_missing_points_are_nan(tmp_path: Path) -> None:
    run_inline(tmp_path, small_plan(load="1.5"))
    from evenly.sweeps.folder import Folder

    Folder(tmp_path, small_plan()).close()  # a sweep that was killed at its start
    data = SweepResult.read(tmp_path).to_xarray()
    assert np.isnan(data["spread"].sel(load=2.5)).all()
    assert not np.isnan(data["spread"].sel(load=1.5)).any()
    assert SweepResult.read(tmp_path).plot() is not None


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
    figure = result.plot_panels(**picture)  # type: ignore[arg-type]
    assert len([axes for axes in figure.axes if axes.get_title(loc="left")]) == panels


def test_a_map_shows_the_mean_over_seeds(result: SweepResult) -> None:
    axes = result.plot_panels(x="alpha", y="load", value="spread", facet="policy").axes[0]
    expected = result.to_xarray()["spread"].mean("seed").sel(policy="threshold").transpose("load", "alpha")
    mesh = axes.collections[0]
    assert np.allclose(np.asarray(mesh.get_array()).ravel(), expected.to_numpy().ravel())
    assert [text.get_text() for text in axes.texts] == [f"{value:.3g}" for value in expected.to_numpy().ravel()]
    assert ticks(axes.xaxis) == ["0.7", "0.8", "0.9"] and ticks(axes.yaxis) == ["1.5", "2.5"]


def ticks(axis: Any) -> list[str]:  # noqa: ANN401  (Matplotlib's Axis)
    return [label.get_text() for label in axis.get_ticklabels()]


def test_one_axis_gives_a_line_with_error_bars(tmp_path: Path) -> None:
    run_inline(tmp_path, small_plan(alpha="0.9", replications=3, values="spread"))
    found = SweepResult.read(tmp_path)
    axes = found.plot()
    rows = found.to_polars()
    assert (axes.get_xlabel(), axes.get_ylabel(), ticks(axes.xaxis)) == ("load", "spread", ["1.5", "2.5"])
    [line] = axes.containers
    [bars] = line[2]
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    assert ends.mean(axis=1) == pytest.approx(rows["spread"].to_numpy())
    assert np.diff(ends)[:, 0] / 2 == pytest.approx(rows["spread_ci95"].to_numpy())
    legend = axes.get_legend()
    assert legend is not None and [text.get_text() for text in legend.get_texts()] == ["fluid limit"]


def test_x_alone_gives_a_line_per_value_of_the_next_option(result: SweepResult) -> None:
    """Names come last: the policies are panels here, and lines where nothing else is left."""
    for axes, policy in zip(result.plot_panels(x="alpha").axes, ("threshold", "jsq"), strict=True):
        assert axes.get_title(loc="left") == f"spread, policy {policy}"
        assert [line.get_label() for line in axes.containers] == ["load 1.5", "load 2.5"]
    axes = result.plot_panels(x="alpha", facet="load").axes[1]
    assert [line.get_label() for line in axes.containers] == ["threshold", "jsq"]
    widths = result.to_xarray()["spread_ci95"].sel(load=2.5, policy="jsq", alpha=0.7)
    [bars] = axes.containers[1][2]
    mean_of_two = math.hypot(*widths.to_numpy()) / 2
    assert np.diff(bars.get_segments()[0][:, 1])[0] / 2 == pytest.approx(mean_of_two)  # over the seeds


@pytest.mark.parametrize(
    ("horizon", "load", "contours"),
    [(400, "1.6:2.4:0.2", True), (400, "1.6:2.2:0.2", False), (60, "2:2.0008:0.0002", False)],
)
def test_contours_need_a_fine_grid_and_more_than_noise(
    tmp_path: Path, horizon: int, load: str, contours: bool
) -> None:
    """Elsewhere the map has numbers."""
    run_inline(
        tmp_path,
        small_plan(
            policy="jsq", alpha=None, pools="5:9:1", load=load, horizon=horizon, warmup=10, values="mean_tasks"
        ),
    )
    axes = SweepResult.read(tmp_path).plot(x="pools", y="load")
    legend = axes.get_legend()
    assert (legend is not None) == contours
    assert bool(axes.texts) == (not contours)
    mesh = axes.collections[0]
    low, high = mesh.get_clim()
    spread = np.ptp(np.asarray(mesh.get_array()))
    assert (high - low > 1.001 * spread) == (horizon == 60)  # noise looks plain


def test_a_prediction_that_the_grid_does_not_resolve_has_no_contours(tmp_path: Path) -> None:
    """The spread of JSQ is 0.5 at half-whole loads and 0 at whole ones; that of random routing grows."""
    for policy, contours in (("jsq", False), ("random", True)):
        folder = tmp_path / policy
        loads = {"pools": "5:9:1", "load": "1.5:9.5:0.25", "horizon": 200, "warmup": 10}
        run_inline(folder, small_plan(policy=policy, alpha=None, values="spread", **loads))
        assert (SweepResult.read(folder).plot(x="pools", y="load").get_legend() is not None) == contours


def test_ticks_are_swept_values_also_where_there_is_no_room_for_all(tmp_path: Path) -> None:
    run_inline(tmp_path, small_plan(policy="jsq", alpha=None, pools="4..300/40", load="1.5", horizon=2))
    axes = SweepResult.read(tmp_path).plot()
    shown = [float(text) for text in ticks(axes.xaxis)]
    assert axes.get_xscale() == "log" and 5 < len(shown) < 15
    assert {*shown} <= {float(value) for value in SweepResult.read(tmp_path).axes["pools"]}
    assert list(axes.get_xticks()) == shown and not len(axes.get_xticks(minor=True))


def test_plot_draws_on_the_axes_given_and_one_panel_only(result: SweepResult) -> None:
    from matplotlib.figure import Figure

    ours = Figure().add_subplot()
    with pytest.raises(InputError, match="plot draws one panel, and these are 2: use plot_panels"):
        result.plot(x="alpha", y="load", ax=ours)
    figure = Figure()
    assert result.plot_panels(x="alpha", figure=figure) is figure


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
        result.plot_panels(**picture)
    assert message in str(refusal.value)


def test_a_fourth_axis_is_refused(result: SweepResult) -> None:
    manifest = result.manifest
    manifest["options"]["pools"] = [5, 6]
    with pytest.raises(InputError, match="at most three axes, x, y and facet: give pools one value only"):
        read_picture(manifest, value=None, x="load", y="alpha", facet="policy")


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
    events = int(SweepResult.read(tmp_path).rows()["events"].sum())
    assert found.events == pytest.approx(events, rel=0.2)  # 3,000 events each: five deviations are below 10 %
    assert found.points == found.missing == 6
    assert 0 < found.seconds < math.inf
    assert re.search(r"6 points, 6 of them to run: about [\d,]+ events, ", found.text())
    assert set(found.to_dict()) == {"points", "missing", "events", "minutes", "megabytes", "workers"}
