"""Claims about the thresholds that balance the load.

Paper: Sec. 3.2, Thm 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, exp, floor, pi, sqrt

import numpy as np

from evenly.paper.claims.claim import Claim, Measured
from evenly.paper.claims.judge import at_most, below, equals, is_exactly, powers
from evenly.paper.experiments.lab import Lab
from evenly.sim import Result, Scenario, compare, simulate
from evenly.sim.tally import averages
from evenly.theory.balance import optimal_thresholds
from evenly.theory.fluid.predict import predict_fluid

# Occupancies: empty pools, twelve tasks in each pool, and a wide spread.
STARTS = ([1.0], [1.0] * 13, [1.0, *[0.5] * 9, *[0.1] * 20])


def tasks_missing(load: float) -> float:
    """Return the mean number of tasks missing below floor(load), in all pools together, in the large-system limit.

    Gaps open at rate floor(load) (1 - q(h)) and are filled at rate load, both times the number of pools, with
    q(h) = load - floor(load). So their number is geometric, and its mean does not depend on the number of pools.
    """
    ratio = floor(load) * (floor(load) + 1 - load) / load
    return ratio / (1 - ratio)


def _optimal(lab: Lab) -> list[Measured]:
    return [_thresholds_of_theorem(), _solutions_balance(), *_systems_balance(lab), *_few_are_off(lab)]


def _thresholds_of_theorem() -> Measured:
    """Count the loads, 0.01 apart, at which `optimal_thresholds` lacks floor(load), or load - 1 if it is whole."""
    loads = [hundredths / 100 for hundredths in range(1, 2001)]
    found = {load: {floor(load), ceil(load) - 1} for load in loads}  # the same two if the load is not whole
    missing = sum(not found[load] <= set(optimal_thresholds(load)) for load in loads)
    return is_exactly("loads up to 20 without the thresholds of the theorem among the optimal ones", missing, 0)


def _solutions_balance() -> Measured:
    """Check the fluid solution whose distance from balance at time 20 is closest to its bound."""
    found = []
    for load in (0.6, 2.3, 5.5):
        for start in STARTS:
            threshold = optimal_thresholds(load)[0]
            path = predict_fluid(load=load, threshold=threshold, initial_occupancy=start, horizon=20.0, points=2)
            found.append((float(path.imbalance[-1]), balance_bound(load, float(path.tail_mass(1)[0]), 20.0)))
    return at_most(
        "distance of fluid solutions from balance at time 20", *max(found, key=lambda pair: pair[0] / pair[1])
    )


def balance_bound(load: float, start: float, time: float) -> float:
    """Bound the distance from balance of a fluid solution at the threshold floor(load).

    Let M be the larger of start and load, which no mass exceeds, and t0 the time from which the total is below h.
    By Prop. 1 the mass from h + 1 on is at most M exp(-t), and that from h on exceeds its limit by at most
    M exp(t0 - t). The total is off by at most M exp(-t), so the levels below h lack at most M (exp(t0) + 1)
    exp(-t). The error of q(h) is at most the sum of these three, that of all levels at most the value returned.

    Paper: proof of Thm 2.
    """
    most = max(start, load)
    settled = max((start - load) / (floor(load) + 1 - load), 1.0)  # exp(t0)
    return most * (5 + 2 * settled) * exp(-time)


def _systems_balance(lab: Lab) -> list[Measured]:
    pools, since = lab.pick(2000, 400), 8.0
    numbers = []
    for load, start in ((5.5, 0.0), (5.5, 12.0), (0.6, 12.0)):
        case = Scenario(
            pools=pools,
            load=load,
            threshold=optimal_thresholds(load)[0],
            initial_tasks=start,
            warmup=since,
            horizon=since + 3.0,
        )
        seed = lab.seed_for(f"balance {load} {start}")
        run = simulate(case, replications=lab.pick(96, 40), seed=seed, mean_holding_times=True)
        # The total deviates by a normal number of variance load / n, all of it on level h. Tasks missing below
        # count twice, and are up to 50 % more with few pools; a part of the initial state is left.
        expected = sqrt(2 * load / (pi * pools))
        slack = 3 * tasks_missing(load) / pools + abs(start - load) * exp(-since)
        what = f"imbalance at time 8 to 11, {pools:,} pools, load {load:g}, from {start:g} each"
        numbers.append(equals(what, imbalances(run), expected, slack))
    return numbers


def _jsq(lab: Lab) -> list[Measured]:
    load, since = 5.5, 5.0
    numbers = []
    for pools in lab.pick((400, 1600, 6400), (100, 400, 1600)):
        case = Scenario(
            policy="jsq",
            pools=pools,
            load=load,
            initial_tasks=load,
            warmup=since,
            horizon=since + lab.pick(5.0, 2.0),
        )
        seed = lab.seed_for(f"jsq {pools}")
        run = simulate(case, replications=lab.pick(96, 40), seed=seed, mean_holding_times=True)
        # As above; from the balanced state, exp(-10) of the variance is missing.
        expected, slack = sqrt(2 * load / (pi * pools)), 3 * tasks_missing(load) / pools
        numbers.append(
            equals(f"imbalance from time {since:g} on, {pools:,} pools", imbalances(run), expected, slack)
        )
    return numbers


def _few_are_off(lab: Lab) -> list[Measured]:
    load, low = 5.5, 5
    ratio = low * (low + 1 - load) / load
    shares, gaps = [], []
    # Gaps open and close at rates of order n, so a short warm-up is enough.
    for pools, full, quick in ((400, 150.0, 15.0), (40_000, 1.5, 0.2)):
        scenario = Scenario(
            pools=pools,
            load=load,
            threshold=optimal_thresholds(load)[0],
            initial_tasks=load,
            warmup=0.1,
            horizon=0.1 + lab.pick(full, quick),
        )
        run = simulate(scenario, replications=24, seed=lab.seed_for(f"optimal {pools}"), mean_holding_times=True)
        missing = [
            float((sample.time * pools - sample.at_least[: low + 1]).sum()) / sample.time for sample in run.windows
        ]
        # To second order: the ratio varies with q(h), whose variance is at most load / n; allow twice that.
        bend = (low / load) ** 2 * load / pools / (1 - ratio) ** 3
        gaps.append(equals(f"tasks missing, {pools:,} pools", missing, tasks_missing(load), slack=2 * bend))
        others = [1 - float(averages(s, pools).pools_with_exactly[low : low + 2].sum()) for s in run.windows]
        limit = 2 * tasks_missing(load) / pools
        shares.append(below(f"share of pools with neither 5 nor 6 tasks, {pools:,} pools", others, limit))
    return [*shares, *gaps]


def _whole_load(lab: Lab) -> list[Measured]:
    load = 5.0
    thresholds = optimal_thresholds(load)
    numbers = [
        is_exactly("optimal thresholds at load 5", len(thresholds), 2),
        is_exactly("the smaller of them", thresholds[0], 4),
        is_exactly("the larger", thresholds[-1], 5),
    ]
    for threshold in thresholds:
        ends = [
            float(
                predict_fluid(
                    load=load, threshold=threshold, initial_occupancy=start, horizon=30.0, points=2
                ).imbalance[-1]
            )
            for start in STARTS
        ]
        numbers.append(at_most(f"imbalance of fluid solutions at time 30, threshold {threshold}", max(ends), 1e-9))
    sizes = lab.pick((400, 1600, 6400), (64, 256, 1024))
    for threshold in thresholds:
        case = Scenario(pools=1, load=load, threshold=threshold, initial_tasks=load, warmup=1.0, horizon=3.0)
        runs = compare(
            [replace(case, pools=pools) for pools in sizes],
            replications=lab.pick(128, 40),
            seed=lab.seed_for(f"whole load {threshold}"),
            mean_holding_times=True,
        )
        rows = np.transpose([imbalances(run) for run in runs])
        # Small systems change the power by up to 0.03, as thousands of runs with 64 to 6,400 pools show.
        numbers.append(
            equals(f"power of n in the imbalance, threshold {threshold}", powers(sizes, rows), -0.5, slack=0.05)
        )
        what = f"imbalance, {sizes[-1]:,} pools, threshold {threshold}"
        numbers.append(below(what, rows[:, -1], 3 * (load / sizes[-1]) ** 0.5))
    return numbers


def imbalances(run: Result) -> Sequence[float]:
    """Return the distance from balance, on average over time, of each independent run."""
    return [averages(sample, run.scenario.pools).imbalance for sample in run.windows]


CLAIMS = (
    Claim(
        name="jsq-balances",
        place="Sec. 2.1",
        labels=("eq. (1)",),
        statement=(
            "Under join-the-shortest-queue the long-run distribution of the occupancy concentrates at the "
            "balanced state as the number of pools grows."
        ),
        how=(
            "Many runs from balance at load 5.5, for three numbers of pools: the imbalance after 5 mean task "
            "times must be the fluctuation of the total, (2 load / (pi n))^(1/2), up to terms of order 1 / n."
        ),
        measure=_jsq,
    ),
    Claim(
        name="floor-of-the-load-balances",
        place="Sec. 3.2, Thm 2",
        labels=("Thm 2",),
        statement=(
            "With threshold floor(load) the load becomes balanced from any initial state: all but a vanishing "
            "share of the pools end up with floor(load) or ceil(load) tasks, in the proportion that the load "
            "implies."
        ),
        how=(
            "The thresholds are those that the package calls optimal, which must contain floor(load) at every "
            "load up to 20. Fluid solutions at loads 0.6, 2.3 and 5.5, from empty pools, from 12 tasks each and "
            "from a wide spread: of their distances from balance at time 20, the one closest to its bound, a "
            "multiple of exp(-20) by Proposition 1. Many runs of systems from empty pools and from 12 tasks "
            "each: their imbalance from time 8 to 11 must be the fluctuation of the total, (2 load / (pi "
            "n))^(1/2). 24 runs from balance at load 5.5: the tasks missing below 5 are nearly geometric, with "
            "mean r / (1 - r) for r = 5 x 0.5 / 5.5, and the share of pools off balance must be below twice that "
            "over n. All means are compared up to terms of order 1 / n."
        ),
        measure=_optimal,
    ),
    Claim(
        name="whole-loads-have-two-optima",
        place="Sec. 3.2, Thm 2",
        labels=("Thm 2",),
        statement="If the load is a whole number, the thresholds load and load - 1 both lead to balance.",
        how=(
            "Load 5, and the thresholds that the package calls optimal, which must be 4 and 5. Fluid solutions "
            "from empty pools, from 12 tasks each and from a wide spread must reach balance to 1e-9 by time 30. "
            "The imbalance of systems simulated from balance, from time 1 to 3, must fall like n^(-1/2), up to "
            "0.05 in the power."
        ),
        measure=_whole_load,
    ),
)
