"""Claims about bounds call the functions that users call: breaking one of these turns its claim red."""

from collections.abc import Callable
from typing import Any

import pytest

from evenly.paper.claims import CLAIMS
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
    ("function", "broken", "claim"),
    [
        ("settled_threshold", lambda found: (found[0] + 1, found[1]), "settled-threshold-bounds"),
        ("settled_threshold", lambda found: (found[0] - 1, found[1]), "settled-threshold-bounds"),
        ("settled_threshold", lambda found: (found[0], found[1] + 1), "settled-threshold-bounds"),
        ("settled_threshold", lambda found: (found[0], found[1] - 1), "settled-threshold-bounds"),
        ("is_optimal", lambda _: True, "optimal-if-alpha-is-large"),
        ("is_optimal", lambda _: False, "optimal-if-alpha-is-large"),
        ("settle_time_bound", lambda found: found and 1.01 * found, "settling-time-tight"),
        ("settle_time_bound", lambda found: found and 0.99 * found, "settling-time-tight"),
    ],
)
def test_a_broken_bound_turns_its_claim_red(
    function: str, broken: Broken, claim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert outcome(claim).as_expected
    honest: Honest = getattr(learning_cases, function)
    monkeypatch.setattr(learning_cases, function, lambda **given: broken(honest(**given)))
    assert not outcome(claim).as_expected
