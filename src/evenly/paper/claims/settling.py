"""Claims about how soon the learned threshold settles.

Paper: Sec. 4.6.
"""

from __future__ import annotations

from math import exp, floor, log, sqrt

import numpy as np
from numpy.typing import NDArray

from evenly.paper.claims.claim import Claim, Kind, Measured, Note
from evenly.paper.claims.judge import at_least, at_most, equals, is_exactly, is_near
from evenly.paper.experiments.lab import Lab
from evenly.paper.experiments.learning_cases import (
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
from evenly.sim import Result, simulate
from evenly.theory.fluid.path import FluidPath
from evenly.theory.tuning import settle_time_bound

FROM_EMPTY_POOLS = 2000


def _bound(lab: Lab) -> list[Measured]:
    late, unfilled, elsewhere = [], [], 0
    for case, path in solved(lab):
        if case.bound is not None:
            late.append(settled_at(path) - case.bound)
            unfilled.append(float(np.max(1 - path.occupancy[path.times > case.bound, case.floor])))
            elsewhere += int(path.threshold[-1] != case.floor)
    return [
        at_most("largest excess of a settling time over its bound", max(late), EXACT),
        at_most("largest fraction of pools below floor(load) after the bound", max(unfilled), EXACT),
        is_exactly("systems that settle elsewhere", elsewhere, 0),
    ]


def _from_empty(lab: Lab) -> Result:
    """Simulate systems that start empty until all of them have settled: sixteen deviations later."""
    scenario = FROM_EMPTY.scenario(FROM_EMPTY_POOLS, 4.0)
    runs, seed = lab.pick(400, 30), lab.seed_for("from empty")
    return lab.once("from empty", lambda: simulate(scenario, replications=runs, seed=seed))


def _tight(lab: Lab) -> list[Measured]:
    numbers = []
    for load, alpha in ((2.2, "0.85"), (5.5, "0.93"), (9.3, "0.96")):
        case = Case(load, alpha, 0, 0.0)
        time = log(load / (load - case.floor))
        numbers.append(
            is_near(f"settling time, load {load}, fluid", settled_at(case.solved(time + 1)), time, 1e-6)
        )
    # The total passes 5 n at a time whose exponential has mean 11, so the mean of that time is less by half its
    # variance, 10 / n; filling the last gaps takes about as long.
    pools, time = FROM_EMPTY_POOLS, log(FROM_EMPTY.load / (FROM_EMPTY.load - FROM_EMPTY.floor))
    since = [ending.since for ending in _from_empty(lab).endings]
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


def _growth(path: FluidPath, case: Case) -> tuple[float, float]:
    """Return the largest distance from balance above floor(load), times exp(t - bound), and its bound.

    Once floor(load) is full, the mass above it is the total minus floor(load), so its distance to the balanced one
    is |u(0) - load| exp(-t). From the settling time on, the mass above ceil(load) dies out like exp(-t) (Prop. 5).
    A level is the difference of two masses, hence the sum of both. After ten mean task times the factor
    exp(t - bound) makes rounding errors of 1e-12 visible.
    """
    bound, high = case.bound, case.floor + 1
    assert bound is not None
    settled = int(np.searchsorted(path.times, settled_at(path)))
    tail = float(path.tail_mass(high + 1)[settled]) * exp(path.times[settled] - bound)
    late = (path.times >= bound) & (path.times <= bound + 10)
    distance = _from_balance(path.occupancy[late], case)[:, high:].max(axis=1)
    weighted = distance * np.exp(path.times[late] - bound)
    return float(weighted.max()), abs(case.initial - case.load) * exp(-bound) + tail


def _from_balance(occupancy: NDArray[np.float64], case: Case) -> NDArray[np.float64]:
    """Return |q(i) - q*(i)| for each time and level i."""
    levels = np.arange(occupancy.shape[1])
    return np.asarray(np.abs(occupancy - np.clip(case.load - levels + 1, 0.0, 1.0)))


def _uniform(lab: Lab) -> list[Measured]:
    bound, high = OVERLOADED.bound, OVERLOADED.floor + 1
    assert bound is not None
    value, constant = _growth(OVERLOADED.solved(bound + 10, 401), OVERLOADED)
    ratios = [_growth(path, case) for case, path in solved(lab) if case.bound is not None]
    runs = list(zip(large_systems(lab), sizes(lab), strict=True))
    changes = sum(int((run.change_times > bound).sum()) + int(run.threshold[-1] != high - 1) for run, _ in runs)
    gaps, numbers = 0, []
    for run, size in runs:
        late = run.times >= bound
        gaps = max(gaps, int(np.max(size - run.pools_at_least[late, high - 1])))
        distance = float(_from_balance(run.occupancy[late], OVERLOADED)[:, high:].max())
        limit = constant + NOISE * sqrt(OVERLOADED.load / size)
        numbers.append(at_most(f"largest distance above level 5, {size} pools", distance, limit))
    return [
        is_exactly("changes of a threshold after the bound, and wrong thresholds then", changes, 0),
        # Gaps form a queue with ratio 0.45, or 0.65 if the total is four deviations below its mean: the
        # probability of sixty at once is below 1e-11.
        at_most("most pools below 5 tasks, all sizes", gaps, 60),
        *numbers,
        at_most("distance times exp(t - bound), fluid", value, constant),
        at_most("the same divided by its constant, other fluid systems", max(x / c for x, c in ratios), 1 + 1e-6),
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
    above = sum(float(sample.threshold_time[FROM_EMPTY.floor + 1 :].sum()) for sample in _from_empty(lab).windows)
    return [
        is_exactly("updates of fluid systems to more than floor(load)", wrong, 0),
        at_least("fluid systems", len(starts), 6),
        is_exactly("time of simulated systems above floor(load)", above, 0),
    ]


def _first_term(load: float, alpha: str, initial: float) -> float:
    """Return the bound minus its second term."""
    bound = settle_time_bound(load=load, alpha=alpha, initial_tasks=initial)
    assert bound is not None
    return bound - log(load / (load - floor(load)))


def _terms(lab: Lab) -> list[Measured]:
    starts = (5.7, 6.0, 7.0, 9.0, 20.0)
    by_start = [_first_term(5.5, "0.93", initial) for initial in starts]
    by_load = [_first_term(load, "0.97", 7.0) for load in (2.2, 2.5, 2.8, 2.9, 2.909)]
    close = [_first_term(5.5, alpha, 9.0) for alpha in ("0.916667", "0.91666667", "0.9166666667")]
    loads, begins = lab.pick((2.2, 2.5, 2.8, 2.9), (2.2, 2.9)), lab.pick((6.0, 7.0, 9.0), (6.0, 9.0))
    falls = [settled_at(Case(load, "0.97", 3, 3.0).solved(6.0)) for load in loads]
    later = [settled_at(Case(5.5, "0.93", 6, initial).solved(6.0)) for initial in begins]
    # From alpha * ceil(load) - load = 2e-6 to 2e-8 to 2e-10: twice log(100).
    return [
        at_least("smallest growth of the first term with u(0), 5.7 to 20", float(np.diff(by_start).min()), 1e-3),
        at_least("smallest growth with the load, 2.2 to 2.909", float(np.diff(by_load).min()), 1e-3),
        is_near("growth as alpha ceil(load) - load falls to 1/10000", close[-1] - close[0], log(10_000), 1e-3),
        at_least("smallest growth of a fluid settling time with the load", float(np.diff(falls).min()), 1e-3),
        at_least("smallest growth of a fluid settling time with u(0)", float(np.diff(later).min()), 1e-3),
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
            "pool (0.6 and 7 in quick runs): the last change of the threshold against the bound, and the fraction "
            "of pools below floor(load) tasks after the bound, up to the solver's error."
        ),
        measure=_bound,
    ),
    Claim(
        name="settling-time-tight",
        place="Sec. 4.6, after Prop. 7",
        labels=("Prop. 7",),
        statement="A system that starts empty settles exactly at the bound on the settling time.",
        how=(
            "The last change of the threshold in fluid systems against log(load / (load - floor(load))), and its "
            "mean over 400 simulated systems (30 in quick runs) of 2000 pools, up to chance and 40/n for the "
            "curvature and the last gaps."
        ),
        measure=_tight,
    ),
    Claim(
        name="settling-time-loose",
        place="Sec. 4.6, after Prop. 7",
        labels=("Prop. 7",),
        statement="From an overload the bound on the settling time is loose and could be improved.",
        how=(
            "Load 5.5, alpha 0.93, from 9 tasks per pool: the last change of the threshold in the fluid limit and "
            "in the largest simulated system, which must come before half the bound, log(3.5 / 0.08) + log 11."
        ),
        notes=(
            Note(
                Kind.REMARK,
                "Both terms are generous here: the threshold reaches 5 after 2.08 mean task times, while the first "
                "term is 3.78 and the sum 6.18.",
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
            "The first term of the bound on the settling time grows with the initial tasks, and without limit as "
            "alpha ceil(load) - load approaches 0: if the load is just below a whole number, it may take long "
            "until the threshold falls to floor(load)."
        ),
        how=(
            "The term for more and more initial tasks (load 5.5, alpha 0.93), growing loads (alpha 0.97, from 7 "
            "tasks per pool) and alphas closer and closer to 5.5/6, where it must grow by log(10000); and the "
            "settling times of fluid systems, which must also grow with the load and with the initial tasks."
        ),
        notes=(
            Note(
                Kind.REMARK,
                "The settling time itself stays finite in that limit: the threshold falls from ceil(load) when the "
                "fraction of pools there drops to alpha, and in the equilibrium of that threshold the fraction is "
                "less than load / ceil(load).",
            ),
        ),
        measure=_terms,
    ),
    Claim(
        name="settled-and-balanced",
        place="Sec. 4.6, Cor. 3",
        labels=("Cor. 3",),
        statement=(
            "After the bound, and up to any finite time, large systems have threshold floor(load), all pools have "
            "at least that many tasks, and the occupancy above approaches its balanced value at least like "
            "exp(-t)."
        ),
        how=(
            "Load 5.5, alpha 0.93, from 9 tasks per pool, 2000 to 200000 pools (10000 in quick runs) on the "
            "common space, from the bound, 6.18, to time 10: every change of the threshold, pools below 5 tasks, "
            "and the largest distance from balance at any level from 6 on, up to seven deviations sqrt(load/n). "
            "In the fluid system, which they approach, for ten mean task times after the bound and at all these "
            "levels, the distance times exp(t - bound) must not exceed c = |u(0) - load| exp(-bound) + the mass "
            "above level 6 when the threshold settles times exp(settling time - bound). The same must hold for "
            "other loads, alphas and initial states."
        ),
        measure=_uniform,
    ),
)
