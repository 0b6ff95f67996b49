"""Claims about bounds call the functions that users call: breaking one of these turns its claim red."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from evenly.paper.claims import CLAIMS, after_settling, optimality
from evenly.paper.claims.claim import Outcome
from evenly.paper.experiments import learning_cases
from evenly.paper.experiments.lab import Lab

Honest = Callable[..., Any]
Broken = Callable[[Any], Any]
LAB = Lab(quick=True)  # its runs do not depend on the broken functions


def outcome(name: str) -> Outcome:
    claim = next(claim for claim in CLAIMS if claim.name == name)
    return Outcome(claim, tuple(claim.measure(LAB)))


@pytest.mark.parametrize(
    ("module", "function", "broken", "claim"),
    [
        (learning_cases, "settled_threshold", lambda old: (old[0] + 1, old[1]), "settled-threshold-bounds"),
        (learning_cases, "settled_threshold", lambda old: (old[0] - 1, old[1]), "settled-threshold-bounds"),
        (learning_cases, "settled_threshold", lambda old: (old[0], old[1] + 1), "settled-threshold-bounds"),
        (learning_cases, "settled_threshold", lambda old: (old[0], old[1] - 1), "settled-threshold-bounds"),
        (learning_cases, "is_optimal", lambda _: True, "optimal-if-alpha-is-large"),
        (learning_cases, "is_optimal", lambda _: False, "optimal-if-alpha-is-large"),
        (learning_cases, "settle_time_bound", lambda old: old and 1.01 * old, "settling-time-tight"),
        (learning_cases, "settle_time_bound", lambda old: old and 0.99 * old, "settling-time-tight"),
        (after_settling, "settled_distance_bound", lambda old: 1.01 * old, "settled-and-balanced"),
        (after_settling, "settled_distance_bound", lambda old: 0.99 * old, "settled-and-balanced"),
        (optimality, "loads_settling_above", lambda _: (), "few-loads-violate-the-condition"),
        (
            optimality,
            "loads_settling_above",
            lambda old: [(low - 0.01, high) for low, high in old],
            "few-loads-violate-the-condition",
        ),
    ],
)
def test_a_broken_bound_turns_its_claim_red(
    module: ModuleType, function: str, broken: Broken, claim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert outcome(claim).as_expected
    honest: Honest = getattr(module, function)
    monkeypatch.setattr(module, function, lambda **given: broken(honest(**given)))
    assert not outcome(claim).as_expected
