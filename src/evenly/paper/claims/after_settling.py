"""Claims about large systems once the bound on the settling time has passed.

Paper: Sec. 4.6, Cor. 3.
"""

from __future__ import annotations

from math import exp, floor, sqrt

import numpy as np
from numpy.typing import NDArray

from evenly.paper.claims.claim import Claim, Kind, Measured, Note, Verdict
from evenly.paper.claims.judge import at_most, is_exactly, is_near, mostly
from evenly.paper.experiments.lab import Lab
from evenly.paper.experiments.learning_cases import (
    EXACT,
    FROM_EMPTY,
    NOISE,
    OVERLOADED,
    Case,
    Start,
    bound_of,
    from_empty,
    large_systems,
    mixed,
    sizes,
    solved,
)
from evenly.sim import simulate
from evenly.theory.fluid.path import FluidPath
from evenly.theory.tuning import settled_distance_bound

# Mean task times after the bound. Later, exp(t - bound) makes the noise of finite systems too large.
WEIGHTED = 1.0
CROWD = Case(1.05, "0.99", 0, 100.0)
# Starts that reach c. In the last two no pool has more than one task, so that all tasks count at level 1.
TIGHT = (FROM_EMPTY, Case(0.3, "0.8", 0, 0.7), Case(0.3, "0.8", 1, 1.0))


def _reached(case: Case | Start, path: FluidPath) -> float:
    """Return the largest distance from balance above floor(load) times exp(t - bound), from the bound on.

    From time 10 after the bound on, the factor exp(t - bound) makes rounding errors of 1e-12 visible.
    """
    bound = bound_of(case)
    late = (path.times >= bound) & (path.times <= bound + 10)
    return float(_weighted(path.times[late], path.occupancy[late], case.load, bound).max())


def _constant(case: Case | Start) -> float:
    """Return Cor. 3's constant c."""
    found = settled_distance_bound(load=case.load, alpha=case.alpha, initial_tasks=case.initial)
    assert found is not None
    return found


def _weighted(
    times: NDArray[np.float64], occupancy: NDArray[np.float64], load: float, bound: float
) -> NDArray[np.float64]:
    """Return, for each time, the largest |q(i) - q*(i)| exp(t - bound) over the levels i above floor(load)."""
    levels = np.arange(floor(load) + 1, occupancy.shape[1])
    distance = np.abs(occupancy[:, levels] - np.clip(load - levels + 1, 0.0, 1.0)).max(axis=1)
    return np.asarray(distance * np.exp(times - bound))


def _uniform(lab: Lab) -> list[Measured]:
    bound, high = bound_of(OVERLOADED), OVERLOADED.floor + 1
    constant = _constant(OVERLOADED)
    systems: list[tuple[Case | Start, FluidPath]] = [
        *((case, path) for case, path in solved(lab) if case.bound is not None),
        *mixed(lab),
    ]
    excess = [_reached(case, path) - _constant(case) for case, path in systems]
    excess.append(_reached(OVERLOADED, OVERLOADED.solved(bound + 10, 401)) - constant)
    runs = list(zip(large_systems(lab), sizes(lab), strict=True))
    changes = sum(int((run.change_times > bound).sum()) + int(run.threshold[-1] != high - 1) for run, _ in runs)
    gaps, numbers = 0, []
    for run, size in runs:
        late = run.times >= bound
        gaps = max(gaps, int(np.max(size - run.pools_at_least[late, high - 1])))
        seen = late & (run.times <= bound + WEIGHTED)
        value = float(_weighted(run.times[seen], run.occupancy[seen], OVERLOADED.load, bound).max())
        limit = constant + NOISE * sqrt(OVERLOADED.load / size) * exp(WEIGHTED)
        numbers.append(at_most(f"distance above level 5 times exp(t - bound), {size} pools", value, limit))
    reached, allowed = _from_empty(lab)
    since = np.array([ending.since for ending in from_empty(lab).endings]) - bound_of(FROM_EMPTY)
    return [
        is_exactly("changes of a threshold after the bound, and wrong thresholds then", changes, 0),
        # Ten deviations after the bound.
        is_exactly("systems that start empty and have not settled 1 after the bound", int((since > 1).sum()), 0),
        # Gaps form a queue with ratio 0.45, or 0.65 if the total is four deviations below its mean: the
        # probability of sixty at once is below 1e-11.
        at_most("most pools below 5 tasks, all sizes", gaps, 60),
        *numbers,
        at_most(f"the same from empty pools, where it reaches c, {sizes(lab)[-1]} pools", reached, allowed),
        at_most("largest excess of this distance over c, fluid systems", max(excess), 1e-6),
        mostly("share of systems that start empty and have settled at the bound itself", since <= 0, 0.99)
        .about(Kind.ERRATUM)
        .named("settled"),
        is_near("c at load 5.5, from 9 tasks per pool", constant, 0.5, EXACT).about(Kind.REMARK).named("constant"),
        is_near("c at load 1.05 with alpha 0.99, from 100 tasks per pool", _constant(CROWD), 0.05, EXACT).about(
            Kind.REMARK
        ),
        *(number.about(Kind.REMARK) for number in _tight()),
    ]


def _tight() -> list[Measured]:
    """Compare the distance with c where it reaches c."""
    return [
        is_near(
            f"this distance from {case.initial:g} tasks per pool at load {case.load:g}, fluid, which is c",
            _reached(case, case.solved(bound_of(case) + 1, 101)),
            _constant(case),
            1e-6,
        )
        for case in TIGHT
    ]


def _from_empty(lab: Lab) -> tuple[float, float]:
    """Return the weighted distance of a large system that starts empty, and its limit up to noise."""
    bound, size = bound_of(FROM_EMPTY), sizes(lab)[-1]
    scenario, seed = FROM_EMPTY.scenario(size, bound + WEIGHTED), lab.seed_for("large, from empty")
    run = simulate(scenario, seed=seed, points=201).trajectories[0]
    late = run.times >= bound
    value = float(_weighted(run.times[late], run.occupancy[late], FROM_EMPTY.load, bound).max())
    return value, _constant(FROM_EMPTY) + NOISE * sqrt(FROM_EMPTY.load / size) * exp(WEIGHTED)


CLAIMS = (
    Claim(
        name="settled-and-balanced",
        place="Sec. 4.6, Cor. 3",
        labels=("Cor. 3",),
        statement=(
            "From any time after the bound on, up to any finite time, large systems have threshold floor(load), "
            "all pools have at least that many tasks, and the occupancy above approaches its balanced value at "
            "least like exp(-t)."
        ),
        how=(
            "Load 5.5, alpha 0.93, from 9 tasks per pool, 2000 to 200000 pools (10000 in quick runs) on the "
            "common space, from the bound to time 10: every change of the threshold, and pools below 5 tasks. Up "
            "to 1 mean task time after the bound, the distance from balance at any level from 6 on times exp(t - "
            "bound) must not exceed Cor. 3's constant c, up to seven deviations sqrt(load/n) times e; the same "
            "for the most pools, from empty. Fluid systems, from even, uneven and random starts: the same for up "
            "to ten mean task times. Last, the systems of 2000 pools that start empty, at the time of the bound "
            "itself. The paper states that c can be expressed in terms of alpha, load and u(0); we use (load - "
            "floor(load)) max(1, min(u(0), alpha ceil(load)) / load - 1)."
        ),
        notes=(
            Note(
                Kind.ERRATUM,
                "At the time of the bound itself a system need not have settled, however large it is: from empty "
                "pools the fluid system settles exactly then, and {settled:.0%} of the simulated systems had. "
                "The limits hold from any later time on.",
            ),
            Note(
                Kind.REMARK,
                "The constant is the fractional part of the load at all loads from a half on, here {constant:g}. "
                "It is reached from empty pools, and below load 1/2 from pools with at most one task. The page of "
                "errata and sharpenings has the proof.",
            ),
        ),
        measure=_uniform,
        expected=Verdict.ERRATUM,
    ),
)
