"""Compiled kernels on disk match the current sources. A run reports compilation, and does not count its time."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core.errors import TypingError

import evenly
from evenly.sim.kernels.jit import kernel

# Runs the command, and reports when the last compilation ended relative to the time that the run claims.
CODE = """
import sys
from time import perf_counter
sys.path.insert(0, sys.argv[1])
import evenly
assert evenly.__file__.startswith(sys.argv[1])
import json
from contextlib import redirect_stdout
from io import StringIO
from numba.core import event
from evenly.cli.main import main

ended = [0.0]

class Clock(event.Listener):
    def on_start(self, start): ...
    def on_end(self, end): ended.append(perf_counter())

event.register("numba:compile", Clock())
out = StringIO()
with redirect_stdout(out):
    assert main("simulate --policy round-robin --pools 5 --load 2 --horizon 5 --json".split()) == 0
found = json.loads(out.getvalue())
print(json.dumps({
    "spread": found["spread"]["mean"],
    "compiled": len(ended) > 1,
    "after": found["seconds"] <= perf_counter() - ended[-1],
}))
"""


INTEGRALS = "sim/kernels/integrals.py"
EDIT = ("    return math.sqrt(max(float(pools)", "    return 2.0 * math.sqrt(max(float(pools)")


def test_the_edit_still_matches_the_source() -> None:
    """The test that makes it runs in `make full` alone."""
    text = (Path(evenly.__file__).parent / INTEGRALS).read_text(encoding="utf-8")
    assert text.count(EDIT[0]) == 1


def run(folder: Path) -> tuple[dict[str, Any], str]:
    command = [sys.executable, "-c", CODE, str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found, done.stderr


@pytest.mark.full
def test_a_change_in_a_file_that_kernels_use_is_not_answered_from_the_cache(tmp_path: Path) -> None:
    shutil.copytree(
        Path(evenly.__file__).parent, tmp_path / "evenly", ignore=shutil.ignore_patterns("__pycache__")
    )
    before, notice = run(tmp_path)
    assert before["compiled"]
    assert notice.startswith("Compiling the simulator")
    assert notice.count("\n") == 1
    assert before["after"]  # the time of the run begins after the compilation
    assert run(tmp_path) == ({**before, "compiled": False}, "")
    integrals = tmp_path / "evenly" / INTEGRALS
    integrals.write_text(integrals.read_text(encoding="utf-8").replace(*EDIT), encoding="utf-8")
    after, notice = run(tmp_path)
    assert after["spread"] == 2 * before["spread"]
    assert notice.startswith("Compiling the simulator")


def test_a_kernel_that_allocates_is_not_compiled() -> None:
    @kernel
    def allocates(size: int) -> float:
        return float(np.zeros(size).sum())

    with pytest.raises(TypingError, match="Only accept returning of array passed into the function"):
        allocates(3)
