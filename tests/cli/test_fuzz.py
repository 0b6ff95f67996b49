"""Hostile values for every option: no traceback, no hang, little memory, one sentence for a refusal.

The same command lines every time, one for each option, of which `make test` takes every twelfth; `make fuzz` tries
others.
"""

import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from tests.fuzz.attacks import BASES, STOPPED_BY, attacks, read_options
from tests.fuzz.forks import judge
from tests.fuzz.values import prepare_folder
from tests.tiers import rest_in_full

COUNT = len(read_options())  # an attack's first round takes each option once
SEED, PARTS = 1, 12
ROOT = Path(__file__).parents[2]


@pytest.mark.long
@pytest.mark.parametrize("parts", rest_in_full([[0], [*range(1, PARTS, 2)], [*range(2, PARTS, 2)]], 1), ids=str)
def test_no_command_line_hurts(parts: list[int]) -> None:
    command = [sys.executable, "-m", "tests.fuzz", "commands", "--count", COUNT, "--seed", SEED]
    command += ["--parts", PARTS, "--part", *parts]
    outcome = subprocess.run(
        [str(word) for word in command], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    invocations = sum(len(range(part, COUNT, PARTS)) for part in parts)
    assert f"{invocations} invocations, 0 failures" in outcome.stdout


def test_every_option_of_every_command_is_attacked() -> None:
    lines = list(islice(attacks(SEED), COUNT))
    for option in read_options():
        words = option.command.split()
        own = [line[len(words) :] for line in lines if line[: len(words)] == words]
        if option.spellings:
            assert any(word.partition("=")[0] in option.spellings for line in own for word in line), option
        else:
            assert any(option.values and set(option.values) & set(line) for line in own), option


@pytest.mark.full
@pytest.mark.parametrize(
    "command", sorted(command for command in BASES if command.split()[0] not in {*STOPPED_BY} - {"paper"})
)
def test_the_attacks_start_from_valid_command_lines(command: str, tmp_path: Path) -> None:
    words = [word for pair in BASES[command].items() for word in pair if word.startswith("--") or word != pair[0]]
    run = [sys.executable, "-m", "evenly", command, *words]
    prepare_folder(tmp_path)
    assert subprocess.run(run, cwd=tmp_path, capture_output=True, timeout=600, check=False).returncode == 0


def test_the_judge_tells_good_outcomes_from_bad_ones() -> None:
    for code, out, err, verdict in [
        (0, "fine", "", ""),
        (2, "", "evenly: pools must be a whole number, not 0.\n", ""),
        (2, "", "evenly: one.\nevenly: two.\n", "not one clear sentence"),
        (2, "half a table", "evenly: no.\n", "output in spite of a refusal"),
        (1, "", "Traceback (most recent call last):", "printed 'Traceback'"),
        (0, "fine", "RuntimeWarning: overflow", "printed 'Warning'"),
        (-11, "", "", "exit code -11"),
        (-24, "", "", "hang"),
    ]:
        assert judge(["simulate"], code, out, err, 0) == verdict
    assert judge(["simulate", "--json"], 0, '{"a": 1}', "", 0) == ""
    assert judge(["simulate", "--json"], 0, "[1]", "", 0) == "not a JSON object"
