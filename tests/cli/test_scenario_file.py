"""Scenario files: they do all that options do, and errors in them are clear."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to_file(text: str) -> Path:
        path = tmp_path / "scenario.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return to_file


def flat(found: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested objects as one, with dotted keys."""
    values: dict[str, Any] = {}
    for key, value in found.items():
        values |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return values


def test_a_file_does_all_that_the_options_do(run: Run, write: Write, tmp_path: Path) -> None:
    plot, saved = tmp_path / "a.png", tmp_path / "a.npz"
    path = write(f"""
policy = "threshold"
pools = 40
load = 3.3
threshold = 1
alpha = 0.8
choices = 3
capacity = 9
initial = 2.5
service-rate = 1.5
horizon = 50.0
warmup = 5
replications = 2
seed = 9
batches = 0
steady_state = true
plot = "{plot}"
save = "{saved}"
json = true
""")
    from_file = run("simulate", "--scenario", path)
    assert plot.exists()
    assert saved.exists()
    options = run(
        "simulate", "--policy", "threshold", "--pools", 40, "--load", 3.3, "--threshold", 1, "--alpha", 0.8,
        "--capacity", 9, "--initial", 2.5, "--service-rate", 1.5, "--horizon", 50, "--warmup", 5,
        "--replications", 2, "--seed", 9, "--batches", 0, "--steady-state", "--json",
    )  # fmt: skip
    assert from_file.code == options.code == 0
    found, wanted = flat(from_file.json()), flat(options.json())
    assert found.keys() == wanted.keys()
    for key in wanted.keys() - {"seconds"}:
        # The picture's snapshots split the integrals, which rounds differently.
        exact = wanted[key] is None or isinstance(wanted[key], str)
        near = wanted[key] if exact else pytest.approx(wanted[key], rel=1e-9)
        assert found[key] == near, key


def test_options_win_over_the_file(run: Run, write: Write) -> None:
    path = write('pools = 40\nschedule = "0:3,5:4"\nhorizon = 10\njson = true\n')
    found = run("simulate", "--scenario", path, "--pools", 7, "--load", 2).json()
    assert (found["pools"], found["load"], found["schedule"]) == (7, 2, None)


def test_phases_can_be_tables(run: Run, write: Write) -> None:
    path = write(
        "pools = 20\nhorizon = 10\njson = true\n"
        "[[schedule]]\nstart = 0\nload = 3\n[[schedule]]\nstart = 5\nload = 2\namplitude = 1\nperiod = 4\n"
    )
    assert run("simulate", "--scenario", path).json()["schedule"] == "0:3,5:2~1/4"


def test_each_pool_can_start_with_its_own_tasks(run: Run, write: Write) -> None:
    path = write("pools = 3\nload = 1\ninitial = [0, 4, 2]\nhorizon = 0.000001\njson = true\n")
    assert run("simulate", "--scenario", path).json()["mean_tasks"] == pytest.approx(2, rel=1e-4)


def test_one_file_serves_all_commands(run: Run, write: Write) -> None:
    path = write('pools = 20\nload = 2\nhorizon = 10\npolicy = "jsq"\npolicies = ["jsq", "random"]\njson = true\n')
    assert run("simulate", "--scenario", path).json()["policy"] == "jsq"
    assert [row["policy"] for row in run("compare", "--scenario", path).json()["policies"]] == ["jsq", "random"]
    assert run("fluid", "--scenario", path, "--load", 3).code == 2  # the policy is not threshold
    small = run("exact", "--scenario", path, "--pools", 3).json()
    assert (small["policy"], small["pools"], small["load"]) == ("jsq", 3, 2)


OTHER_SYSTEM = 'service = "lognormal:cv=4"\narrivals = "renewal:cv=2"\ndelay = 0.1\nsticky = 0.0\ncapacity = 9\n'


def test_a_prediction_names_the_keys_that_it_leaves_out(run: Run, write: Write) -> None:
    """One file serves all commands, but a prediction must not pass for that of another system."""
    path = write(f"pools = 3\nload = 2\nhorizon = 3\n{OTHER_SYSTEM}")
    for command, left_out in (
        ("fluid", "capacity, service, arrivals, delay"),
        ("exact", "service, arrivals, delay"),
    ):
        outcome = run(command, "--scenario", path, "--json")
        assert outcome.code == 0 and outcome.json()
        assert outcome.err == f"evenly: the prediction is for a system without {left_out}, which the file has.\n"
    exact = run("exact", "--scenario", write('sizes = "2*1,2*4"\nload = 2\n'))
    assert exact.code == 2
    assert exact.err == (
        "evenly: An exact solution is for pools of one size: give --pools in place of the file's sizes.\n"
    )
    sized = run("fluid", "--scenario", write('sizes = "2*1,2*4"\nload = 2\nhorizon = 3\n'))
    assert sized.code == 0 and "without sizes" in sized.err


def test_rho_is_the_load(run: Run, write: Write) -> None:
    path = write("pools = 3\nrho = 2\nhorizon = 3\njson = true\n")
    assert run("simulate", "--scenario", path).json()["load"] == 2
    for command in (
        ("simulate", "--pools", 3, "--horizon", 3),
        ("fluid", "--horizon", 3),
        ("tune", "--alpha", 0.9),
    ):
        assert run(*command, "--rho", 2.5, "--json").json()["load"] == 2.5
    both = run("simulate", "--scenario", write("pools = 3\nrho = 2\nload = 2\n"))
    assert both.code == 2 and "has the key 'load' twice" in both.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("polls = 5\nload = 1", ["'polls'", "did you mean 'pools'?"]),
        ("pools = 5\nload = 1\nservice_rte = 2", ["'service_rte'", "'service_rate'"]),
        ("[[schedule]]\nstart = 0\nlod = 3", ["'lod'", "'load'"]),
        ("[[schedule]]\nstart = 0", ["no load"]),
        (f"pools = 5\n[[schedule]]\nstart = 0\nload = 1{'0' * 400}", ["load must be a finite number"]),
        ("pools = 5\nload = 1\nservice-rate = 1\nservice_rate = 2", ["'service_rate' twice"]),
        (
            'pools = 5\nload = 1\npolicy = "power-of-d"\nchoices = "abc"',
            ["sample_size must be a whole number", "abc"],
        ),
        ("pools = 5\nschedule = [3]", ["each phase", "3"]),
        ('pools = "many"\nload = 1', ["pools must be a whole number", "many"]),
        ("pools = 5\nload = 1\njson = 1", ["json must be true or false", "1"]),
        ("pools = 5\nload = 1\nplot = 3", ["plot must name a file", "3"]),
        ("pools = 5\nload = 1\npolicies = [1]", ["policies must be names", "[1]"]),
        ("pools = 5\nload = 1\ninitial = [1, 2]", ["initial_tasks must have 5 numbers", "not 2"]),
        ("pools = = 5", ["is not a TOML file"]),
        ("pools = " + "[" * 10_000, ["is not a TOML file", "nested"]),
        ("pools = " + "9" * 5000, ["is not a TOML file", "thousands of digits"]),
        (".".join("a" * 20_000) + " = 1", ["has a key with more than 1000 dots"]),
        ("pools = 5\nload = 1979-05-27", ["load must be a positive number", "not datetime.date"]),
        ("pools = 5\nload = 1\npolicy = 3", ["policy must be one of", "not 3"]),
        ("pools = 5\nschedule = 3", ["A schedule is a text", "not [3]"]),
        (f"{'k' * 10**5} = 1", ["there is no key", "..."]),
    ],
)
def test_an_invalid_file_is_named_in_one_sentence(run: Run, write: Write, text: str, words: list[str]) -> None:
    outcome = run("simulate", "--scenario", write(text))
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.count("\n") == 1
    for word in words:
        assert word in outcome.err


def test_a_file_that_cannot_be_read_is_named(run: Run, tmp_path: Path) -> None:
    missing = run("simulate", "--scenario", tmp_path / "none.toml")
    folder = run("simulate", "--scenario", tmp_path)
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    garbage = run("simulate", "--scenario", binary)
    for outcome in (missing, folder, garbage):
        assert outcome.code == 2
        assert outcome.err.count("\n") == 1
    assert "none.toml" in missing.err
