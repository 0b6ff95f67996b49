"""What the project says about its metrics: the table of the reference, and the names in the code."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
_PAGE = ROOT / "docs" / "reference" / "metrics.md"
_ROW = re.compile(r"^\| `(evenly_\w+)` \| (\w+) \|(.*?)\| (.*) \| ([GPD ]+) \|$", re.MULTILINE)
_LABEL = re.compile(r"`(\w+)`(?: \(([GPD, ]+)\))?")
_MAKERS = {"Family", "gauge", "counter", "by_label", "per_pool"}  # of evenly.live.admin.exposition
_NAME = re.compile(r"\bevenly_\w+")


@dataclass(frozen=True)
class Metric:
    """A row of the table: `labels` by the letter of the process, whose keys are all that export the metric."""

    name: str
    kind: str
    labels: dict[str, frozenset[str]]


def table() -> dict[str, Metric]:
    """Return the rows of the table, by name."""
    found: dict[str, Metric] = {}
    for name, kind, labels, meaning, exporters in _ROW.findall(_PAGE.read_text(encoding="utf-8")):
        assert name not in found, f"{name} has two rows"
        assert meaning.strip(), name
        by_process: dict[str, frozenset[str]] = {}
        for letter in exporters.split():
            names = [label for label, only in _LABEL.findall(labels) if not only or letter in only]
            by_process[letter] = frozenset(names)
        found[name] = Metric(name, kind, by_process)
    return found


def names_in_code() -> set[str]:
    """Return the name of every metric that the code can export: the constants passed to what makes families."""
    found: set[str] = set()
    for path in (ROOT / "src" / "evenly" / "live").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _MAKERS:
                found |= {
                    word.value
                    for word in node.args
                    if isinstance(word, ast.Constant)
                    and isinstance(word.value, str)
                    and _NAME.fullmatch(word.value)
                }
    return found


def used_in(expression: str) -> set[str]:
    """Return the metrics that a PromQL expression uses. The series of a histogram count as the histogram."""
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in _NAME.findall(expression)}
