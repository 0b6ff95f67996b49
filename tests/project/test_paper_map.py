"""docs/paper-map.md: every statement of the paper has a row, with code that cites it and with tests."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

from evenly.paper.report.references import references

ROOT = Path(__file__).parents[2]
LABELS = [
    "Sec. 2", "Sec. 2.1", "eq. (1)", "Thm 1", "Def. 1", "Lem. 1", "Lem. 2", "Prop. 1", "Thm 2", "Ex. 1", "Ex. 2",
    "Cor. 1", "Thm 3", "Thm 4", "Prop. 2", "Prop. 3", "Sec. 4", "Sec. 4.1", "Def. 2", "Prop. 4", "Thm 5",
    "Prop. 5",
    "Thm 6", "Prop. 6", "eq. (13)", "Cor. 2", "Prop. 7", "Cor. 3", "App. B.1", "App. B.4",
    "Fig. 1", "Fig. 2", "Fig. 3", "Fig. 4", "Fig. 5", "Fig. 6",
]  # fmt: skip


def resolved(name: str) -> object:
    """Return the module, class, function or method with this dotted name."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            value: object = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[cut:]:
            value = getattr(value, attribute)
        return value
    raise AssertionError(f"there is no {name}")


def test_every_statement_has_a_row() -> None:
    assert sorted(references()) == sorted(LABELS)


@pytest.mark.parametrize("label", LABELS)
def test_the_code_of_a_row_exists_and_cites_the_statement(label: str) -> None:
    code = references()[label].code
    assert code
    texts = [" ".join((resolved(name).__doc__ or "").split()) for name in code]
    kind, _, number = label.partition(" ")
    plural = kind.rstrip(".") + "s"  # "Exs 1 and 2", "eqs. (13)-(14)"
    cited = re.compile(rf"(\b{re.escape(label)}(?!\d)|\b{plural}\.? [^.]*?{re.escape(number)}(?!\d))")
    assert any("Paper:" in text and cited.search(text) for text in texts), texts


@pytest.mark.parametrize("label", LABELS)
def test_the_tests_of_a_row_exist(label: str) -> None:
    tests = references()[label].tests
    assert tests
    for name in tests:
        file, _, function = name.partition("::")
        tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
        defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert function in defined, name
