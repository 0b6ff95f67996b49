"""Claims about how soon the learned threshold settles.

Paper: Sec. 4.6.
"""

from __future__ import annotations

from math import floor, log

import numpy as np

from evenly.paper.claims.claim import Claim, Kind, Measured, Note
from evenly.paper.claims.judge import at_least, at_most, equals, is_exactly, is_near
from evenly.paper.experiments.lab import Lab
from evenly.paper.experiments.learning_cases import (
    EXACT,
    FROM_EMPTY,
    OVERLOADED,
    POOLS,
    Case,
    Start,
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

NEARLY_TIGHT = Case(0.5, "0.51", 20, 20.0)


def _bound(lab: Lab) -> list[Measured]:
    late, unfilled, elsewhere = [], [], 0
    for case, path in solved(lab):
        if case.bound is not None:
            late.append(settled_at(path) - case.bound)
            unfilled.append(float(np.max(1 - path.occupancy[path.times > case.bound, case.floor])))
            elsewhere += int(path.threshold[-1] != case.floor)
    for start, path in (*concentrated(lab), *mixed(lab)):
        late.append(settled_at(path) - bound_of(start))
        unfilled.append(float(np.max(1 - path.occupancy[path.times > bound_of(start), floor(start.load)])))
        elsewhere += int(path.threshold[-1] != floor(start.load))
    closest, path = concentrated(lab)[-1]
    reached = settled_at(path) / bound_of(closest)
    return [
        at_most("largest excess of a settling time over its bound", max(late), EXACT),
        at_most("largest fraction of pools below floor(load) after the bound", max(unfilled), EXACT),
        is_exactly("systems that settle elsewhere", elsewhere, 0),
        at_least("settling time over its bound, all tasks in very few pools", reached, 0.95)
        .about(Kind.REMARK)
        .named("reached"),
        is_near("the same, by its formula", reached, _filling_time(closest) / bound_of(closest), 1e-6).about(
            Kind.REMARK
        ),
    ]


def _filling_time(start: Start) -> float:
    """Return when all pools but the few that have all tasks at time 0 have floor(load) tasks."""
    return log(start.load / (start.load - (1 - start.occupancy[1]) * floor(start.load)))


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
            "the same from few pools at load 5.5, where the first term is 0",
            settled_at(path) / bound_of(near),
            0.95,
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
            "% in quick runs) and none in the others, and random loads, alphas, thresholds and occupancies (60, "
            "or 15 in quick runs): the last change of the threshold against the bound, and the fraction of pools "
            "below floor(load) tasks after the bound, up to the solver's error."
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
                "first is zero. The sum might be reduced where both are positive.",
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
)
