"""The walls between rooms: only imports that the table allows, and no cycles."""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import pairwise, product
from pathlib import Path

import pytest

from tests.project.rooms import ROOMS

IMPORTERS = ("lazy", "frames", "own_policy", "testing")  # rooms that load modules by name
SOURCE = Path(__file__).parents[2] / "src" / "evenly"


@dataclass(frozen=True)
class Import:
    """An imported name. `lazy` is True inside functions and for type checking only."""

    name: str
    lazy: bool


def modules() -> list[str]:
    """Return dotted names below `evenly`. A package's `__init__` has the name of the package."""
    paths = (path.relative_to(SOURCE).with_suffix("") for path in SOURCE.rglob("*.py"))
    return sorted(".".join(path.parts).removesuffix(".__init__") for path in paths)


def file_of(module: str) -> Path:
    path = SOURCE.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def room_of(name: str) -> str:
    """Return the room with the longest matching name. Names without one belong to the package's front door."""
    parts = name.split(".")
    fitting = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((room for room in fitting if room in ROOMS), "__init__")


def is_front_door(module: str) -> bool:
    """Return True for a package with rooms inside whose `__init__` holds more than a docstring."""
    inside = any(room.startswith(f"{module}.") for room in ROOMS)
    return inside and len(ast.parse(file_of(module).read_text(encoding="utf-8")).body) > 1


@cache
def homes(package: str) -> dict[str, str]:
    """Return the public names of a front door with the modules that define them."""
    door = import_module(package)
    found: dict[str, str] = dict(getattr(door, "_HOMES", {}).items())
    lazy = {name: home for home, names in found.items() for name in names.split()}
    tree = ast.parse(file_of(package.partition(".")[2]).read_text(encoding="utf-8"))
    eager = {
        alias.name: str(node.module)
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    return {**eager, **lazy}


def target_of(name: str) -> str:
    """Return the room that defines an imported name of ours, following front doors."""
    package, _, last = name.rpartition(".")
    while package == "evenly" or is_front_door(package.partition(".")[2]):
        home = homes(package).get(last)
        if home is None:
            break
        package = home
    inner = f"{package}.{last}".partition(".")[2]
    return room_of(inner)


def imports(tree: ast.Module) -> Iterator[Import]:
    """Yield all imports, at the top or inside functions. Relative imports are not allowed."""

    def visit(node: ast.AST, lazy: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                assert alias.asname or not alias.name.startswith("evenly"), "`import evenly.x` binds all of evenly"
                yield Import(alias.name, lazy)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            # `from evenly.live import log` imports a module, `from evenly.errors import InputError` a name of one.
            yield from (Import(f"{node.module}.{alias.name}", lazy) for alias in node.names)
        elif isinstance(node, ast.If) and _for_types(node.test):
            yield from (each for child in node.body for each in visit(child, True))
            yield from (each for child in node.orelse for each in visit(child, lazy))
            return
        inside = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inside)

    return visit(tree, False)


def _for_types(test: ast.expr) -> bool:
    return getattr(test, "id", getattr(test, "attr", None)) == "TYPE_CHECKING"


def is_allowed(module: str, found: Import) -> bool:
    own = room_of(module)
    room = ROOMS[own]
    top, _, _ = found.name.partition(".")
    if top == "evenly":
        target = target_of(found.name)
        if is_front_door(module):
            return target in {own, "lazy", *room.may} or target.startswith(f"{module}.")
        if target == "__init__":  # the version is all that may be imported from the package's front door
            return "__init__" in room.may and found.name == "evenly.__version__"
        return target == own or target in room.may or (found.lazy and target in room.lazily)
    if top in sys.stdlib_module_names:
        loads = found.name == "importlib.import_module"
        return top in (room.standard or {top}) and not (loads and own not in IMPORTERS)
    return top in room.packages or (found.lazy and top in room.lazily)


def violations(module: str, source: str) -> list[str]:
    tree = ast.parse(source)
    found = [each.name for each in imports(tree) if not is_allowed(module, each)]
    if ROOMS[room_of(module)].standard is not None:
        found += ["async" for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef | ast.Await)]
    return found


def arrows() -> set[tuple[str, str]]:
    """Return all pairs (room, imported room) found in the sources, without front doors."""
    found = set()
    for module in modules():
        if is_front_door(module):
            continue
        for each in imports(ast.parse(file_of(module).read_text(encoding="utf-8"))):
            if each.name.startswith("evenly.") and target_of(each.name) != room_of(module):
                found.add((room_of(module), target_of(each.name)))
    return found


def cycle(graph: set[tuple[str, str]]) -> list[str]:
    """Return one cycle of the graph, or an empty list."""
    below: dict[str, set[str]] = {}
    for room, other in graph:
        below.setdefault(room, set()).add(other)
    done: set[str] = set()

    def walk(room: str, path: list[str]) -> list[str]:
        if room in path:
            return [*path[path.index(room) :], room]
        if room in done:
            return []
        for other in sorted(below.get(room, ())):
            found = walk(other, [*path, room])
            if found:
                return found
        done.add(room)
        return []

    return next((found for room in sorted(below) if (found := walk(room, []))), [])


@pytest.mark.parametrize("module", modules())
def test_a_module_imports_only_what_its_room_may(module: str) -> None:
    assert violations(module, file_of(module).read_text(encoding="utf-8")) == []


@pytest.mark.slow
def test_there_is_no_cycle_between_rooms() -> None:
    assert cycle(arrows()) == []


def test_the_table_allows_no_cycle() -> None:
    allowed = {
        (name, other) for name, room in ROOMS.items() for other in (*room.may, *room.lazily) if other in ROOMS
    }
    assert cycle(allowed) == []


def test_every_room_has_modules() -> None:
    assert {room_of(module) for module in modules()} == set(ROOMS)


@pytest.mark.slow
def test_every_permission_is_used() -> None:
    used = arrows()
    unused = {
        (name, other)
        for name, room in ROOMS.items()
        for other in (*room.may, *room.lazily)
        if other in ROOMS and (name, other) not in used
    }
    assert unused == set()


@pytest.mark.slow
def test_every_wrong_arrow_is_found() -> None:
    """Break each rule once: import every room from every other, at the top and inside a function."""
    inside = {room_of(name): name for name in modules() if not is_front_door(name)}
    for (room, rules), other in product(ROOMS.items(), ROOMS):
        if room == other:
            continue
        module = inside[room]
        target = "from evenly import __version__" if other == "__init__" else f"import evenly.{other} as other"
        allowed = (other in rules.may, other in (*rules.may, *rules.lazily))
        seen = (violations(module, target), violations(module, f"def f():\n    {target}"))
        assert tuple(not each for each in seen) == allowed, (room, other)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("core.pool", "import numpy"),
        ("core.pool", "import random"),
        ("core.pool", "from time import monotonic"),
        ("core.pool", "from datetime import datetime"),
        ("core.pool", "import subprocess"),
        ("core.pool", "async def f() -> None: ..."),
        ("workload.demand", "import numpy"),
        ("sim.run", "import matplotlib.pyplot"),
        ("sim.run", "import pandas"),
        ("sim.run", "from importlib import import_module"),
        ("sim.run", "if not TYPE_CHECKING:\n    from evenly.plots import style"),
        ("sim.run", "if TYPE_CHECKING:\n    pass\nelse:\n    from evenly.plots import style"),
        ("theory.balance", "def f():\n    from evenly.theory import solve_exact"),
        ("theory.diffusion.limit", "from evenly.theory import solve_exact"),
        ("theory.exact.law", "from evenly import simulate"),
        ("paper.report.write", "from evenly import simulate"),
        ("theory.exact.law", "from evenly.sim import Scenario"),
        ("live.balancer.pool", "import asyncio"),
        ("live.balancer.pool", "import pydantic"),
        ("live", "from evenly.live.picker import server"),
    ],
)
def test_a_wrong_import_is_found(module: str, source: str) -> None:
    assert violations(module, source)


@pytest.mark.parametrize("source", ["from . import pool", "import evenly.errors"])
def test_imports_have_one_form(source: str) -> None:
    with pytest.raises(AssertionError):
        violations("core.pool", source)


def test_a_module_of_an_allowed_room_may_be_imported_through_its_package() -> None:
    assert violations("theory.fluid.path", "from evenly.theory import balance") == []
    assert violations("advice.alpha", "from evenly.theory import solve_exact") == []
    assert violations("theory.balance", "from evenly.theory.fluid import path")


def test_a_cycle_is_found() -> None:
    found = cycle({("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")})
    assert found[0] == found[-1]
    assert set(pairwise(found)) == {("a", "b"), ("b", "c"), ("c", "a")}
    assert cycle({("a", "b"), ("b", "c"), ("a", "c")}) == []
