"""A wrong function of the package turns the claims about it red: claims must not recompute what they check."""

from collections.abc import Callable
from math import floor
from types import ModuleType

import numpy as np
import pytest

from evenly.paper.claims import CLAIMS, balance, coupling, diffusion_starts, masses, tails, uniqueness
from evenly.paper.claims.claim import Outcome, Verdict
from evenly.paper.experiments.lab import Lab
from evenly.theory.balance import FloatArray, optimal_thresholds
from evenly.theory.diffusion.fractional import ornstein_uhlenbeck
from evenly.theory.diffusion.whole import Reflected, reflected
from evenly.theory.fluid.mass import tail_mass_bound
from evenly.theory.fluid.modes import assignment

pytestmark = pytest.mark.full


def _one_too_many(load: float) -> tuple[int, ...]:
    return tuple(threshold + 1 for threshold in optimal_thresholds(load))


def _only_the_floor(load: float) -> tuple[int, ...]:
    return (floor(load),)


def _falls_too_fast(start: float, limit: float, elapsed: FloatArray) -> FloatArray:
    return tail_mass_bound(start, limit, 1.5 * elapsed)


def _forgets_the_limit(start: float, limit: float, elapsed: FloatArray) -> FloatArray:
    return tail_mass_bound(start, 0.0, elapsed)


def _one_level_lower(q: FloatArray, load: float, threshold: int) -> FloatArray:
    return np.roll(assignment(q, load, threshold), -1)


def _one_level_more(load: float, levels: int) -> Reflected:
    return reflected(load + 1, levels + 1)


BREAKS: dict[str, tuple[ModuleType, str, Callable[..., object], tuple[str, ...]]] = {
    "optimal thresholds, one too large": (
        balance,
        "optimal_thresholds",
        _one_too_many,
        ("floor-of-the-load-balances", "whole-loads-have-two-optima"),
    ),
    "optimal thresholds, only the floor": (
        balance,
        "optimal_thresholds",
        _only_the_floor,
        ("floor-of-the-load-balances", "whole-loads-have-two-optima"),
    ),
    "one optimal threshold at whole loads and below 1": (
        uniqueness,
        "optimal_thresholds",
        _only_the_floor,
        ("no-other-threshold-balances", "unique-below-load-one"),
    ),
    "masses fall too fast": (
        masses,
        "tail_mass_bound",
        _falls_too_fast,
        ("exponential-bound", "total-mass"),
    ),
    "masses fall to zero": (
        masses,
        "tail_mass_bound",
        _forgets_the_limit,
        ("exponential-bound", "total-mass"),
    ),
    "tail masses fall too fast": (tails, "tail_mass_bound", _falls_too_fast, ("tail-mass-bounds",)),
    "tail masses fall to zero": (tails, "tail_mass_bound", _forgets_the_limit, ("tail-mass-bounds",)),
    "tasks go one level lower": (masses, "assignment", _one_level_lower, ("total-mass",)),
    "no random routing": (
        coupling,
        "random_routing_probability",
        lambda **_: (0.0, 0.0),
        ("random-routing-vanishes",),
    ),
    "fluctuations of another whole load": (
        diffusion_starts,
        "reflected",
        _one_level_more,
        ("whole-load-from-unbalanced-starts",),
    ),
    "fluctuations of another load": (
        diffusion_starts,
        "ornstein_uhlenbeck",
        lambda load: ornstein_uhlenbeck(4 * load + 0.5),
        ("fluctuations-from-unbalanced-starts",),
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_wrong_function_turns_its_claims_red(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, function, broken, red = BREAKS[name]
    monkeypatch.setattr(module, function, broken)
    lab = Lab(quick=True)
    for claim in CLAIMS:
        if claim.name in red:
            outcome = Outcome(claim, tuple(claim.measure(lab)))
            assert outcome.verdict is Verdict.FAILS, claim.name
            assert not outcome.as_expected
