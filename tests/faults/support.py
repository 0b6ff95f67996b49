"""Which commit a failing schedule belongs to: a seed means the same schedule only for the same code."""

import subprocess
from pathlib import Path

from evenly.faults import Outcome, explain


def commit() -> str:
    """Return the commit that is checked out, and whether files differ from it."""
    git = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        found = subprocess.run(git, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown, without git"
    return found.stdout.strip() or "unknown, not a git checkout"


def report(failures: list[Outcome]) -> str:
    """Explain the first failure, and list the seeds of all."""
    seeds = ", ".join(f"{failure.seed} ({failure.mode})" for failure in failures)
    return f"{explain(failures[0])}\nCommit: {commit()}\nFailed seeds: {seeds}"
