"""The `--json` objects of the predictions: no key, value or order of keys has changed.

`data/COMMAND.json` lists arguments and the object that version 0.1.0 printed for them. Keys may be
added, never changed or removed.
"""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run

DATA = Path(__file__).parent / "data"
CASES = [
    (command, case["arguments"], case["output"])
    for command in ("exact", "fluid", "equilibrium", "diffusion", "tune")
    for case in json.loads((DATA / f"{command}.json").read_text(encoding="utf-8"))
]


def assert_kept(found: Any, expected: Any, place: str) -> None:  # noqa: ANN401
    """Check that nothing changed except for added keys and the last digits of floats."""
    if isinstance(expected, dict):
        assert [key for key in found if key in expected] == list(expected), place
        for key, value in expected.items():
            assert_kept(found[key], value, f"{place}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), place
        for index, value in enumerate(expected):
            assert_kept(found[index], value, f"{place}[{index}]")
    else:
        assert type(found) is type(expected), place
        close = isinstance(expected, float)
        assert found == (pytest.approx(expected, rel=1e-9, abs=1e-12) if close else expected), place


@pytest.mark.parametrize(("command", "arguments", "output"), CASES, ids=[f"{case[0]} {case[1]}" for case in CASES])
def test_keys_and_values_are_kept(run: Run, command: str, arguments: str, output: dict[str, Any]) -> None:
    outcome = run(command, *shlex.split(arguments), "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert_kept(outcome.json(), output, command)


def test_the_share_of_lost_tasks_has_a_name_of_its_own(run: Run) -> None:
    found = run("exact", "--policy", "random", "--pools", 2, "--load", 0.5, "--capacity", 1, "--json").json()
    assert found["lost_share"] == found["lost"] == pytest.approx(1 / 3)
