"""The layers of the package: who may import whom. A wrong arrow fails here."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "evenly"

# layer -> (layers and root modules of evenly, other packages) that it may import, besides the standard library
ALLOWED: dict[str, tuple[set[str], set[str]]] = {
    "core": ({"errors"}, set()),
    "theory": ({"workload", "errors"}, {"numpy", "scipy"}),
    "sim": ({"core", "workload", "errors", "files"}, {"numpy", "numba", "scipy", "pandas", "polars"}),
    "advice": ({"sim", "theory", "errors"}, {"numpy"}),
    "plots": ({"advice", "workload", "sim", "theory", "files"}, {"matplotlib", "numpy"}),
    "live": (
        {"core", "errors", "files"},
        {"fastapi", "hpack", "jinja2", "prometheus_client", "pydantic", "starlette", "uvicorn", "websockets"},
    ),
    "paper": (
        {"core", "workload", "errors", "files", "plots", "sim", "theory", "__init__"},
        {"jinja2", "matplotlib", "numpy", "scipy"},
    ),
    "cli": (
        {"core", "theory", "sim", "advice", "plots", "paper", "live", "workload", "errors", "files", "__init__"},
        {"typer", "rich"},
    ),
    "workload": ({"errors"}, set()),
    "errors": (set(), set()),
    "files": ({"errors"}, set()),
    "__init__": ({"advice", "errors", "workload", "sim", "theory"}, set()),
    "__main__": ({"cli"}, set()),
}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def layer_of(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def imports(tree: ast.AST) -> Iterator[str]:
    """Dotted names of all modules imported, at the top or inside functions; no relative imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            if node.module == "evenly":  # from evenly import x: x is a layer, a root module or a public name
                yield from (f"evenly.{alias.name}" for alias in node.names)
            else:
                yield node.module


def target(name: str) -> str:
    """The layer or root module that an imported name of evenly belongs to."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in ALLOWED else "__init__"


def violations(layer: str, source: str) -> list[str]:
    own, others = ALLOWED[layer]
    wrong = []
    for name in imports(ast.parse(source)):
        top = name.split(".")[0]
        if top == "evenly":
            if target(name) not in own | {layer}:
                wrong.append(name)
        elif top not in sys.stdlib_module_names and top not in others:
            wrong.append(name)
    return wrong


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_what_its_layer_may(path: Path) -> None:
    assert violations(layer_of(path), path.read_text(encoding="utf-8")) == []


def test_every_layer_is_known_and_used() -> None:
    assert {layer_of(path) for path in modules()} == set(ALLOWED)


@pytest.mark.parametrize(
    ("layer", "source"),
    [
        ("core", "import numpy"),
        ("core", "from evenly.sim import Scenario"),
        ("theory", "import evenly.sim.run"),
        ("theory", "from evenly import simulate"),
        ("sim", "def f():\n    from evenly.theory.exact.law import exact_law"),
        ("sim", "import matplotlib.pyplot"),
        ("plots", "from evenly.cli import main"),
    ],
)
def test_a_wrong_arrow_is_seen(layer: str, source: str) -> None:
    assert violations(layer, source)
