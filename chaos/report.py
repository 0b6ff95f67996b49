"""Outcomes as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from chaos.bounds import MIB
from chaos.field import Size
from chaos.gateway import ENVOY, PICKER, SUPERVISOR
from chaos.processes import Usage
from chaos.siege import Outcome

_PARTS = (ENVOY, PICKER, SUPERVISOR)


def line(outcome: Outcome) -> str:
    """Return the line of a step, and one line for each problem."""
    matched = "never" if outcome.matched is None else f"after {outcome.matched:.1f} s"
    used = [outcome.peaks.get(part, Usage()) for part in _PARTS]
    memory = "/".join(f"{each.memory / MIB:.0f}" for each in used)
    files = "/".join(str(each.files) for each in used)
    words = [
        f"{'ok' if outcome.passed else 'FAIL':4} {outcome.name:28} {outcome.seconds:5.1f} s",
        f"lost {outcome.lost}" + (f" (+{outcome.forgiven} killed)" if outcome.forgiven else ""),
        f"refused {outcome.refused}",
        f"counts matched {matched}",
        f"{memory} MiB",
        f"{files} files",
        *(f"{name} {value}" for name, value in outcome.facts.items()),
    ]
    return "\n".join([", ".join(words), *(f"     {problem}" for problem in outcome.problems)])


def verdict(outcomes: Sequence[Outcome], seed: int) -> str:
    """Return the last line."""
    failed = sorted({outcome.name for outcome in outcomes if not outcome.passed})
    lost = sum(outcome.lost for outcome in outcomes)
    told = f"{len(outcomes)} steps, seed {seed}, {lost} innocents lost"
    if failed:
        return f"FAILED: {told}; repeat with --seed {seed} --only {' '.join(failed)}"
    return f"PASSED: {told}"


def as_json(outcomes: Sequence[Outcome], seed: int, size: Size) -> str:
    """Return everything as one JSON object."""
    steps = [{**asdict(outcome), "passed": outcome.passed} for outcome in outcomes]
    passed = all(outcome.passed for outcome in outcomes)
    return json.dumps({"seed": seed, "size": asdict(size), "passed": passed, "steps": steps}, indent=2)
