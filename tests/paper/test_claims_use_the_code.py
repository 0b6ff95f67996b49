"""Claims about bounds call the functions that users call: breaking one of these turns its claim red."""

from collections.abc import Callable
from fractions import Fraction
from math import floor, log
from types import ModuleType
from typing import Any

import pytest

from evenly.paper.claims import CLAIMS, after_settling, bound_terms, optimality
from evenly.paper.claims.claim import Outcome
from evenly.paper.experiments import learning_cases
from evenly.paper.experiments.lab import Lab
from evenly.theory.persistence import can_settle_above
from evenly.theory.tuning import settle_time_bound

pytestmark = pytest.mark.full

Honest = Callable[..., Any]
Broken = Callable[[Any], Any]
LAB = Lab(quick=True)  # its runs do not depend on the broken functions


def outcome(name: str, lab: Lab = LAB) -> Outcome:
    claim = next(claim for claim in CLAIMS if claim.name == name)
    return Outcome(claim, tuple(claim.measure(lab)))


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


def _time(*, load: float, alpha: str, initial_tasks: float = 0.0) -> float | None:
    """Omit the positive part of the first term."""
    honest = settle_time_bound(load=load, alpha=alpha)
    if honest is None or initial_tasks <= load:
        return honest
    return log((initial_tasks - load) / (float(alpha) * (floor(load) + 1) - load)) + honest


def _distance(mass: Callable[[Fraction, Fraction], Fraction], least: int) -> Honest:
    """Return the constant of Cor. 3 with another mass, from u(0) and alpha ceil(load), and least factor."""

    def broken(*, load: float, alpha: str, initial_tasks: float = 0.0) -> float:
        exact, low = Fraction(str(load)), floor(load)
        total = mass(Fraction(str(initial_tasks)), Fraction(alpha) * (low + 1))
        return float((exact - low) * max(Fraction(least), total / exact - 1))

    return broken


def _opposite(*, load: float, alpha: str) -> bool:
    return not can_settle_above(load=load, alpha=alpha)


@pytest.mark.parametrize(
    ("module", "function", "broken", "claim"),
    [
        (bound_terms, "settle_time_bound", _time, "first-term-of-the-bound"),
        (learning_cases, "settle_time_bound", _time, "settling-time-bound"),
        (after_settling, "settled_distance_bound", _distance(min, 0), "settled-and-balanced"),
        (after_settling, "settled_distance_bound", _distance(min, -(10**6)), "settled-and-balanced"),
        (after_settling, "settled_distance_bound", _distance(lambda start, _: start, 1), "settled-and-balanced"),
        (after_settling, "settled_distance_bound", _distance(lambda _, most: most, 1), "settled-and-balanced"),
        (after_settling, "settled_distance_bound", _distance(max, 1), "settled-and-balanced"),
        (after_settling, "settled_distance_bound", _distance(lambda *_: Fraction(), 1), "settled-and-balanced"),
        (optimality, "can_settle_above", lambda **_: True, "few-loads-violate-the-condition"),
        (optimality, "can_settle_above", lambda **_: False, "few-loads-violate-the-condition"),
        (optimality, "can_settle_above", _opposite, "few-loads-violate-the-condition"),
    ],
)
def test_another_formula_turns_its_claim_red(
    module: ModuleType, function: str, broken: Honest, claim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, function, broken)
    lab = Lab(quick=True) if module is learning_cases else LAB  # its runs end after the bound
    assert not outcome(claim, lab).as_expected
