"""Each count and each stage of a pool has one writer. A second one fails here, before it miscounts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

LIVE = Path(__file__).parents[2] / "src" / "evenly" / "live"
BALANCER, ROTATION, SESSION = "balancer/balancer.py", "balancer/rotation.py", "balancer/session.py"
LEDGER = "envoy/reconcile.py"
ROOMS = ("balancer", "envoy", "picker", "admin")  # all that hold a balancer, a pool or a session


def nodes() -> Iterator[tuple[str, ast.AST]]:
    """The code of the rooms: a module's path, and a node."""
    for room in ROOMS:
        for path in sorted((LIVE / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                yield path.relative_to(LIVE).as_posix(), node


def writers(*attributes: str) -> set[str]:
    """Modules that assign to these attributes of another object than their own."""
    return {
        module
        for module, node in nodes()
        if isinstance(node, ast.Attribute)
        and node.attr in attributes
        and not isinstance(node.ctx, ast.Load)
        and not (isinstance(node.value, ast.Name) and node.value.id == "self")
    }


def users(*attributes: str) -> set[str]:
    """Modules that name these attributes."""
    return {module for module, node in nodes() if isinstance(node, ast.Attribute) and node.attr in attributes}


def callers(*methods: str, of: tuple[str, ...] = ()) -> set[str]:
    """Modules that call these methods, on an attribute or variable of these names if any are given."""
    return {
        module
        for module, node in nodes()
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in methods
        and (not of or getattr(node.func.value, "attr", getattr(node.func.value, "id", None)) in of)
    }


def test_the_counts_of_a_pool_are_written_in_the_rotation_alone() -> None:
    assert writers("picked", "unpicked", "member", "ramp") == {ROTATION}
    assert callers("arrive", "place", "record_arrival", "depart", "join", "leave", of=("policy",)) == {ROTATION}


def test_the_rotation_is_used_by_sessions_and_the_balancer_alone() -> None:
    assert users("rotation") == {BALANCER, SESSION}
    assert callers("pick", "adopt", "move", "count_out", of=("rotation",)) == {BALANCER, SESSION}


def test_the_counts_of_an_envoy_are_written_by_sessions_alone() -> None:
    assert users("_started", "_ended", "_unconfirmed") == {LEDGER}
    assert callers("started", "confirmed") == {SESSION}
    assert callers("ended", of=("_via", "via", "ledger", "envoy")) == {SESSION}


def test_the_stage_of_a_pool_is_changed_by_the_balancer_alone() -> None:
    assert callers("apply") == {BALANCER}
    assert users("_stage") == {"balancer/pool.py"}


def test_no_attribute_is_set_by_its_name() -> None:
    named = {module for module, node in nodes() if isinstance(node, ast.Name) and node.id == "setattr"}
    assert named == set()
