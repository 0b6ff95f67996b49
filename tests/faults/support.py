"""Which commit a failing schedule belongs to: a seed means the same schedule only for the same code."""

from tests.faults.__main__ import commit
from tests.faults.network import Outcome, explain


def report(failures: list[Outcome]) -> str:
    """Explain the first failure, and list the seeds of all."""
    seeds = ", ".join(f"{failure.seed} ({failure.mode})" for failure in failures)
    return f"{explain(failures[0])}\nCommit: {commit()}\nFailed seeds: {seeds}"
