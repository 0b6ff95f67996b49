"""A wrong policy turns the right claims red: `evenly paper` is run on copies of the package that break it."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"


@dataclass(frozen=True)
class Mutation:
    """Edits of the policy's homes, claims that must turn red, and claims that must not."""

    edits: tuple[tuple[str, str, str], ...]  # file, text that occurs there once, what replaces it
    red: tuple[str, ...]
    green: tuple[str, ...]


MUTATIONS: dict[str, Mutation] = {}


def broken_copy(folder: Path, mutation: Mutation) -> Path:
    copy = folder / "src"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name, old, new in mutation.edits:
        file = copy / "evenly" / name
        text = file.read_text(encoding="utf-8")
        assert text.count(old) == 1, (name, old)
        file.write_text(text.replace(old, new), encoding="utf-8")
    shutil.copytree(SOURCE.parent / "docs", folder / "docs")  # the map that the report leads to
    return copy


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_wrong_policy_turns_the_right_claims_red(name: str, tmp_path: Path) -> None:
    mutation = MUTATIONS[name]
    path = os.pathsep.join([str(broken_copy(tmp_path, mutation)), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "evenly", "paper", "--quick", "--json", "--out", str(tmp_path / "report")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        check=False,
    )
    assert done.returncode == 1, done.stderr
    red = set(json.loads(done.stdout)["surprises"])
    assert set(mutation.red) <= red, red
    assert red.isdisjoint(mutation.green), red
