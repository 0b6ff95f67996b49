"""Claims about the two terms of the bound on the settling time.

Paper: Sec. 4.6, after Prop. 7.
"""

from __future__ import annotations

from math import log

import numpy as np

from evenly.paper.claims.claim import Claim, Kind, Measured, Note, Verdict
from evenly.paper.claims.judge import at_least, at_most, is_exactly, is_near
from evenly.paper.experiments.lab import Lab
from evenly.paper.experiments.learning_cases import Case, settled_at
from evenly.theory.persistence import full_share_above
from evenly.theory.tuning import settle_time_bound

FROM = 5.58  # alpha ceil(load) for load 5.5 and alpha 0.93: the first term is positive from more tasks per pool
CLOSEST = "0.9166666667"  # just above 5.5/6


def _terms_of(load: float, alpha: str, initial: float) -> tuple[float, float]:
    """Return the two terms of the bound: the first is 0 from an empty system."""
    bound, second = (settle_time_bound(load=load, alpha=alpha, initial_tasks=start) for start in (initial, 0.0))
    assert bound is not None
    assert second is not None
    return bound - second, second


def _positive() -> list[Measured]:
    """Compare where the terms are positive with the words as printed, and with the corrected ones."""
    starts = [round(5.5 + step / 100, 2) for step in range(1, 51)]
    first = {start: _terms_of(5.5, "0.93", start)[0] for start in starts}
    second = {load: _terms_of(load, "0.97", load + 1)[1] for load in (0.2, 0.5, 0.9, 1.2, 2.5, 5.5)}
    return [
        is_exactly(
            "starts where the first term is not zero, or positive above alpha ceil(load)", _odd(first, FROM), 0
        ),
        is_exactly("loads where the second is not zero, or positive above load 1", _odd(second, 1.0), 0),
        is_exactly("starts above the load with a first term of zero", list(first.values()).count(0.0), 0)
        .about(Kind.ERRATUM)
        .named("zero"),
        is_exactly("loads with a second term of zero", list(second.values()).count(0.0), 0).about(Kind.ERRATUM),
    ]


def _odd(terms: dict[float, float], least: float) -> int:
    """Count the terms that are not zero up to `least` and positive above it."""
    return sum(not (term > 0 if place > least else term == 0) for place, term in terms.items())


def _terms(lab: Lab) -> list[Measured]:
    starts = (5.58, 5.59, 5.7, 6.0, 7.0, 9.0, 20.0)
    by_start = [_terms_of(5.5, "0.93", initial)[0] for initial in starts]
    by_load = [_terms_of(load, "0.97", 7.0)[0] for load in (2.2, 2.5, 2.8, 2.9, 2.909)]
    close = [_terms_of(5.5, alpha, 9.0)[0] for alpha in ("0.916667", "0.91666667", CLOSEST)]
    loads, begins = lab.pick((2.2, 2.5, 2.8, 2.9), (2.2, 2.9)), lab.pick((6.0, 7.0, 9.0), (6.0, 9.0))
    falls = [settled_at(Case(load, "0.97", 3, 3.0).solved(6.0)) for load in loads]
    later = [settled_at(Case(5.5, "0.93", 6, initial).solved(6.0)) for initial in begins]
    finite = settled_at(Case(5.5, CLOSEST, 9, 9.0).solved(6.0))
    # From alpha * ceil(load) - load = 2e-6 to 2e-8 to 2e-10: twice log(100).
    return [
        *_positive(),
        at_least("smallest growth of the first term with u(0), 5.58 to 20", float(np.diff(by_start).min()), 1e-3),
        at_least("smallest growth with the load, 2.2 to 2.909", float(np.diff(by_load).min()), 1e-3),
        is_near("growth as alpha ceil(load) - load falls to 1/10000", close[-1] - close[0], log(10_000), 1e-3),
        at_least("smallest growth of a fluid settling time with the load", float(np.diff(falls).min()), 1e-3),
        at_least("smallest growth of a fluid settling time with u(0)", float(np.diff(later).min()), 1e-3),
        at_most("settling time where alpha ceil(load) - load is 2e-10, fluid", finite, 3)
        .about(Kind.REMARK)
        .named("finite"),
        at_least("the first term there", close[-1], 20).about(Kind.REMARK).named("first"),
        at_most("share of pools that keeps the threshold at 6 there", full_share_above(5.5), 5.5 / 6)
        .about(Kind.REMARK)
        .named("full"),
    ]


CLAIMS = (
    Claim(
        name="first-term-of-the-bound",
        place="Sec. 4.6, after Prop. 7",
        labels=("Prop. 7",),
        statement=(
            "The first term of the bound on the settling time is positive from more than alpha ceil(load) initial "
            "tasks per pool, the second at loads above 1. The first grows with the initial tasks, and without "
            "limit as alpha ceil(load) - load approaches 0: if the load is just below a whole number, it may take "
            "long until the threshold falls to floor(load)."
        ),
        how=(
            "The first term from 5.51 to 6 tasks per pool in steps of 0.01, and the second for loads from 0.2 to "
            "5.5: the first must be positive above alpha ceil(load), the second above load 1, and both zero up to "
            "there. Then the first term for more and more initial tasks (load 5.5, alpha 0.93), growing loads "
            "(alpha 0.97, from 7 tasks per pool) and alphas closer and closer to 5.5/6, where it must grow by "
            "log(10000); and the settling times of fluid systems, which must also grow with the load and with "
            "the initial tasks."
        ),
        notes=(
            Note(
                Kind.ERRATUM,
                "As printed, both terms are positive from more initial tasks than the load. But the first is "
                f"zero, and does not grow, up to alpha ceil(load) of them per pool, here {FROM}: at {{zero:.0f}} "
                "of the starts that were tested. The second is zero at loads below one.",
            ),
            Note(
                Kind.REMARK,
                "The settling time itself need not be long: where the first term is {first:.1f}, the "
                "threshold settles at {finite:.2f}. It falls from ceil(load) when the fraction of pools there "
                "drops to alpha, and in the equilibrium of that threshold the fraction is {full:.2f}, less than "
                "load / ceil(load).",
            ),
        ),
        measure=_terms,
        expected=Verdict.ERRATUM,
    ),
)
