"""Claims about how soon the learned threshold settles.

Paper: Sec. 4.6.
"""

from __future__ import annotations

from math import floor, log

import numpy as np

from evenly.paper.claims.claim import Claim, Kind, Measured, Note, Verdict
from evenly.paper.claims.judge import at_least, at_most, equals, is_exactly, is_near
from evenly.paper.experiments.lab import Lab
from evenly.paper.experiments.learning_cases import (
    EXACT,
    FROM_EMPTY,
    OVERLOADED,
    POOLS,
    Case,
    Uneven,
    bound_of,
    concentrated,
    from_empty,
    large_systems,
    last_change,
    mixed,
    overloaded,
    settled_at,
    sizes,
    solved,
)
from evenly.theory.persistence import full_share_above
from evenly.theory.tuning import settle_time_bound

FROM = 5.58  # alpha ceil(load) for load 5.5 and alpha 0.93: the first term is positive from more tasks per pool
CLOSEST = "0.9166666667"  # just above 5.5/6
NEARLY_TIGHT = Case(0.5, "0.51", 20, 20.0)


def _bound(lab: Lab) -> list[Measured]:
    late, unfilled, elsewhere = [], [], 0
    for case, path in solved(lab):
        if case.bound is not None:
            late.append(settled_at(path) - case.bound)
            unfilled.append(float(np.max(1 - path.occupancy[path.times > case.bound, case.floor])))
            elsewhere += int(path.threshold[-1] != case.floor)
    for start, path in (*concentrated(lab), *mixed(lab)):
        late.append(settled_at(path) - start.bound)
        unfilled.append(float(np.max(1 - path.occupancy[path.times > start.bound, floor(start.load)])))
        elsewhere += int(path.threshold[-1] != floor(start.load))
    closest, path = concentrated(lab)[-1]
    reached = settled_at(path) / closest.bound
    return [
        at_most("largest excess of a settling time over its bound", max(late), EXACT),
        at_most("largest fraction of pools below floor(load) after the bound", max(unfilled), EXACT),
        is_exactly("systems that settle elsewhere", elsewhere, 0),
        at_least("settling time over its bound, all tasks in very few pools", reached, 0.95)
        .about(Kind.REMARK)
        .named("reached"),
        is_near("the same, by its formula", reached, _filling_time(closest) / closest.bound, 1e-6).about(
            Kind.REMARK
        ),
    ]


def _filling_time(start: Uneven) -> float:
    """Return when all pools but the few that have all tasks at time 0 have floor(load) tasks."""
    return log(start.load / (start.load - (1 - start.share) * floor(start.load)))


def _tight(lab: Lab) -> list[Measured]:
    numbers = []
    for load, alpha in ((2.2, "0.85"), (5.5, "0.93"), (9.3, "0.96")):
        case = Case(load, alpha, 0, 0.0)
        time = bound_of(case)
        numbers.append(
            is_near(f"settling time, load {load}, fluid", settled_at(case.solved(time + 1)), time, 1e-6)
        )
    # The total passes 5 n at a time whose exponential has mean 11, so the mean of that time is less by half its
    # variance, 10 / n; filling the last gaps takes about as long.
    pools, time = POOLS, bound_of(FROM_EMPTY)
    since = [ending.since for ending in from_empty(lab).endings]
    return [*numbers, equals(f"settling time, load 5.5, {pools} pools", since, time, 40 / pools)]


def _loose(lab: Lab) -> list[Measured]:
    bound = bound_of(OVERLOADED)
    second = bound_of(FROM_EMPTY)
    fluid_time = settled_at(overloaded(lab))
    found = last_change(large_systems(lab)[-1])
    drained = settled_at(NEARLY_TIGHT.solved(bound_of(NEARLY_TIGHT) + 0.2))
    near, path = concentrated(lab)[0]
    return [
        is_near("bound", bound, log(3.5 / 0.08) + log(11), EXACT).named("bound"),
        at_most("settling time, fluid", fluid_time, bound / 2).named("time"),
        at_most(f"settling time, {sizes(lab)[-1]} pools", found, bound / 2),
        is_near("second term of the bound", second, log(11), EXACT).about(Kind.REMARK).named("second"),
        at_least(
            "settling time over its bound from an overload below load 1", drained / bound_of(NEARLY_TIGHT), 0.998
        )
        .about(Kind.REMARK)
        .named("drained"),
        at_least(
            "the same from few pools at load 5.5, where the first term is 0", settled_at(path) / near.bound, 0.95
        )
        .about(Kind.REMARK)
        .named("filled"),
    ]


def _never_above(lab: Lab) -> list[Measured]:
    starts = [(case, path) for case, path in solved(lab) if case.initial <= case.load]
    for load, threshold, initial in ((5.5, 9, 5.4), (2.2, 9, 2.0), (2.9, 0, 2.9)):
        case = Case(load, "0.97", threshold, initial)
        starts.append((case, case.solved()))
    wrong = 0
    for case, path in starts:
        visited = [case.threshold, *path.change_thresholds.tolist()]
        low = next(place for place, level in enumerate(visited) if level <= case.floor)
        wrong += sum(level > case.floor for level in visited[low:])
    above = sum(float(sample.threshold_time[FROM_EMPTY.floor + 1 :].sum()) for sample in from_empty(lab).windows)
    return [
        is_exactly("updates of fluid systems to more than floor(load)", wrong, 0),
        at_least("fluid systems", len(starts), 6),
        is_exactly("time of simulated systems above floor(load)", above, 0),
    ]


def _terms_of(load: float, alpha: str, initial: float) -> tuple[float, float]:
    """Return the two terms of the bound: the first is 0 from an empty system."""
    bound, second = (settle_time_bound(load=load, alpha=alpha, initial_tasks=start) for start in (initial, 0.0))
    assert bound is not None
    assert second is not None
    return bound - second, second


def _positive() -> list[Measured]:
    """Compare where the terms are positive with the words as printed, and with the corrected ones."""
    starts = [round(5.5 + step / 100, 2) for step in range(1, 51)]
    first = [_terms_of(5.5, "0.93", start)[0] > 0 for start in starts]
    second = {load: _terms_of(load, "0.97", load + 1)[1] > 0 for load in (0.2, 0.5, 0.9, 1.2, 2.5, 5.5)}
    wrong = sum(positive != (start > FROM) for positive, start in zip(first, starts, strict=True))
    return [
        is_exactly("starts where the first term is not positive exactly above alpha ceil(load)", wrong, 0),
        is_exactly(
            "loads where the second is not positive exactly above 1",
            sum(x != (k > 1) for k, x in second.items()),
            0,
        ),
        is_exactly("starts above the load with a first term of zero", first.count(False), 0)
        .about(Kind.ERRATUM)
        .named("zero"),
        is_exactly("loads with a second term of zero", list(second.values()).count(False), 0).about(Kind.ERRATUM),
    ]


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
        name="settling-time-bound",
        place="Sec. 4.6, Prop. 7",
        labels=("Prop. 7",),
        statement=(
            "If Cor. 2's condition holds and the load is not whole, then from a time on that depends on the load, "
            "alpha and the initial tasks, the threshold is floor(load) and all pools have at least that many "
            "tasks."
        ),
        how=(
            "All fluid systems of Prop. 6 above for which the condition holds, from 0, 0.6, 6.5 and 7 tasks per "
            "pool (0.6 and 7 in quick runs); then uneven starts, with all tasks in 70 % to 0.4 % of the pools (1 "
            "% in quick runs) and none in the others: the last change of the threshold against the bound, and "
            "the fraction of pools below floor(load) tasks after the bound, up to the solver's error."
        ),
        notes=(
            Note(
                Kind.REMARK,
                "The bound is nearly tight from as many tasks as the load, too, if few pools have all of them: "
                "the threshold settles at {reached:.1%} of it. As their share falls to zero, it settles at "
                "the bound.",
            ),
        ),
        measure=_bound,
    ),
    Claim(
        name="settling-time-tight",
        place="Sec. 4.6, after Prop. 7",
        labels=("Prop. 7",),
        statement="A system that starts empty settles exactly at the bound on the settling time.",
        how=(
            "The last change of the threshold in fluid systems against the bound, and its "
            "mean over 400 simulated systems (60 in quick runs) of 2000 pools, up to chance and 40/n for the "
            "curvature and the last gaps."
        ),
        measure=_tight,
    ),
    Claim(
        name="settling-time-loose",
        place="Sec. 4.6, after Prop. 7; Sec. 5.1, Fig. 4 (right)",
        labels=("Prop. 7", "Fig. 4"),
        statement="From 9 tasks per pool at load 5.5 the bound on the settling time is loose. Its second term "
        "could possibly be reduced.",
        how=(
            "Load 5.5, alpha 0.93, from 9 tasks per pool: the last change of the threshold in the fluid limit "
            "and in the largest simulated system, which must come before half the bound, log(3.5 / 0.08) + log "
            "11. Then how much of the bound is reached from 20 tasks per pool at load 0.5, alpha 0.51, and from "
            "5.5 tasks per pool at load 5.5, all of them in 1 % of the pools."
        ),
        notes=(
            Note(
                Kind.REMARK,
                "The threshold settles at {time:.2f}, the bound is {bound:.2f}, and its second term "
                "{second:.2f}. Each term by itself is nearly reached: {drained:.1%} of the bound from an "
                f"overload of {NEARLY_TIGHT.initial:g} tasks per pool at load {NEARLY_TIGHT.load}, where the "
                "second term is zero, and {filled:.1%} from as many tasks as the load in few pools, where the "
                "first is zero. What can be reduced is the sum, where both are positive.",
            ),
        ),
        measure=_loose,
    ),
    Claim(
        name="never-above-from-below",
        place="Sec. 4.6, after Prop. 7",
        labels=("Prop. 7",),
        statement=(
            "If the initial tasks per pool are at most the load, the threshold never exceeds floor(load) again "
            "once it is at most floor(load)."
        ),
        how=(
            "The fluid systems above that start in this way, and three more, from 5.4, 2 and 2.9 tasks per pool "
            "at loads 5.5, 2.2 and 2.9, two of them with threshold 9, over 30 mean task times: the values that "
            "the threshold takes. Then the simulated systems of 2000 pools that start empty, load 5.5, over 4 "
            "mean task times, where it would take a total nine deviations above its mean."
        ),
        measure=_never_above,
    ),
    Claim(
        name="first-term-of-the-bound",
        place="Sec. 4.6, after Prop. 7",
        labels=("Prop. 7",),
        statement=(
            "From more initial tasks than the load, both terms of the bound on the settling time are positive. "
            "The first grows with the initial tasks, and without limit as alpha ceil(load) - load approaches 0: "
            "if the load is just below a whole number, it may take long until the threshold falls to floor(load)."
        ),
        how=(
            "The first term from 5.51 to 6 tasks per pool in steps of 0.01, and the second for loads from 0.2 to "
            "5.5: the first must be positive exactly above alpha ceil(load), and the second exactly above load "
            "1. Then the first term for more and more initial tasks (load 5.5, alpha 0.93), growing loads (alpha "
            "0.97, from 7 tasks per pool) and alphas closer and closer to 5.5/6, where it must grow by "
            "log(10000); and the settling times of fluid systems, which must also grow with the load and with "
            "the initial tasks."
        ),
        notes=(
            Note(
                Kind.ERRATUM,
                "The first term is zero, and does not grow, up to alpha ceil(load) initial tasks per pool, here "
                f"{FROM}: at {{zero:.0f}} of the starts that were tested. The second is zero at loads below one. "
                "Corrected, the first term is positive if u(0) > alpha ceil(load), and the second if the load "
                "is above one.",
            ),
            Note(
                Kind.REMARK,
                "The settling time itself stays finite in that limit: where the first term is {first:.1f}, the "
                "threshold settles at {finite:.2f}. It falls from ceil(load) when the fraction of pools there "
                "drops to alpha, and in the equilibrium of that threshold the fraction is {full:.2f}, less than "
                "load / ceil(load).",
            ),
        ),
        measure=_terms,
        expected=Verdict.ERRATUM,
    ),
)
