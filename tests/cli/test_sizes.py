"""Pools of different sizes on the command line."""

from pathlib import Path

import pytest

from tests.cli.conftest import Run


def test_simulate_prints_the_utility_and_its_bound(run: Run) -> None:
    outcome = run(
        "simulate", "--sizes", "80*1,20*4", "--load", 5.5, "--policy", "threshold-utility", "--alpha", 0.85,
        "--warmup", 20,
    )  # fmt: skip
    assert outcome.code == 0
    assert "100 pools (80*1,20*4), load 5.5" in outcome.out
    assert "(at most -6.8192 in the long run)" in outcome.out
    assert "tasks at size 4" in outcome.out


def test_json_has_sizes_and_utility(run: Run) -> None:
    found = run(
        "simulate", "--sizes", "8*1,2*4", "--utility", "rate", "--load", 2, "--horizon", 9, "--json"
    ).json()
    assert (found["pools"], found["sizes"], found["utility"]["name"]) == (10, "8*1,2*4", "rate")
    assert len(found["class_tasks"]) == 2
    plain = run("simulate", "--pools", 3, "--load", 2, "--horizon", 9, "--json").json()
    assert plain["sizes"] is plain["utility"] is plain["class_tasks"] is None


def test_compare_chooses_policies_for_sizes(run: Run) -> None:
    outcome = run("compare", "--sizes", "40*1,10*4", "--load", 3, "--alpha", 0.8, "--horizon", 20)
    assert outcome.code == 0
    for policy in ("weighted-round-robin", "weighted-least", "greedy-utility", "threshold-utility"):
        assert policy in outcome.out
    assert "power-of-d" not in outcome.out


@pytest.mark.parametrize("sizes", ['"8*1,2*4"', "[[8, 1], [2, 4.0]]"])
def test_a_scenario_file_has_sizes(run: Run, tmp_path: Path, sizes: str) -> None:
    file = tmp_path / "sized.toml"
    file.write_text(f'policy = "greedy-utility"\nload = 2\nhorizon = 9\nsizes = {sizes}\n', encoding="utf-8")
    assert run("simulate", "--scenario", file, "--json").json()["sizes"] == "8*1,2*4"
    over = run("simulate", "--scenario", file, "--sizes", "3*2", "--json").json()
    assert (over["pools"], over["sizes"]) == (3, "3*2")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--sizes", "8*-1"), "The size of a pool must be a number from 0.001 to 1000, not -1"),
        (("--sizes", "8*1", "--pools", 5), "--pools must be 8, as many as sizes has, or left out, not 5."),
        (("--sizes", "8*1", "--capacity", 5), "Pools with sizes take no capacity."),
        (("--sizes", "8*1", "--utility", "best"), "utility must be one of log, sqrt, rate, not 'best'"),
    ],
)
def test_bad_sizes_are_one_sentence(run: Run, words: tuple[object, ...], sentence: str) -> None:
    outcome = run("simulate", *words, "--load", 2)
    assert (outcome.code, outcome.out) == (2, "")
    assert sentence in outcome.err
    assert outcome.err.count("\n") == 1
