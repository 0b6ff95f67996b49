"""Claims about the fluid limit and the thresholds that lead to balance, and those that do not.

Paper: Sec. 3.1 and Sec. 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import exp, floor

import numpy as np

from evenly.paper.claim import Claim, Measured
from evenly.paper.lab import Lab
from evenly.paper.measure import at_most, below, equals, is_exactly, powers
from evenly.sim import Result, Scenario, compare, simulate
from evenly.sim.common_space import common_space
from evenly.sim.tally import averages
from evenly.theory.balance import FloatArray
from evenly.theory.fluid import FluidPath, fluid
from evenly.theory.mass import tail_mass_bound, unfilled_from

CORES = 2  # at least; more threads would not hurt


def tasks_missing(load: float) -> float:
    """Tasks missing below floor(load) on average, in all pools together, when they are very many.

    Gaps open at rate floor(load) (1 - q(h)) and are filled at rate load, both times the number of pools, with
    q(h) = load - floor(load). So their number is geometric, whatever the number of pools.
    """
    ratio = floor(load) * (floor(load) + 1 - load) / load
    return ratio / (1 - ratio)


# --- the fluid limit ---------------------------------------------------------------------------------------


def _fluid_limit(lab: Lab) -> list[Measured]:
    sizes = lab.pick((250, 1000, 4000, 16_000), (64, 512, 4096))
    case = Scenario(pools=1, load=5.5, threshold=3, horizon=3.0)
    points = 61
    limit = fluid(load=5.5, threshold=3, horizon=3.0, points=points)
    first = lab.seed_for("fluid limit") >> 1  # room to count on

    def distances(seed: int) -> list[float]:
        runs = common_space(case, sizes, seed=seed, points=points, workers=1)
        return [largest_gap(run.occupancy, limit.occupancy) for run in runs]

    with ThreadPoolExecutor(CORES) as pool:
        rows = np.array(list(pool.map(distances, range(first, first + lab.pick(40, 16)))))
    # The distance over n^(-1/2) scatters by about a third. Its next term is of order 1 / n, next to n^(-1/2) about
    # 3 n^(-1/2) at most, which bends the fitted power by less than 0.1 from 64 pools on.
    return [
        is_exactly("kinds of motion that the solution passes through", len(set(limit.modes)), 3),
        equals("power of n in the distance", powers(sizes, rows), -0.5, slack=0.1),
        below(f"largest distance, {sizes[0]:,} pools", rows[:, 0], 10 * sizes[0] ** -0.5),
        below(f"largest distance, {sizes[-1]:,} pools", rows[:, -1], 10 * sizes[-1] ** -0.5),
    ]


def largest_gap(first: FloatArray, second: FloatArray) -> float:
    """The largest difference over times and levels; levels that one of them lacks are empty there."""
    levels = max(first.shape[1], second.shape[1])
    padded = [np.pad(rows, ((0, 0), (0, levels - rows.shape[1]))) for rows in (first, second)]
    return float(np.max(np.abs(padded[0] - padded[1])))


# --- total and tail mass -----------------------------------------------------------------------------------


def _total_mass(lab: Lab) -> list[Measured]:
    load, high = 5.5, 11.0
    numbers = []
    paths = [fluid(load=load, threshold=3, initial=start, horizon=2.0, points=5) for start in (0.0, high)]
    off = max(float(np.max(np.abs(path.tail_mass(1) - _mass(load, path)))) for path in paths)
    for pools, start, points in ((10, 0.0, (1, 4)), (10, high, (2,)), (1000, 0.0, (2,)), (1000, high, (2,))):
        scenario = Scenario(pools=pools, load=load, threshold=3, initial=start, horizon=2.0)
        repeats = lab.pick(600, 60) if pools == 10 else lab.pick(60, 12)
        purpose = f"mass {pools} {start}"
        run = simulate(scenario, replications=repeats, seed=lab.seed_for(purpose), points=5)
        for point in points:
            found = [path.occupancy[point, 1:].sum() for path in run.trajectories]
            expected = load + (start - load) * exp(-point / 2)
            what = f"tasks per pool at time {point / 2:g}, {pools:,} pools, from {start:g} each"
            numbers.append(equals(what, found, expected))
    return [*numbers, at_most("largest error of the fluid solutions", off, 1e-9)]


def _mass(load: float, path: FluidPath) -> FloatArray:
    return np.asarray(load + (path.tail_mass(1)[0] - load) * np.exp(-path.times))


_TAILS = ((5.5, 5, 0.0), (5.5, 5, 11.0), (5.5, 7, 11.0), (5.0, 5, 8.0))


def _tail_masses(lab: Lab) -> list[Measured]:
    horizon, points, pools = 6.0, 121, lab.pick(100_000, 5000)
    solved, seen = [], []
    for load, threshold, start in _TAILS:
        path = fluid(load=load, threshold=threshold, initial=start, horizon=horizon, points=points)
        since = int(np.searchsorted(path.times, unfilled_from(load, threshold, start) + 0.2))
        solved.append(tail_excess(path.occupancy, path.times, load, threshold, since))
        scenario = Scenario(pools=pools, load=load, threshold=threshold, initial=start, horizon=horizon)
        seed = lab.seed_for(f"tails {load} {threshold} {start}")
        run = simulate(scenario, seed=seed, points=points).trajectories[0]
        # Arrivals and departures make noise at rate at most load + tasks, which is forgotten at rate 1.
        noise = np.sqrt((load + max(start, load)) / (2 * pools))
        seen.append(tail_excess(run.occupancy, run.times, load, threshold, since) / noise)
    whole = fluid(load=5.0, threshold=4, initial=8.0, horizon=horizon, points=points)
    beyond = whole.tail_mass(6)
    edge = float(np.max(beyond - tail_mass_bound(float(beyond[0]), 0.0, whole.times)))
    return [
        at_most("excess of fluid solutions over their bounds", max(solved), 1e-9),
        at_most("excess at load 5, threshold 4, from time 0", edge, 1e-9),
        at_most(f"excess of systems of {pools:,} pools, in deviations of their noise", max(seen), 7),
    ]


def tail_excess(occupancy: FloatArray, times: FloatArray, load: float, threshold: int, since: int) -> float:
    """How far the tail masses from threshold + 1 and from threshold + 2 on exceed their bounds after a point."""
    elapsed = times[since:] - times[since]
    worst = -np.inf
    for level, limit in ((threshold + 1, max(load - threshold, 0.0)), (threshold + 2, 0.0)):
        mass = occupancy[since:, level:].sum(axis=1)
        # At its own start a mass equals its bound, which says nothing.
        worst = max(worst, float(np.max((mass - tail_mass_bound(float(mass[0]), limit, elapsed))[1:])))
    return worst


# --- thresholds that lead to balance -----------------------------------------------------------------------


def _optimal(lab: Lab) -> list[Measured]:
    load, low = 5.5, 5
    ratio = low * (low + 1 - load) / load
    shares, gaps = [], []
    # Gaps open and close at rates of order n, so that next to no warm-up is needed.
    for pools, full, quick in ((400, 150.0, 15.0), (4000, 15.0, 1.5), (40_000, 1.5, 0.2)):
        scenario = Scenario(pools=pools, load=load, initial=load, warmup=0.1, horizon=0.1 + lab.pick(full, quick))
        run = simulate(scenario, replications=24, seed=lab.seed_for(f"optimal {pools}"), steady_state=True)
        missing = [
            float((sample.time * pools - sample.at_least[: low + 1]).sum()) / sample.time for sample in run.samples
        ]
        # To second order: the ratio moves with q(h), whose variance is at most load / n; twice that is allowed.
        bend = (low / load) ** 2 * load / pools / (1 - ratio) ** 3
        gaps.append(equals(f"tasks missing, {pools:,} pools", missing, tasks_missing(load), slack=2 * bend))
        others = [1 - float(averages(s, pools).pools_with_exactly[low : low + 2].sum()) for s in run.samples]
        limit = 2 * tasks_missing(load) / pools
        shares.append(below(f"share of pools with other numbers than 5 and 6, {pools:,} pools", others, limit))
    return [*shares, *gaps]


_STARTS: tuple[float | list[float], ...] = (0.0, 12.0, [1.0, *[0.5] * 9, *[0.1] * 20])


def _whole_load(lab: Lab) -> list[Measured]:
    load = 5.0
    numbers = []
    for threshold in (4, 5):
        ends = [
            float(fluid(load=load, threshold=threshold, initial=start, horizon=30.0, points=2).imbalance[-1])
            for start in _STARTS
        ]
        numbers.append(at_most(f"imbalance of fluid solutions at time 30, threshold {threshold}", max(ends), 1e-9))
    sizes = lab.pick((400, 1600, 6400), (64, 256, 1024))
    for threshold in (4, 5):
        case = Scenario(pools=1, load=load, threshold=threshold, initial=load, warmup=1.0, horizon=3.0)
        runs = compare(
            [replace(case, pools=pools) for pools in sizes],
            replications=lab.pick(128, 40),
            seed=lab.seed_for(f"whole load {threshold}"),
            steady_state=True,
        )
        rows = np.transpose([_imbalances(run) for run in runs])
        # Small systems bend the power by up to 0.03, as thousands of runs from 64 to 6,400 pools show.
        numbers.append(
            equals(f"power of n in the imbalance, threshold {threshold}", powers(sizes, rows), -0.5, slack=0.05)
        )
        what = f"imbalance, {sizes[-1]:,} pools, threshold {threshold}"
        numbers.append(below(what, rows[:, -1], 3 * (load / sizes[-1]) ** 0.5))
    return numbers


def _imbalances(run: Result) -> Sequence[float]:
    return [averages(sample, run.scenario.pools).imbalance for sample in run.samples]


CLAIMS = (
    Claim(
        name="fluid-limit",
        place="Sec. 3.1, Thm 1",
        labels=("Thm 1",),
        statement=(
            "On one probability space, the occupancy of ever larger systems approaches a solution of the fluid "
            "equations."
        ),
        how=(
            "Systems of several sizes on the primitives of one seed, many seeds: load 5.5, threshold 3, from "
            "empty up to time 3, which passes through all three kinds of motion. The largest distance from the "
            "fluid solution over levels and 61 times must fall like n^(-1/2), up to 0.1 in the power for small n."
        ),
        measure=_fluid_limit,
    ),
    Claim(
        name="total-mass",
        place="Sec. 3.2, Lem. 1",
        labels=("Lem. 1", "Def. 1"),
        statement=(
            "The number of tasks per pool approaches the load exponentially, with the mean task time as its time "
            "scale, whatever the dispatching does."
        ),
        how=(
            "Replications of 10 and of 1,000 pools at load 5.5 and threshold 3, from empty and from 11 tasks "
            "each; the mean must be load + (start - load) exp(-t) for every number of pools. The fluid solver "
            "must meet it to 1e-9."
        ),
        measure=_total_mass,
    ),
    Claim(
        name="tail-mass-bounds",
        place="Sec. 3.2, Prop. 1",
        labels=("Prop. 1", "Lem. 2"),
        statement=(
            "If threshold + 1 exceeds the load, the tasks beyond the threshold fall exponentially to load - "
            "threshold or below, and those beyond threshold + 1 to zero."
        ),
        how=(
            "Load 5.5 with thresholds 5 and 7 and load 5 with threshold 5, from empty and from overload, from 0.2 "
            "after the time at which the total falls below threshold + 1, up to time 6. Fluid solutions must stay "
            "below the bounds to 1e-9, simulated paths up to seven deviations of their noise."
        ),
        measure=_tail_masses,
    ),
    Claim(
        name="floor-of-the-load-balances",
        place="Sec. 3.2, Thm 2",
        labels=("Thm 2",),
        statement=(
            "At the threshold floor(load) the share of pools with other numbers of tasks than floor(load) and "
            "ceil(load) vanishes as the pools become many."
        ),
        how=(
            "Load 5.5, threshold 5, 400 to 40,000 pools, 24 runs each. Tasks missing below 5 are nearly "
            "geometric, with mean r / (1 - r) for r = 5 x 0.5 / 5.5 whatever the number of pools; the share may "
            "be twice that over the number of pools. The slack of the mean is of order 1 / pools, from the "
            "fluctuations of the pools with 6."
        ),
        measure=_optimal,
    ),
    Claim(
        name="whole-loads-have-two-optima",
        place="Sec. 3.2, Thm 2",
        labels=("Thm 2",),
        statement="If the load is a whole number, the thresholds load and load - 1 both lead to balance.",
        how=(
            "Load 5, thresholds 4 and 5. Fluid solutions from empty, from 12 tasks each and from a wide spread "
            "must reach balance to 1e-9 by time 30. The imbalance of simulated systems, from balance, time 1 to "
            "3, must fall like n^(-1/2), up to 0.05 in the power."
        ),
        measure=_whole_load,
    ),
)
