"""Service laws and arrivals on the command line and in scenario files."""

from pathlib import Path

import pytest

from tests.cli.conftest import Run

SMALL = ("simulate", "--pools", "5", "--load", "1.5", "--horizon", "5")


def test_the_spelling_is_the_same_in_options_and_files(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text('pools = 5\nload = 1.5\nhorizon = 5\nservice = "lognormal:cv=4"\narrivals = "renewal:cv=2"\n')
    laws = ("--service", "lognormal:cv=4", "--arrivals", "renewal:cv=2")
    options, from_file = run(*SMALL, *laws, "--json").json(), run("simulate", "--scenario", file, "--json").json()
    assert (options["service"], options["arrivals"]) == ("lognormal:cv=4", "renewal:cv=2")
    assert {**options, "seconds": 0} == {**from_file, "seconds": 0}
    assert "lognormal:cv=4 service, renewal:cv=2 arrivals" in run(*SMALL, *laws).out
    compared = run("compare", *SMALL[1:], *laws, "--policies", "jsq,random", "--json").json()
    assert compared["policies"][0]["service"] == "lognormal:cv=4"


def test_measured_numbers_are_scaled_and_the_output_says_so(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text("start,duration\n0,30\n2,90\n8,60\n")
    laws = ("--service", f"empirical:{file},column=duration", "--arrivals", f"recorded:{file},column=start")
    text = run(*SMALL, "--service-rate", "2", *laws).out
    assert "durations scaled from their own mean 60 to the mean task time 0.5" in text
    assert "arrivals scaled from their own rate 0.25 to pools x load x service rate = 15" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--service", "pareto:shape=0.9"), "infinite mean"),
        (("--service", "erlang:stages=-1"), "stages of erlang must be a whole number from 1 to 1000, not -1"),
        (("--service", "empirical:nowhere.csv"), "Cannot read nowhere.csv"),
        (("--arrivals", "bursty:ratio=10"), "bursty needs share"),
        (("--service", "deterministic", "--delay", "0.1"), "A delay needs exponential service"),
        (("--arrivals", "renewal:cv=2", "--steady-state"), "--steady-state needs exponential service"),
    ],
)
def test_bad_laws_are_one_sentence_and_exit_code_2(run: Run, options: tuple[str, ...], words: str) -> None:
    outcome = run(*SMALL, *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert words in outcome.err
    assert outcome.err.count("\n") == 1
