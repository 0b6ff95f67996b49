"""docs/architecture.md: its generated parts are current, and every file and name that it mentions exists."""

import ast
import re
from pathlib import Path

import pytest

from tests.project.draw_rooms import PAGE, files, reduced
from tests.project.rooms import ROOMS
from tests.project.test_layers import room_of

SOURCE = Path(__file__).parents[2] / "src" / "evenly"
TEXT = PAGE.read_text(encoding="utf-8")
STEPS = re.findall(r"`([a-z_0-9/]+\.py): (\w+)`", TEXT)


@pytest.mark.parametrize("path", files(), ids=lambda path: path.name)
def test_generated_parts_are_current(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == files()[path], "run python -m tests.project.draw_rooms"


@pytest.mark.parametrize(("file", "name"), STEPS)
def test_every_step_of_the_walks_exists(file: str, name: str) -> None:
    tree = ast.parse((SOURCE / file).read_text(encoding="utf-8"))
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    assert name in {node.name for node in tree.body if isinstance(node, kinds)}


def test_there_are_two_walks() -> None:
    assert len(STEPS) >= 20


def test_every_file_named_exists() -> None:
    named = [name for name in re.findall(r"`([a-z_0-9/]+\.py)`", TEXT) if not name.startswith("tests/")]
    assert len(named) >= 20
    assert [name for name in named if not _exists(name)] == []


def _exists(name: str) -> bool:
    """Return True if the file exists. The page shortens some names to their last part."""
    return (SOURCE / name).exists() or any(SOURCE.rglob(name))


def test_the_rooms_for_new_code_exist() -> None:
    table = TEXT.partition("## Where does it go?")[2].strip().partition("\n\n")[0].splitlines()[2:]
    rooms = [room for row in table for room in re.findall(r"`([a-z_.]+)`", row.split("|")[2])]
    assert len(rooms) >= 20
    assert [room for room in rooms if room_of(room) != room] == []
    assert {"core", "sim", "theory", "live.balancer", "cli.commands"} <= set(rooms) <= set(ROOMS)


def test_arrows_that_follow_from_others_are_left_out() -> None:
    assert reduced({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {"a": {"b"}, "b": {"c"}, "c": set()}
