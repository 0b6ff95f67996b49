"""Options that a policy does not take are rejected; in a file, which serves several policies, they are ignored."""

from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("simulate", "--policy", "jsq", "--alpha", 0.9),
            "alpha is for policy threshold or threshold-utility, not jsq",
        ),
        (
            ("simulate", "--policy", "jsq", "--threshold", 3),
            "threshold is for policy threshold or jbt or threshold-utility, not jsq",
        ),
        (("simulate", "--choices", 3), "--sample-size is for policy power-of-d, not threshold"),
        (
            ("compare", "--policies", "jsq,random", "--alpha", 0.9),
            "alpha is for policy threshold or threshold-utility, not jsq or random",
        ),
        (("exact", "--policy", "jsq", "--alpha", 0.9), "alpha is for policy threshold, not jsq"),
        (("equilibrium", "--policy", "jsq", "--threshold", 3), "threshold is for policy threshold, not jsq"),
    ],
)
def test_a_parameter_that_the_policy_does_not_take_is_rejected(
    run: Run, words: tuple[object, ...], sentence: str
) -> None:
    pools = () if words[0] == "equilibrium" else ("--pools", 3)
    outcome = run(*words, *pools, "--load", 1.5)
    assert (outcome.code, outcome.out) == (2, "")
    assert sentence in outcome.err


def test_a_file_may_hold_parameters_of_several_policies(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "system.toml"
    file.write_text("pools = 3\nload = 1.5\nalpha = 0.7\nchoices = 3\nhorizon = 5\n")
    assert run("simulate", "--scenario", file, "--policy", "jsq", "--json").json()["alpha"] is None
    compared = run("compare", "--scenario", file, "--policies", "power-of-d,threshold", "--json").json()
    assert [result["alpha"] for result in compared["policies"]] == [None, 0.7]
    assert compared["policies"][0]["messages"]["per_task"] == 6  # three pools asked, three answers
