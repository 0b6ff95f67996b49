"""Claims about how soon the learned threshold settles.

Paper: Sec. 4.6.
"""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np

from evenly.paper.claim import Claim, Measured
from evenly.paper.claims.learning_cases import (
    EXACT,
    FROM_EMPTY,
    NOISE,
    OVERLOADED,
    Case,
    large_systems,
    last_change,
    overloaded,
    settled_at,
    sizes,
    solved,
)
from evenly.paper.lab import Lab
from evenly.paper.measure import at_most, equals, is_exactly, is_near
from evenly.sim import simulate


def _bound(lab: Lab) -> list[Measured]:
    late, unfilled, elsewhere = [], [], 0
    for case, path in solved(lab):
        if case.bound is not None:
            late.append(settled_at(path) - case.bound)
            unfilled.append(float(np.max(1 - path.occupancy[path.times > case.bound, case.floor])))
            elsewhere += int(path.threshold[-1] != case.floor)
    return [
        at_most("settling time less its bound, at most", max(late), EXACT),
        at_most("pools below floor(load) after it, at most", max(unfilled), EXACT),
        is_exactly("systems that settle elsewhere", elsewhere, 0),
    ]


def _tight(lab: Lab) -> list[Measured]:
    numbers = []
    for load, alpha in ((2.2, "0.85"), (5.5, "0.93"), (9.3, "0.96")):
        case = Case(load, alpha, 0, 0.0)
        time = log(load / (load - case.floor))
        numbers.append(
            is_near(f"settling time, load {load}, fluid", settled_at(case.solved(time + 1)), time, 1e-6)
        )
    # The total passes 5 n at a time whose exponential has the mean 11, so that its own mean is less by half its
    # variance, 10 / n; and it takes about as long to fill the last gaps.
    pools, time = 2000, log(OVERLOADED.load / (OVERLOADED.load - OVERLOADED.floor))
    result = simulate(
        FROM_EMPTY.scenario(pools, 5.0), replications=lab.pick(64, 24), seed=lab.seed_for("from empty")
    )
    since = [ending.since for ending in result.endings]
    return [*numbers, equals(f"settling time, load 5.5, {pools} pools", since, time, 40 / pools)]


def _loose(lab: Lab) -> list[Measured]:
    bound = OVERLOADED.bound
    assert bound is not None
    fluid_time = settled_at(overloaded(lab))
    found = last_change(large_systems(lab)[-1])
    return [
        is_near("bound", bound, log(3.5 / 0.08) + log(11), EXACT),
        at_most("settling time, fluid", fluid_time, bound / 2),
        at_most(f"settling time, {sizes(lab)[-1]} pools", found, bound / 2),
    ]


def _uniform(lab: Lab) -> list[Measured]:
    bound, load = OVERLOADED.bound, OVERLOADED.load
    assert bound is not None
    constant = (2 * OVERLOADED.initial - load) * exp(-bound)
    numbers = []
    for run, size in zip(large_systems(lab), sizes(lab), strict=True):
        late = run.times >= bound
        q = run.occupancy[late]
        growth = np.exp(run.times[late] - bound)
        # Gaps below floor(load) are a queue with a ratio below 1/2: sixty at once have a probability below 1e-15.
        numbers.append(at_most(f"distance up to level 5, {size} pools", float(np.max(1 - q[:, :6])), 60 / size))
        above = np.abs(q[:, 6:9] - [0.5, 0.0, 0.0]).max(axis=1)
        limit = constant + NOISE * sqrt(load / size) * float(growth[-1])
        numbers.append(at_most(f"weighted distance above, {size} pools", float(np.max(above * growth)), limit))
    wrong = sum(int((run.threshold[run.times >= bound] != 5).sum()) for run in large_systems(lab))
    return [is_exactly("times after the bound with another threshold", wrong, 0), *numbers[-4:]]


CLAIMS = (
    Claim(
        name="settling-time-bound",
        place="Sec. 4.6, Prop. 7",
        labels=("Prop. 7",),
        statement=(
            "If Cor. 2's condition holds and the load is not whole, the threshold is floor(load) and all pools "
            "have that many tasks from a time on that the load, alpha and the tasks at the start decide."
        ),
        how=(
            "All fluid systems above for which the condition holds: the last change of the threshold against the "
            "bound, and the fraction of pools with floor(load) tasks after it, up to the solver's error."
        ),
        measure=_bound,
    ),
    Claim(
        name="settling-time-tight",
        place="Sec. 4.6, after Prop. 7",
        labels=("Prop. 7",),
        statement="The bound on the settling time is met exactly by a system that starts empty.",
        how=(
            "The last change of the threshold of fluid systems against log(load / (load - floor(load))), and its "
            "mean over simulated systems, up to chance and 40/n for the curvature and the last gaps."
        ),
        measure=_tight,
    ),
    Claim(
        name="settling-time-loose",
        place="Sec. 4.6, after Prop. 7",
        labels=("Prop. 7",),
        statement="From an overload the bound on the settling time leaves room and could be made smaller.",
        how=(
            "Load 5.5, alpha 0.93, from 9 tasks a pool: the last change of the threshold in the fluid limit and "
            "in the largest simulated system, which must come in less than half the time of the bound, log(3.5 / "
            "0.08) + log 11."
        ),
        note=(
            "Both terms are generous here: the threshold is at 5 after 2.08 task times, against a first term of "
            "3.78 and a sum of 6.18."
        ),
        measure=_loose,
    ),
    Claim(
        name="settled-and-balanced",
        place="Sec. 4.6, Cor. 3",
        labels=("Cor. 3",),
        statement=(
            "After the bound, and up to any finite time, large systems have threshold floor(load), all pools have "
            "that many tasks, and what is above approaches its balanced value at least like exp(-t)."
        ),
        how=(
            "Load 5.5, alpha 0.93, from 9 tasks a pool, up to 200000 pools (10000 in quick runs) on the common "
            "space: the largest distances after the bound, with c = (2 u(0) - load) exp(-bound) for the levels "
            "above, up to 60 gaps and seven deviations sqrt(load/n)."
        ),
        measure=_uniform,
    ),
)
