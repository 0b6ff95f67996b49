"""Claims about the fluid limit of systems that learn: how systems approach it, and that the threshold settles.

Paper: Secs. 4.2 to 4.4.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import product
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from evenly.paper.claims.claim import Claim, Kind, Measured, Note, Verdict
from evenly.paper.claims.judge import above, at_least, at_most, below, is_exactly, is_near, powers
from evenly.paper.experiments.lab import Lab
from evenly.paper.experiments.learning_cases import (
    EXACT,
    FROM_EMPTY,
    NOISE,
    OVERLOADED,
    POOLS,
    Case,
    large_systems,
    overloaded,
    settled_at,
    sizes,
    solved,
)
from evenly.sim import compare, simulate
from evenly.sim.coupling.sizes import simulate_sizes
from evenly.sim.run import usable_cores
from evenly.theory.fluid.mass import tail_mass_bound
from evenly.theory.fluid.path import FluidPath
from evenly.theory.fluid.predict import predict_fluid

Floats = NDArray[np.float64]

SIZES = (100, 1000, 10_000)
POINTS = 151

# Load, the fraction of pools with initial tasks, and the number of tasks in each of these. While the other pools
# fill up the threshold rises above floor(load), and then falls back.
UNEVEN = ((5.5, 0.5, 20), (2.2, 0.7, 10), (2.9, 0.5, 12))

LATE = 15.0  # mean task times, several times what it takes to settle
RESTLESS, RESTLESS_POOLS = Case(2.9, "0.97", 2, 2.9), 400  # the larger system of Fig. 3, from the balanced state
RESTLESS_HORIZON = 100.0  # it changes its threshold twice per mean task time


def _gap(first: Floats, second: Floats) -> float:
    """Return the largest distance over times and levels."""
    levels = max(first.shape[1], second.shape[1])
    padded = [np.pad(rows, ((0, 0), (0, levels - rows.shape[1]))) for rows in (first, second)]
    return float(np.max(np.abs(padded[0] - padded[1])))


def _distance(lab: Lab) -> list[Measured]:
    limit = overloaded(lab)
    every = (limit.times.size - 1) // (POINTS - 1)
    scenario = OVERLOADED.scenario(1, float(limit.times[-1]))

    def distances(index: int) -> list[float]:
        seed = lab.seed_for(f"fluid limit {index}")
        runs = simulate_sizes(scenario, pools=SIZES, seed=seed, points=POINTS, workers=1)
        return [_gap(run.occupancy, limit.occupancy[::every]) for run in runs]

    with ThreadPoolExecutor(usable_cores()) as threads:
        found = np.array(list(threads.map(distances, range(lab.pick(16, 8)))))
    fitted = powers(SIZES, found)
    scaled = found[:, -1] * sqrt(SIZES[-1])
    return [
        below(f"distance times sqrt(n), {SIZES[-1]} pools", scaled, 8),
        below("power of n", fitted, -0.25),
        above("power of n", fitted, -0.75),
    ]


def _update_times(lab: Lab) -> list[Measured]:
    run, size = large_systems(lab)[-1], sizes(lab)[-1]
    limit = overloaded(lab)
    numbers = [is_exactly("changes of the threshold", run.change_times.size, limit.change_times.size)]
    levels = zip(
        run.change_times.tolist(), limit.change_times.tolist(), limit.change_thresholds.tolist(), strict=False
    )
    for found, time, after in levels:
        # The occupancy deviates by at most sqrt(load / n), so the crossing deviates by that over its speed.
        before = int(np.searchsorted(limit.times, time)) - 1
        step = limit.times[1]
        speed = float(limit.occupancy[before - 1, after + 1] - limit.occupancy[before, after + 1]) / step
        tolerance = NOISE * sqrt(OVERLOADED.load / size) / speed
        numbers.append(is_near(f"time of the fall to {after}", found, time, tolerance))
    return numbers


def _settles(lab: Lab) -> list[Measured]:
    latest = max(settled_at(path) for _, path in solved(lab))
    chosen = [OVERLOADED, FROM_EMPTY, Case(2.2, "0.85", 9, 9.0), Case(0.7, "0.85", 3, 6.5)]
    horizon = lab.pick(60.0, 30.0)
    scenarios = [case.scenario(POOLS, horizon) for case in chosen]
    results = compare(scenarios, replications=lab.pick(4, 2), seed=lab.seed_for("no more changes"))
    endings = [(case, ending) for case, result in zip(chosen, results, strict=True) for ending in result.endings]
    wrong = sum(ending.threshold != case.floor for case, ending in endings)
    scenario, seed = RESTLESS.scenario(RESTLESS_POOLS, RESTLESS_HORIZON), lab.seed_for("restless")
    restless = simulate(scenario, seed=seed, points=2).trajectories[0].change_times
    late = int((restless > LATE).sum())
    return [
        at_most("latest change of a fluid system", latest, LATE),
        at_most("latest change of a simulated system", max(ending.since for _, ending in endings), LATE),
        is_exactly("simulated systems that end elsewhere", wrong, 0),
        is_exactly(f"changes after that with {RESTLESS_POOLS} pools, load {RESTLESS.load}", late, 0)
        .about(Kind.FINITE)
        .named("changes"),
    ]


def _time_at_the_top(path: FluidPath, start: Case) -> list[float]:
    """Return the times that a threshold m takes to fall once all pools have m tasks, over (1 - alpha) / m."""
    fewest = 1 - float(Fraction(start.alpha))
    full, before, since = start.initial >= start.threshold, start.threshold, 0.0
    found = []
    for time, after in zip(path.change_times.tolist(), path.change_thresholds.tolist(), strict=True):
        if full and after < before:
            found.append((time - since) * before / fewest)
        full, before, since = after > before, after, time
    return found


def _apart(lab: Lab) -> list[Measured]:
    uneven, even = [], []
    alphas = lab.pick(("0.93", "0.97"), ("0.97",))
    for (load, share, tasks), alpha in product(UNEVEN, alphas):
        path = predict_fluid(
            load=load, alpha=alpha, threshold=0, initial_occupancy=[1.0] + tasks * [share], horizon=6.0, points=2
        )
        uneven += _time_at_the_top(path, Case(load, alpha, 0, share * tasks))
    for load in (0.2, 5.5):
        case = Case(load, "0.97", 7, 7.0)
        even += _time_at_the_top(case.solved(1.0), case)
    changes = large_systems(lab)[-1].change_times
    first = float(changes[0]) if changes.size else 0.0
    ratio = first * OVERLOADED.threshold / (1 - float(Fraction(OVERLOADED.alpha)))
    return [
        is_exactly("fluid systems that rise to the top and fall", len(uneven), len(UNEVEN) * len(alphas)),
        at_least("shortest time at the top, times m / (1 - alpha)", min(uneven), 1),
        at_least("the same, with all pools at the threshold initially", min(even), 1),
        at_most("which is close to the bound", min(even), 1.1),
        at_least(f"the same, {sizes(lab)[-1]} pools", ratio, 1),
    ]


def _excess(times: Floats, occupancy: Floats, thresholds: NDArray[np.int64], load: float) -> float:
    """Return by how much a tail mass exceeds its bounds at most, from several times on.

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
        name="learning-fluid-limit",
        place="Sec. 4.3, Thm 5",
        labels=("Def. 2", "Thm 5"),
        statement="Systems that learn approach a fluid system as the number of pools grows.",
        how=(
            "Load 5.5, alpha 0.93, from 9 tasks per pool, 100 to 10000 pools on the appendix's common space: the "
            "largest distance to the fluid solution up to time 3, times sqrt(n), which is at most three or four "
            "deviations sqrt(load), and the fitted power of n, which must be near -1/2."
        ),
        measure=_distance,
    ),
    Claim(
        name="learning-update-times",
        place="Sec. 4.3, Thm 5",
        labels=("Thm 5",),
        statement="The threshold of a large system changes when that of the fluid system does.",
        how=(
            "One system of 200000 pools (10000 in quick runs), load 5.5, alpha 0.93, from 9 tasks per pool: its "
            "changes against those of the fluid solution, up to seven deviations sqrt(load/n) of the occupancy "
            "over the speed at which it crosses alpha."
        ),
        measure=_update_times,
    ),
    Claim(
        name="threshold-settles",
        place="Secs 4.2 and 4.4, Prop. 4 and Thm 6",
        labels=("Prop. 4", "Thm 6"),
        statement="The threshold changes finitely often and then stays.",
        how=(
            "Fluid systems with many loads, alphas and initial states over 30 mean task times, and simulated "
            "ones of 2000 pools over much longer than it takes to settle: the last change must come before time "
            "15, and simulated thresholds must end at floor(load). Then 400 pools with load 2.9 and alpha 0.97, "
            "as in Fig. 3, over 100 mean task times: the changes after time 15."
        ),
        notes=(
            Note(
                Kind.FINITE,
                "A finite system whose load is close to a whole number keeps changing its threshold: "
                f"{RESTLESS_POOLS} pools at load {RESTLESS.load} did {{changes:.0f}} times from time {LATE:g} to "
                f"{RESTLESS_HORIZON:g}. Sec. 5.1 below shows how that depends on the load and the number of "
                "pools.",
            ),
        ),
        measure=_settles,
        expected=Verdict.FINITE,
    ),
    Claim(
        name="updates-are-apart",
        place="Sec. 4.2, proof of Prop. 4",
        labels=("Prop. 4",),
        statement=(
            "Whenever the threshold rises to its largest value m and falls again, at least (1 - alpha) / m mean "
            "task times pass in between."
        ),
        how=(
            "Fluid systems with loads 5.5, 2.2 and 2.9, alpha 0.93 and 0.97 (only 0.97 in quick runs), starting "
            "with 30 to 50 % of the pools empty and 10 to 20 tasks in each of the others, so that the threshold "
            "rises above floor(load) and falls back; then from 7 tasks per pool and threshold 7, where load 0.2 "
            "gets close to the bound; and the first fall of the largest simulated system, load 5.5, alpha 0.93, "
            "from 9 tasks per pool."
        ),
        measure=_apart,
    ),
    Claim(
        name="learning-tail-bounds",
        place="Sec. 4.4, Prop. 5",
        labels=("Prop. 5",),
        statement=(
            "While the threshold is at most m, the tasks above level m + 1 die out at least exponentially. Those "
            "above level m fall to load - m in the same way, or die out, too, as long as some pools have fewer "
            "than m tasks."
        ),
        how=(
            "Fluid systems with many loads, alphas and initial states, and simulated ones on the common space: "
            "the three bounds from several times on, where m is the largest threshold from that time on, up to "
            "the solver's error, and up to seven deviations sqrt((load + start)/n) for simulated systems."
        ),
        measure=_tails,
    ),
)
