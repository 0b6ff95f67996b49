"""Run the playground's modules in Node, without a browser."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
NODE = Path(sys.executable).with_name("node")  # from PyPI, linked by `make setup`
ROUNDING = 1e-12  # relative: between JavaScript and Python, and between processors, sums are rounded differently


def in_node(script: str, question: object) -> Any:  # noqa: ANN401  (whatever the script prints)
    """Run a script of this folder with a JSON object on its input, and return the JSON object that it prints."""
    done = subprocess.run(
        [str(NODE), str(HERE / script)], input=json.dumps(question), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def differences(ours: object, theirs: object, where: str = "") -> list[str]:
    """Compare what we have with the same part of a larger object, but for the rounding of floats."""
    if isinstance(ours, dict):
        assert isinstance(theirs, dict)
        return [each for key in ours for each in differences(ours[key], theirs[key], f"{where}.{key}")]
    same = ours == (pytest.approx(theirs, rel=ROUNDING) if isinstance(theirs, float | list) else theirs)
    return [] if same else [f"{where}: {ours!r}, not {theirs!r}"]
