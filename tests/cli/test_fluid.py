"""`evenly fluid`: the contract of its JSON, its text, its picture and its refusals."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from evenly.theory.equilibrium import predict_equilibrium
from evenly.theory.fluid.predict import predict_fluid
from tests.cli.conftest import Run


def test_json_keeps_the_contract(run: Run) -> None:
    outcome = run(
        "fluid", "--load", 5.5, "--threshold", 5, "--initial", 2, "--horizon", 10, "--points", 11, "--json"
    )
    assert (outcome.code, outcome.err) == (0, "")
    found = outcome.json()
    assert found["times"] == pytest.approx(list(range(11)))
    assert len(found["occupancy"]) == len(found["threshold"]) == 11
    assert all(row[0] == 1 for row in found["occupancy"])
    assert set(found["threshold"]) == {5}
    assert found["update_times"] == []
    mass = [sum(row[1:]) for row in found["occupancy"]]
    assert mass == pytest.approx([5.5 - 3.5 * math.exp(-t) for t in range(11)], abs=1e-8)


def test_the_command_line_and_the_library_find_the_same(run: Run) -> None:
    arguments = {"schedule": "0:5.5,3:2.2~1/2", "alpha": "0.90", "initial": 7.5, "horizon": 6.0, "points": 31}
    options = [part for key, value in arguments.items() for part in (f"--{key}", value)]
    found = run("fluid", *options, "--json").json()
    direct = predict_fluid(
        schedule="0:5.5,3:2.2~1/2", alpha="0.90", initial_tasks=7.5, horizon=6.0, points=31
    ).to_dict()
    assert found == direct
    echoed = {**arguments, "load": 5.5, "alpha": 0.9, "first_threshold": 0}
    assert {key: found[key] for key in echoed} == echoed
    assert found["update_times"]


def test_text_tells_the_changes_and_the_end(run: Run) -> None:
    outcome = run("fluid", "--load", 5.5, "--alpha", 0.93, "--initial", 9, "--horizon", 6)
    assert outcome.code == 0
    assert outcome.out.startswith("fluid limit: threshold, alpha 0.93, load 5.5, from 9 tasks per pool\nat time 6")
    assert "5 at the end (optimum 5)" in outcome.out
    assert "9 at 0.0000, 8 at 0.0212, 7 at 0.3131, 6 at 0.8468, 5 at 2.0807" in outcome.out
    assert "5 tasks" in outcome.out


@pytest.mark.parametrize(
    ("options", "title"),
    [
        (("--load", 2.5), "threshold 2, load 2.5, from empty pools"),
        (("--load", 2.5, "--threshold", 1, "--initial", 1), "threshold 1, load 2.5, from 1 task per pool"),
        (("--schedule", "0:2.5,1:3~1/2"), "threshold 2, load 0:2.5,1:3~1/2, from empty pools"),
    ],
)
def test_the_first_line_says_what_was_asked(run: Run, options: tuple[object, ...], title: str) -> None:
    assert run("fluid", *options, "--horizon", 2).out.splitlines()[0] == f"fluid limit: {title}"


def lines_of(svg: str, color: str) -> list[NDArray[np.float64]]:
    """Return the corners of the lines of a colour, in the order drawn."""
    paths = re.findall(rf'<path d="([^"]*)"[^>]*style="fill: none; [^"]*stroke: {color}', svg)
    return [np.array(re.findall(r"[ML] (\S+) (\S+)", path), float) for path in paths]


def test_the_threshold_is_drawn_from_where_it_is_after_changes_at_once(run: Run, tmp_path: Path) -> None:
    picture = tmp_path / "fluid.svg"
    run("fluid", "--load", 5.5, "--alpha", 0.93, "--initial", 9, "--horizon", 6, "--plot", picture)
    steps = lines_of(picture.read_text(), "#009e73")[0]
    heights = np.unique(steps[:, 1])
    np.testing.assert_allclose(np.diff(heights), np.diff(heights)[0], rtol=1e-3)  # 9, 8, 7, 6, 5
    assert heights.size == 5
    assert steps[0, 1] == heights[0]  # on top, where the picture's numbers are small


def test_demand_is_drawn_upright_where_it_jumps(run: Run, tmp_path: Path) -> None:
    picture = tmp_path / "fluid.svg"
    run("fluid", "--schedule", "0:5,3.3:2,99:7", "--horizon", 10, "--points", 6, "--plot", picture)
    corners = lines_of(picture.read_text(), "#222222")[0]
    width = np.ptp(corners[:, 0])
    np.testing.assert_allclose((corners[:, 0] - corners[0, 0]) / width, [0, 0.2, 0.33, 0.33, 0.4, 0.6, 0.8, 1])
    assert (corners[:3, 1] == corners[0, 1]).all()
    assert (corners[3:, 1] == corners[-1, 1]).all()
    assert corners[0, 1] < corners[-1, 1]


def test_a_picture_has_the_title_and_a_name_for_the_largest_band(run: Run, tmp_path: Path) -> None:
    picture = tmp_path / "fluid.svg"
    settled = predict_equilibrium(load=50.5, threshold=5).pools_with_exactly
    assert settled.max() < 0.08  # too small a threshold: many thin bands, none of which has its name for its share
    run("fluid", "--load", 50.5, "--threshold", 5, "--horizon", 40, "--points", 41, "--plot", picture)
    comments = re.findall(r"<!-- (.*?) -->", picture.read_text())
    assert "fluid limit: threshold 5, load 50.5, from empty pools" in comments
    assert comments.count(str(settled.argmax())) == 1  # beside the band; the axis of tasks has multiples of 6
    assert settled.argmax() % 6


def test_a_picture_is_drawn(run: Run, tmp_path: Path) -> None:
    picture = tmp_path / "fluid.png"
    outcome = run("fluid", "--load", 2.5, "--alpha", 0.8, "--plot", picture)
    assert outcome.code == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f"wrote {picture}" in outcome.out


def test_a_scenario_file_serves(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text('pools = 500\nschedule = "0:5.5,20:10"\nalpha = "0.91"\nhorizon = 30\n')
    found = run("fluid", "--scenario", file, "--points", 5, "--json").json()
    assert found["times"][-1] == 30
    assert found["threshold"][-1] == 9


def test_a_file_gives_each_pool_its_own_tasks(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text("pools = 4\nload = 2.5\ninitial = [3, 0, 1, 3]\nhorizon = 2\npoints = 5\n")
    outcome = run("fluid", "--scenario", file, "--json")
    found = outcome.json()
    assert found["points"] == len(found["times"]) == 5
    assert found["occupancy"][0][:5] == pytest.approx([1, 0.75, 0.5, 0.5, 0])
    assert found["total_mass"][0] == pytest.approx(7 / 4)
    assert found["initial"] == [3, 0, 1, 3]
    assert "from pools with 0 to 3 tasks" in run("fluid", "--scenario", file).out


@pytest.mark.parametrize(
    ("initial", "said"),
    [
        ("{a = 1}", "tasks per pool, or a list with the tasks of each pool, not {'a': 1}"),
        ("[1, 2]", "initial_tasks must have 3 numbers, one per pool, not 2"),
        ("[1.0, 0.5, 0.2]", "initial_tasks must be a whole number from 0 to 2999, not 1.0"),
    ],
)
def test_other_starts_are_refused(run: Run, tmp_path: Path, initial: str, said: str) -> None:
    file = tmp_path / "s.toml"
    file.write_text(f"pools = 3\nload = 2.5\ninitial = {initial}\n")
    outcome = run("fluid", "--scenario", file)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert said in outcome.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--load X or --schedule"),
        (["--load", "many"], "--load must be a positive number of at most 100000, not 'many'"),
        (["--load", 5.5, "--points", 1], "points must be a whole number from 2 to"),
        (["--load", 5.5, "--plot", "x.gif"], "must name a file that ends in"),
        (["--load", 5.5, "--schedule", "0:5"], "a load or a schedule"),
    ],
)
def test_bad_input_is_one_sentence(run: Run, arguments: list[object], said: str) -> None:
    outcome = run("fluid", *arguments)
    assert outcome.code == 2
    assert outcome.out == ""
    assert said in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [('policy = "jsq"', "not jsq"), ("service_rate = 2", "service_rate must be 1")],
)
def test_what_has_no_fluid_limit_here_is_refused(run: Run, tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "s.toml"
    file.write_text(f"load = 5.5\n{line}\n")
    outcome = run("fluid", "--scenario", file)
    assert outcome.code == 2
    assert said in outcome.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--seeds", "0"], "--seeds must be at least 1, not 0"),
        (["--sizes", "10", "10"], "two different positive numbers"),
    ],
)
def test_the_example_refuses_what_has_no_slope(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    from examples.fluid_limit import main as example

    with pytest.raises(SystemExit) as stopped:
        example(arguments)
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err
