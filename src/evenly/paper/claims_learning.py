"""Claims about the rule by which the threshold is learned, and about its fluid limit.

Paper: Secs. 4 to 4.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from evenly.paper.claim import Claim, Measured
from evenly.paper.lab import Lab
from evenly.paper.learning_cases import FROM_EMPTY, OVERLOADED, POOLS, Case, large_systems, sizes, solved
from evenly.paper.learning_steps import (
    StateReview,
    Step,
    TokenReview,
    core_steps,
    kernel_steps,
)
from evenly.paper.measure import above, at_least, at_most, below, is_exactly, is_near, powers
from evenly.sim import Scenario, compare
from evenly.sim.common_space import common_space
from evenly.theory.mass import tail_mass_bound

Floats = NDArray[np.float64]

# Pools, alpha and load: few pools, so that rises and falls are frequent; alphas that are met exactly (0.6 of
# 5, 0.8 of 10), and some so large that both rules can apply at once (0.7 of 3, 0.95 of 10).
WATCHED = (
    (2, "0.4", 1.6),
    (3, "0.7", 1.5),
    (5, "0.6", 2.4),
    (10, "0.8", 2.6),
    (10, "0.95", 1.8),
    (30, "0.9", 1.9),
)
DISTANCE_HORIZON, DISTANCE_POINTS = 3.0, 151
DISTANCE_SIZES = (100, 1000, 10_000)
NOISE = 7  # deviations that no fluctuation reaches
EXACT = 1e-9  # error of the fluid solver


def _service_rates(lab: Lab) -> list[Measured]:
    rates = (1 / 3, 1.0, 3.0)
    scenarios = [OVERLOADED.scenario(1000, 12 / rate, rate) for rate in rates]
    results = compare(scenarios, replications=lab.pick(16, 2), seed=lab.seed_for("service rates"))
    ends = [[ending.threshold for ending in result.endings] for result in results]
    times = np.array(
        [[ending.since * rate for ending in result.endings] for result, rate in zip(results, rates, strict=True)]
    )
    return [
        *(
            is_exactly(f"threshold at service rate {rate:.3g}, {load:.3g} arrivals a pool", float(np.mean(end)), 5)
            for rate, load, end in zip(rates, (OVERLOADED.load * rate for rate in rates), ends, strict=True)
        ),
        at_most("difference of settling times, in task times", float(np.ptp(times, axis=0).max()), EXACT),
    ]


def _watched(lab: Lab) -> Iterator[tuple[Fraction, Scenario, np.random.SeedSequence]]:
    for index, (pools, alpha, load) in enumerate(WATCHED):
        seed = np.random.SeedSequence([lab.seed_for("watched"), index])
        yield Fraction(alpha), Scenario(pools=pools, load=load, alpha=alpha), seed


def _core(lab: Lab) -> list[tuple[Fraction, list[Step]]]:
    events = lab.pick(2500, 400)
    return lab.once(
        "core steps",
        lambda: [(alpha, list(core_steps(scenario, seed, events))) for alpha, scenario, seed in _watched(lab)],
    )


def _rule(lab: Lab) -> list[Measured]:
    events = lab.pick(5000, 600)
    kernel, core = StateReview(), StateReview()
    for alpha, scenario, seed in _watched(lab):
        kernel.add(kernel_steps(scenario, seed, events), alpha)
    for alpha, steps in _core(lab):
        core.add(steps, alpha)
    return [
        is_exactly("events where the kernel's threshold does something else", kernel.wrong, 0),
        is_exactly("events where the core's threshold does something else", core.wrong, 0),
        at_least("rises", min(kernel.rises, core.rises), 50),
        at_least("falls", min(kernel.falls, core.falls), 50),
        at_least("arrivals where both rules apply", min(kernel.both, core.both), 1),
        at_least("arrivals where the state after would say otherwise", min(kernel.hindsight, core.hindsight), 50),
    ]


def _tokens(lab: Lab) -> list[Measured]:
    total = TokenReview()
    for alpha, steps in _core(lab):
        total.add(steps, alpha)
    return [
        is_exactly("arrivals where the tokens say something else", total.wrong, 0),
        is_exactly("arrivals where the tokens are not those of the tasks", total.unlike, 0),
        at_least("rises that leave a yellow token", total.kept, 1),
    ]


def _gap(first: Floats, second: Floats) -> float:
    """The largest distance over times and levels."""
    levels = max(first.shape[1], second.shape[1])
    padded = [np.pad(rows, ((0, 0), (0, levels - rows.shape[1]))) for rows in (first, second)]
    return float(np.max(np.abs(padded[0] - padded[1])))


def _distance(lab: Lab) -> list[Measured]:
    limit = OVERLOADED.solved(DISTANCE_HORIZON, DISTANCE_POINTS).occupancy
    scenario = OVERLOADED.scenario(1, DISTANCE_HORIZON)
    rows = []
    for index in range(lab.pick(16, 8)):
        seed = lab.seed_for(f"fluid limit {index}")
        runs = common_space(scenario, DISTANCE_SIZES, seed=seed, points=DISTANCE_POINTS)
        rows.append([_gap(run.occupancy, limit) for run in runs])
    found = np.array(rows)
    fitted = powers(DISTANCE_SIZES, found)
    return [
        *(
            below(f"distance times sqrt(n), {size} pools", found[:, place] * sqrt(size), 9)
            for place, size in enumerate(DISTANCE_SIZES)
        ),
        below("power of n", fitted, -0.3),
        above("power of n", fitted, -0.7),
    ]


def _update_times(lab: Lab) -> list[Measured]:
    run, size = large_systems(lab)[-1], sizes(lab)[-1]
    limit = OVERLOADED.solved(2.5, 12_501)
    numbers = [is_exactly("changes of the threshold", run.change_times.size, limit.update_times.size)]
    levels = zip(
        run.change_times.tolist(), limit.update_times.tolist(), limit.update_thresholds.tolist(), strict=False
    )
    for found, time, after in levels:
        # The occupancy deviates by sqrt(load / n) at most, so that the crossing does by that over its speed.
        before = int(np.searchsorted(limit.times, time)) - 1
        step = limit.times[1]
        speed = float(limit.occupancy[before - 1, after + 1] - limit.occupancy[before, after + 1]) / step
        tolerance = NOISE * sqrt(OVERLOADED.load / size) / speed
        numbers.append(is_near(f"time of the fall to {after}", found, time, tolerance))
    return numbers


def _settles(lab: Lab) -> list[Measured]:
    latest = max(float(path.update_times[-1]) for _, path in solved(lab) if path.update_times.size)
    chosen = [OVERLOADED, FROM_EMPTY, Case(2.2, "0.85", 9, 9.0), Case(0.7, "0.85", 3, 6.5)]
    horizon = lab.pick(60.0, 30.0)
    scenarios = [case.scenario(POOLS, horizon) for case in chosen]
    results = compare(scenarios, replications=lab.pick(4, 2), seed=lab.seed_for("no more changes"))
    endings = [(case, ending) for case, result in zip(chosen, results, strict=True) for ending in result.endings]
    wrong = sum(ending.threshold != case.floor for case, ending in endings)
    return [
        at_most("latest change of a fluid system", latest, 15),
        at_most("latest change of a simulated system", max(ending.since for _, ending in endings), 15),
        is_exactly("simulated systems that end elsewhere", wrong, 0),
    ]


def _excess(times: Floats, occupancy: Floats, thresholds: NDArray[np.int64], load: float) -> float:
    """By how much a tail mass exceeds its bounds at most, from several times on.

    Paper: Prop. 5, eqs. (10a), (10b) and (11).
    """
    worst = -np.inf
    for begin in range(0, times.size // 2, times.size // 8):
        most = int(thresholds[begin:].max())
        elapsed = times[begin:] - times[begin]
        unfilled = bool(np.all(occupancy[begin:, most] < 1))
        for level, limit in ((most + 1, 0.0 if unfilled else max(load - most, 0.0)), (most + 2, 0.0)):
            tail = occupancy[begin:, level:].sum(axis=1)
            worst = max(worst, float(np.max(tail - tail_mass_bound(float(tail[0]), limit, elapsed))))
    return worst


def _tails(lab: Lab) -> list[Measured]:
    fluid_excess = max(
        _excess(path.times, path.occupancy, path.threshold, case.load) for case, path in solved(lab)
    )
    numbers = [at_most("largest excess, fluid systems", fluid_excess, EXACT)]
    for run, size in zip(large_systems(lab), sizes(lab), strict=True):
        excess = _excess(run.times, run.occupancy, run.threshold, OVERLOADED.load)
        deviation = sqrt((OVERLOADED.load + OVERLOADED.initial) / size)
        numbers.append(at_most(f"largest excess in deviations, {size} pools", excess / deviation, NOISE))
    return numbers


CLAIMS = (
    Claim(
        name="offered-load-counts",
        place="Sec. 4",
        labels=("Sec. 4",),
        statement=(
            "The threshold that the rule learns is floor of the offered load, arrivals per pool times the mean "
            "task time, and not of the rate of arrivals."
        ),
        how=(
            "1000 pools, offered load 5.5, alpha 0.93, from 9 tasks a pool over 12 task times, with service rates "
            "1/3, 1 and 3 on the same random numbers: all must settle at 5, and at the same time when measured in "
            "task times."
        ),
        measure=_service_rates,
    ),
    Claim(
        name="learning-rule",
        place="Sec. 4.1",
        labels=("Sec. 4.1",),
        statement=(
            "At an arrival the threshold rises by one if all pools but at most one had more tasks than it right "
            "before, and falls by one if the fraction of pools with at least as many was at most alpha; at no "
            "other time does it change."
        ),
        how=(
            "Systems of 2 to 30 pools watched event by event, in the compiled kernel and in the dispatcher and "
            "pools of the live balancer, alpha 0.4 to 0.95: every change is held against the rule, written out "
            "again on fractions. If both rules apply they cancel."
        ),
        measure=_rule,
    ),
    Claim(
        name="learning-from-tokens",
        place="Sec. 4.1",
        labels=("Sec. 4.1",),
        statement=(
            "The rule needs the dispatcher's tokens only: up when no yellow token is left or the last one would "
            "be used, down when there are at least (1 - alpha) n green ones."
        ),
        how=(
            "The same systems, as dispatcher and pools: every change is explained by the tokens held right before "
            "the arrival, at most one yellow for a rise, and the tokens are those that the pools' tasks call for."
        ),
        note=(
            "The text asks whether no yellow token would be left after the dispatch. Taken by the letter this "
            "misses a case: if the last pool with a yellow token has a green one too, the rule on states lets the "
            "threshold rise, yet the green token is used and the yellow one stays. One yellow token or none, "
            "counted before the arrival, is the condition that agrees."
        ),
        measure=_tokens,
    ),
    Claim(
        name="learning-fluid-limit",
        place="Sec. 4.3, Thm 5",
        labels=("Def. 2", "Thm 5"),
        statement="Systems that learn approach a fluid system as the pools become many.",
        how=(
            "Load 5.5, alpha 0.93, from 9 tasks a pool, 100 to 10000 pools on the appendix's common space: the "
            "largest distance to the fluid solution up to time 3, times sqrt(n), which stays bounded, and the "
            "power of n that fits, which has to be near -1/2."
        ),
        measure=_distance,
    ),
    Claim(
        name="learning-update-times",
        place="Sec. 4.3, Thm 5",
        labels=("Thm 5",),
        statement="The threshold of a large system changes when that of the fluid system does.",
        how=(
            "One system of 200000 pools (10000 in quick runs), load 5.5, alpha 0.93, from 9 tasks a pool: its "
            "changes against those of the fluid solution, up to seven deviations sqrt(load/n) of the occupancy "
            "over the speed at which it crosses alpha."
        ),
        measure=_update_times,
    ),
    Claim(
        name="threshold-settles",
        place="Secs 4.2 and 4.4, Prop. 4 and Thm 6",
        labels=("Prop. 4", "Thm 6"),
        statement="The threshold changes finitely often and then never again.",
        how=(
            "Fluid systems of many loads, alphas and starts over 40 task times, and simulated ones of 2000 pools "
            "over far longer than it takes to settle: the last change must come early, and simulated thresholds "
            "must end at floor(load)."
        ),
        note=(
            "This is about the limit of many pools. A finite system whose load is close to a whole number changes "
            "its threshold now and then for ever, and ever more rarely as pools are added."
        ),
        measure=_settles,
    ),
    Claim(
        name="learning-tail-bounds",
        place="Sec. 4.4, Prop. 5",
        labels=("Prop. 5",),
        statement=(
            "While the threshold is at most m, the tasks above level m + 1 die out at least exponentially, and "
            "those above level m fall to load - m in the same way, or die out too as long as some pools have "
            "fewer than m."
        ),
        how=(
            "Fluid systems of many loads, alphas and starts, and simulated ones on the common space: the three "
            "bounds from several times on, with m the largest threshold from there, up to the solver's error and "
            "up to seven deviations sqrt((load + start)/n)."
        ),
        measure=_tails,
    ),
)
