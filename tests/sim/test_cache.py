"""Compiled kernels on disk belong to the sources as they are now."""

import shutil
import subprocess
import sys
from pathlib import Path

import evenly

CODE = """
import sys
sys.path.insert(0, sys.argv[1])
import evenly
assert evenly.__file__.startswith(sys.argv[1])
print(evenly.simulate(evenly.Scenario(policy="jsq", pools=5, load=2.0, horizon=5.0)).spread)
"""


def spread(folder: Path) -> float:
    command = [sys.executable, "-c", CODE, str(folder)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_a_change_in_a_file_that_kernels_use_is_not_answered_from_the_cache(tmp_path: Path) -> None:
    shutil.copytree(
        Path(evenly.__file__).parent, tmp_path / "evenly", ignore=shutil.ignore_patterns("__pycache__")
    )
    before = spread(tmp_path)
    ledger = tmp_path / "evenly" / "sim" / "kernels" / "ledger.py"
    text = ledger.read_text(encoding="utf-8")
    changed = text.replace("    return math.sqrt(max(float(pools)", "    return 2.0 * math.sqrt(max(float(pools)")
    assert changed != text
    ledger.write_text(changed, encoding="utf-8")
    assert spread(tmp_path) == 2 * before
