"""A refusal is one line of plain characters that ends like a sentence, whatever was typed."""

import pytest

from evenly.cli.refusals import with_options
from tests.cli.conftest import Run


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["simulate", "--scenario", "a\nb"], "Cannot read 'a\\nb': no such file or directory."),
        (["simulate", "--scenario", "a\x1b[31m"], "Cannot read 'a\\x1b[31m': no such file or directory."),
        (["simulate", "--scenario", "\udcff"], "Cannot read '\\udcff': no such file or directory."),
        (["simulate", "--nope"], "No such option: --nope."),
        (["simulate", "--pools"], "Option '--pools' requires an argument."),
        (["nope"], "No such command 'nope'."),
    ],
)
def test_refusals_are_one_printable_line(run: Run, arguments: list[str], sentence: str) -> None:
    outcome = run(*arguments)
    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"evenly: {sentence}\n")


OPTIONS = {
    "load": ["--load"],
    "load_max": ["--load-max"],
    "sample_size": ["--sample-size", "--choices"],
    "slow_start": ["--slow-start"],
    "steady_state": ["--steady-state"],
}


def test_refusals_name_the_options_that_were_typed() -> None:
    for sentence, arguments, shown in [
        ("load must be positive, not 0.", ["--load=0"], "--load must be positive, not 0."),
        ("load must be positive, not 0.", ["--scenario", "x.toml"], "load must be positive, not 0."),
        ("sample_size must be 1 or more.", ["--choices", "0"], "--sample-size must be 1 or more."),
        ("sample_size must be 1 or more.", [], "sample_size must be 1 or more."),
        ("slow-start must be a number.", ["--slow-start=x"], "--slow-start must be a number."),
        ("mean_holding_times is for averages.", ["--steady-state"], "--steady-state is for averages."),
        ("load must be at most load_max 10.", ["--load", "11"], "--load must be at most --load-max 10."),
        ("Give load_max or load.", [], "Give --load-max or load."),
        ("policy must be one of a, b, not 'load_max'.", [], "policy must be one of a, b, not 'load_max'."),
    ]:
        assert with_options(sentence, OPTIONS, arguments) == shown


@pytest.mark.parametrize(
    "arguments",
    [
        ["simulate", "--pools", "2", "--load", "1", "--scenario="],
        ["simulate", "--pools", "2", "--load", "1", "--save", " "],
        ["picker", "--config="],
        ["gateway", "--admin-token-file="],
    ],
)
def test_an_empty_name_is_not_the_current_folder(run: Run, arguments: list[str]) -> None:
    outcome = run(*arguments)
    assert outcome.code == 2
    assert "must name a file, not '" in outcome.err
    assert outcome.err.startswith("evenly: --")


def test_numbers_are_spelled_as_everywhere_else(run: Run) -> None:
    for text in ("1_0", "\uff11\uff10"):
        outcome = run("simulate", "--pools", text, "--load", 1)
        assert outcome.err == f"evenly: --pools must be a whole number from 1 to 1000000000, not '{text}'.\n"


def test_an_address_to_listen_on_is_no_address_to_connect_to(run: Run) -> None:
    for address in ("0.0.0.0:80", "[::]:80"):
        outcome = run("envoy-config", "--picker", address, "--listen", "127.0.0.1:8080")
        assert outcome.err == f"evenly: --picker must be an address that Envoy can connect to, not {address}.\n"
