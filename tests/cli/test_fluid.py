"""`evenly fluid`: the contract of its JSON, its text, its picture and its refusals."""

import math
from pathlib import Path

import pytest

from evenly.theory.fluid import fluid
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
    direct = fluid(schedule="0:5.5,3:2.2~1/2", alpha="0.90", initial=7.5, horizon=6.0, points=31).to_dict()
    assert found == direct
    assert found["update_times"]


def test_text_tells_the_changes_and_the_end(run: Run) -> None:
    outcome = run("fluid", "--load", 5.5, "--alpha", 0.93, "--initial", 9, "--horizon", 6)
    assert outcome.code == 0
    assert "5 at the end (optimum 5)" in outcome.out
    assert "9 at 0.0000, 8 at 0.0212, 7 at 0.3131, 6 at 0.8468, 5 at 2.0807" in outcome.out
    assert "5 tasks" in outcome.out


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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--load X or --schedule"),
        (["--load", 5.5, "--alpha", 1], "alpha must lie strictly between 0 and 1, not 1"),
        (["--load", 5.5, "--threshold", -2], "threshold must lie between 0 and"),
        (["--load", "many"], "'many' is not a number"),
        (["--load", 5.5, "--points", 1], "points must lie between 2 and"),
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
    [('policy = "jsq"', "not jsq"), ("service_rate = 2", "service_rate must be 1"), ("capacity = 9", "capacity")],
)
def test_what_has_no_fluid_limit_here_is_refused(run: Run, tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "s.toml"
    file.write_text(f"load = 5.5\n{line}\n")
    outcome = run("fluid", "--scenario", file)
    assert outcome.code == 2
    assert said in outcome.err
