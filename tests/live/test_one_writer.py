"""Each count and each stage of a pool has one writer. A second one fails here, before it miscounts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

LIVE = Path(__file__).parents[2] / "src" / "evenly" / "live"
BALANCER, ROTATION, SESSION = "balancer/balancer.py", "balancer/rotation.py", "balancer/session.py"
SUBSET = "balancer/subset.py"  # for the rotation
LEDGER = "envoy/reconcile.py"
COPIES = "admin/snapshot.py"  # has attributes of the same names, and no way to the originals
ROOMS = ("balancer", "envoy", "picker", "admin")  # all that hold a balancer, a pool or a session


def nodes() -> Iterator[tuple[str, ast.AST]]:
    """Yield the code of the rooms: the path of a module, and a node."""
    for room in ROOMS:
        for path in sorted((LIVE / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                yield path.relative_to(LIVE).as_posix(), node


MUTATORS = ("add", "clear", "discard", "pop", "popitem", "setdefault", "subtract", "update")


def written(node: ast.AST) -> ast.expr | None:
    """Return what a node assigns to or changes in place: `a.b = ...`, `a.b[c] += ...`, `a.b.update(...)`."""
    if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return node.value if isinstance(node, ast.Subscript) else node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
        return node.func.value
    return None


def writers(*attributes: str, also_own: bool = False) -> set[str]:
    """Return the modules that write these attributes of other objects, or also of their own."""
    return {
        module
        for module, node in nodes()
        if isinstance(target := written(node), ast.Attribute)
        and target.attr in attributes
        and (also_own or not (isinstance(target.value, ast.Name) and target.value.id == "self"))
    }


def users(*attributes: str) -> set[str]:
    """Return the modules that use these attributes."""
    return {module for module, node in nodes() if isinstance(node, ast.Attribute) and node.attr in attributes}


def callers(*methods: str, of: tuple[str, ...] = ()) -> set[str]:
    """Return the modules that call these methods, only on attributes or variables of these names if given."""
    return {
        module
        for module, node in nodes()
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in methods
        and (not of or getattr(node.func.value, "attr", getattr(node.func.value, "id", None)) in of)
    }


@pytest.mark.slow
def test_the_counts_of_a_pool_are_written_in_the_rotation_alone() -> None:
    assert writers("picked", "unpicked", "elsewhere", "member", "ramp") == {ROTATION}
    assert writers("picks", "unpicked_total", "moved_total", also_own=True) == {ROTATION, COPIES}
    events = ("arrive", "place", "record_arrival", "depart", "join", "leave")
    assert callers(*events, of=("policy",)) == {ROTATION, SUBSET}


@pytest.mark.slow
def test_picks_among_some_pools_are_made_for_the_rotation_alone() -> None:
    used = ("arrive_among", "join")
    assert {
        module
        for module, node in nodes()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in used
    } == {ROTATION, SUBSET}


@pytest.mark.slow
def test_the_rotation_is_used_by_sessions_and_the_balancer_alone() -> None:
    assert users("rotation") == {BALANCER, SESSION}
    assert callers("pick", "adopt", "move", "count_out", of=("rotation",)) == {BALANCER, SESSION}


@pytest.mark.slow
def test_the_counts_of_an_envoy_are_written_by_sessions_alone() -> None:
    assert users("_started", "_ended", "_unconfirmed") == {LEDGER}
    assert writers("unpicked", also_own=True) == {"balancer/pool.py", ROTATION, LEDGER}  # a pool starts with none
    assert callers("started", "confirmed") == {SESSION}
    assert callers("ended", of=("_via", "via", "ledger", "envoy")) == {SESSION}


@pytest.mark.slow
def test_the_stage_of_a_pool_is_changed_by_the_balancer_alone() -> None:
    assert callers("apply") == {BALANCER}
    assert users("_stage") == {"balancer/pool.py"}


def test_no_attribute_is_set_by_its_name() -> None:
    named = {module for module, node in nodes() if isinstance(node, ast.Name) and node.id == "setattr"}
    assert named == set()
