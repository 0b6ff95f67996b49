"""`simulate` and `compare` print with --json what they printed before the vocabulary changed: keys and values.

New keys may stand beside the old ones. The numbers are exact simulations from fixed seeds, so they must agree up
to rounding. The options that each command had still exist, under their old names too.
"""

import json
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.core import TyperGroup

from evenly.cli.main import app
from tests.cli.conftest import Run
from tests.cli.test_contract import assert_kept

DATA = Path(__file__).parent / "data"
RUNS: dict[str, dict[str, Any]] = json.loads((DATA / "simulate.json").read_text(encoding="utf-8"))
OPTIONS: dict[str, list[str]] = json.loads((DATA / "options.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("command", RUNS)
def test_json_keeps_its_keys_and_values(run: Run, command: str) -> None:
    """The method of the intervals may improve, and with it the number of batches; they keep their keys."""
    found, before = run(*command.split(), "--json").json(), deepcopy(RUNS[command])
    for new, old in zip(found.get("policies", [found]), before.get("policies", [before]), strict=True):
        assert (new["batches"] > 0) == (old.pop("batches") > 0)
        assert (new["ci95"] or {}).keys() == (old.pop("ci95") or {}).keys()
    assert_kept(found, before, command)


def test_a_difference_is_seen() -> None:
    old = {"a": [1.0, {"b": 2}], "c": None}
    assert_kept({"a": [1.0, {"b": 2, "new": 1}], "c": None}, old, "")
    found: dict[str, Any]
    for found in (
        {"a": [1.0, {"b": 3}], "c": None},
        {"a": [1.0], "c": None},
        {"a": [1.1, {"b": 2}], "c": None},
        {"a": [1.0, {"b": 2}], "c": 0},
        {"a": [1.0, {"b": 2}]},
        {"a": [1.0, {"b": 2.0}], "c": None},
    ):
        with pytest.raises(AssertionError):
            assert_kept(found, old, "")


@pytest.mark.parametrize("command", OPTIONS)
def test_every_option_still_exists(command: str) -> None:
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    spellings = {name for option in group.commands[command].params for name in option.opts}
    assert {name for name in OPTIONS[command] if re.fullmatch(r"--[a-z-]+", name)} <= spellings
