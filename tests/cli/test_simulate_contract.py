"""`simulate` and `compare` print with --json what they printed before the vocabulary changed: keys and values.

New keys may stand beside the old ones. The numbers are exact simulations from fixed seeds, so they must agree up
to rounding. The options that each command had still exist, under their old names too.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.core import TyperGroup

from evenly.cli.main import app
from tests.cli.conftest import Run

DATA = Path(__file__).parent / "data"
RUNS: dict[str, dict[str, Any]] = json.loads((DATA / "simulate.json").read_text(encoding="utf-8"))
OPTIONS: dict[str, list[str]] = json.loads((DATA / "options.json").read_text(encoding="utf-8"))


def differences(old: Any, new: Any, place: str = "") -> list[str]:  # noqa: ANN401
    """Where the new value lacks something of the old one, or differs from it."""
    if isinstance(old, dict):
        if not isinstance(new, dict):
            return [f"{place} is no object"]
        lacking = [f"{place}.{key} is gone" for key in old if key not in new]
        return lacking + [
            found for key in old if key in new for found in differences(old[key], new[key], f"{place}.{key}")
        ]
    if isinstance(old, list):
        if not isinstance(new, list) or len(old) != len(new):
            return [f"{place} has another length"]
        return [
            found
            for at, pair in enumerate(zip(old, new, strict=True))
            for found in differences(*pair, f"{place}[{at}]")
        ]
    if isinstance(old, float):
        return [] if new == pytest.approx(old, rel=1e-9, abs=1e-12) else [f"{place}: {old} became {new}"]
    return [] if old == new and type(old) is type(new) else [f"{place}: {old} became {new}"]


@pytest.mark.parametrize("command", RUNS)
def test_json_keeps_its_keys_and_values(run: Run, command: str) -> None:
    assert differences(RUNS[command], run(*command.split(), "--json").json()) == []


def test_a_difference_is_seen() -> None:
    old = {"a": [1.0, {"b": 2}], "c": None}
    assert differences(old, {"a": [1.0, {"b": 2, "new": 1}], "c": None}) == []
    assert differences(old, {"a": [1.0, {"b": 3}], "c": None}) == [".a[1].b: 2 became 3"]
    assert differences(old, {"a": [1.0], "c": 0}) == [".a has another length", ".c: None became 0"]
    assert differences(old, {"a": [1.1, {}]}) == [".c is gone", ".a[0]: 1.0 became 1.1", ".a[1].b is gone"]


@pytest.mark.parametrize("command", OPTIONS)
def test_every_option_still_exists(command: str) -> None:
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    spellings = {name for option in group.commands[command].params for name in option.opts}
    assert {name for name in OPTIONS[command] if re.fullmatch(r"--[a-z-]+", name)} <= spellings
