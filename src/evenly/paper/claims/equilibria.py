"""Claims about the equilibria of thresholds that are not optimal.

Paper: Sec. 3.2, Exs 1 and 2.
"""

from __future__ import annotations

from math import ceil, factorial

import numpy as np
from scipy.optimize import brentq
from scipy.stats import poisson

from evenly.paper.claims.claim import Claim, Kind, Measured, Note, Verdict
from evenly.paper.claims.judge import FALSE_ALARM, above, at_most, equals, is_near, mean_and_error
from evenly.paper.experiments.lab import Lab
from evenly.paper.experiments.wrong_threshold import (
    LARGE,
    LOAD,
    SMALL,
    bias,
    occupancy_rows,
    of_paper,
    simulated,
)
from evenly.sim import Result, Scenario, simulate
from evenly.sim.tally import averages
from evenly.theory.balance import FloatArray, exactly
from evenly.theory.equilibrium import predict_equilibrium

_LEVELS = 60  # a truncated Poisson law of mean 5.5 is negligible beyond


def runs_of_figure_2(lab: Lab) -> dict[int, Result]:
    """Return the runs of Fig. 2, by threshold."""
    return simulated(lab, of_paper(lab))


# --- the equilibria of the examples ------------------------------------------------------------------------


def theta_of_large(load: float, threshold: int) -> float:
    """Solve the equation of Ex. 1 as printed.

    Paper: Ex. 1, eq. (4).
    """

    def gap(x: float) -> float:
        terms = (
            factorial(threshold) / factorial(threshold - i) * ((1 - x) / load) ** (i - 1)
            for i in range(1, threshold + 1)
        )
        return load / x - sum(terms)

    return float(brentq(gap, 1e-9, 1.0, xtol=1e-14))


def theta_of_small(load: float, threshold: int) -> float:
    """Solve the equation of Ex. 2 as printed.

    Paper: Ex. 2, eq. (5).
    """
    high = threshold + 1

    def gap(x: float) -> float:
        rate = load - high * (1 - x)
        terms = (factorial(high) / factorial(i) * rate ** (i - high) for i in range(high, _LEVELS))
        return (1 - x) * sum(terms) - 1

    return float(brentq(gap, 0.0, 1.0, xtol=1e-14))


def erlang_b(servers: int, traffic: float) -> FloatArray:
    """Return the stationary law of a loss system, state by state from its balance equations."""
    weights = [1.0]
    for busy in range(1, servers + 1):
        weights.append(weights[-1] * traffic / busy)
    return np.asarray(weights) / sum(weights)


def _large(lab: Lab) -> list[Measured]:
    numbers, laws = [], []
    for threshold in LARGE:
        run = runs_of_figure_2(lab)[threshold]
        theta = theta_of_large(LOAD, threshold)
        found = occupancy_rows(run, threshold + 2)
        what = f"theta = q({threshold}) at threshold {threshold}"
        numbers.append(equals(what, found[:, threshold], theta, bias(run)))
        law = erlang_b(threshold, LOAD / (1 - theta))
        laws.append(at_most(f"distance from the Erlang-B law, threshold {threshold}", *_law_distance(run, law)))
    return [*numbers, *laws]


def _small(lab: Lab) -> list[Measured]:
    numbers, laws = [], []
    for threshold in SMALL:
        run = runs_of_figure_2(lab)[threshold]
        theta, high = theta_of_small(LOAD, threshold), threshold + 1
        found = occupancy_rows(run, high + 2)
        what = f"theta = q({high + 1}) at threshold {threshold}"
        numbers.append(equals(what, found[:, high + 1], theta, bias(run)))
        weights = poisson.pmf(np.arange(_LEVELS), LOAD - high * (1 - theta))
        weights[:high] = 0.0
        law = weights / weights.sum()
        laws.append(at_most(f"distance from the birth-death law, threshold {threshold}", *_law_distance(run, law)))
    return [*numbers, *laws]


def _law_distance(run: Result, law: FloatArray) -> tuple[float, float]:
    """Return the largest distance of the time-average shares of pools from a law, and the distance allowed."""
    shares = exactly(occupancy_rows(run, law.size))
    expected = np.pad(law, (0, shares.shape[1] - law.size))
    gaps = np.abs(shares.mean(axis=0) - expected)
    worst = int(np.argmax(gaps))
    # This is the worst of about ten levels, so each gets a tenth of the error probability.
    _, reach = mean_and_error(shares[:, worst], FALSE_ALARM / 10)
    return float(gaps[worst]), reach + bias(run)


# --- random routing under a small threshold ----------------------------------------------------------------


def _replaced(lab: Lab) -> list[Measured]:
    numbers, printed, often = [], [], []
    for threshold in SMALL:
        run, high = runs_of_figure_2(lab)[threshold], threshold + 1
        rate = high * (1 - theta_of_small(LOAD, threshold))  # at which tasks are replaced
        shares = exactly(occupancy_rows(run, high + 2))
        random = np.array([sample.without_token / (sample.time * run.scenario.pools) for sample in run.windows])
        at = f"threshold {threshold}"
        slack = 2 * high * bias(run)
        numbers += [
            equals(f"departures per pool from pools with h tasks, {at}", high * shares[:, high], rate, slack),
            equals(f"tasks sent to random pools, per pool, {at}", random, LOAD - rate, slack),
        ]
        printed.append(
            equals(
                f"departures per pool from pools with l tasks, {at}", threshold * shares[:, threshold], rate, slack
            )
        )
        often.append(above(f"share of tasks that find no pool with l tasks or fewer, {at}", random / LOAD, 0.5))
    return [
        *numbers,
        printed[-1].about(Kind.ERRATUM).named("from_l"),
        *(number.about(Kind.REMARK) for number in often[:-1]),
        often[-1].about(Kind.READING).named("often"),
    ]


# --- the fullest pool --------------------------------------------------------------------------------------


def _fullest_of_large(lab: Lab) -> list[Measured]:
    return [
        is_near(
            f"share of time in which the fullest pool has {threshold} tasks, threshold {threshold}",
            float(runs_of_figure_2(lab)[threshold].max_tasks_distribution[threshold : threshold + 1].sum()),
            1.0,
            1e-9,
        )
        for threshold in LARGE
    ]


def fullest_expected(pools: int, law: FloatArray) -> float:
    """Return the mean number of tasks in the fullest of `pools` independent pools."""
    return float(np.sum(1 - np.cumsum(law) ** pools))


def _fullest_of_small(lab: Lab) -> list[Measured]:
    law = predict_equilibrium(load=LOAD, threshold=3).pools_with_exactly
    numbers = []
    sizes = lab.pick((100, 1000, 10_000), (100, 500, 2500))
    for pools, window in zip(sizes, lab.pick((200.0, 40.0, 5.0), (20.0, 5.0, 1.5)), strict=True):
        found = _fullest(lab, pools, 3, window)
        # Pools are only independent in the limit; from 100 pools on the difference is below 0.1 tasks.
        expected = fullest_expected(pools, law)
        numbers.append(equals(f"tasks in the fullest of {pools:,} pools, threshold 3", found, expected, slack=0.1))
    for pools in lab.pick((1000, 10_000), (1000, 4000)):
        stays = float(np.mean(_fullest(lab, pools, 5, 1.0)))
        numbers.append(is_near(f"tasks in the fullest of {pools:,} pools, threshold 5", stays, ceil(LOAD), 1e-9))
    return numbers


def _fullest(lab: Lab, pools: int, threshold: int, window: float) -> list[float]:
    case = Scenario(
        pools=pools, load=LOAD, threshold=threshold, initial_tasks=LOAD, warmup=3.0, horizon=3.0 + window
    )
    seed = lab.seed_for(f"fullest of {pools} at {threshold}")
    run = simulate(case, replications=16, seed=seed, mean_holding_times=True)
    return [averages(sample, pools).max_tasks for sample in run.windows]


_RUNS = (
    "The runs of Figure 2: load 5.5, 16 long runs per threshold. The mean of a finite system may be off by "
    "5 / pools. "
)

CLAIMS = (
    Claim(
        name="equilibrium-of-a-large-threshold",
        place="Sec. 3.2, Ex. 1",
        labels=("Ex. 1", "Fig. 2"),
        statement=(
            "With a threshold above floor(load), a share theta of the pools is at the threshold, where theta "
            "solves an equation, and the tasks in a pool have the Erlang-B law with offered traffic load / (1 - "
            "theta)."
        ),
        how=_RUNS + "Theta solves the equation as printed; the law is computed state by state.",
        measure=_large,
    ),
    Claim(
        name="equilibrium-of-a-small-threshold",
        place="Sec. 3.2, Ex. 2",
        labels=("Ex. 2", "Fig. 2"),
        statement=(
            "With a threshold below the optimum, a share theta of the pools has more than threshold + 1 tasks, "
            "where theta solves an equation, and the tasks in a pool follow a birth-death process that never "
            "falls below threshold + 1."
        ),
        how=(
            _RUNS + "Theta solves the equation as printed; the law is Poisson with rate load - (threshold + 1)(1 "
            "- theta), cut off below threshold + 1."
        ),
        measure=_small,
    ),
    Claim(
        name="random-routing-under-a-small-threshold",
        place="Sec. 3.2, after Exs 1 and 2",
        labels=("Ex. 2",),
        statement=(
            "With a threshold l below the optimum and h = l + 1, tasks that leave a pool with h tasks are "
            "replaced at the rate h (1 - theta) per pool, and all others, which arrive at the rate load - h (1 - "
            "theta), go to random pools. All pools have more than l tasks most of the time."
        ),
        how=(
            _RUNS + f"Thresholds {', '.join(map(str, SMALL))}, theta from the equation as printed: the rates of "
            "departures from pools with h tasks and of tasks sent without a token, up to 2 h times the bias. An "
            "arriving task sees all pools above l for that share of the time. Most of the time means more than "
            "half of it."
        ),
        notes=(
            Note(
                Kind.ERRATUM,
                "As printed, the tasks that are replaced leave pools with l tasks. Such pools exist "
                f"only for moments; at threshold {SMALL[-1]} the rate of departures from them is {{from_l:.2g}}.",
            ),
            Note(
                Kind.READING,
                "We read: each pool has more than l tasks most of the time. All of them together do, also in "
                f"the limit, for a share 1 - h (1 - theta) / load of the time: {{often:.0%}} at threshold "
                f"{SMALL[-1]}, and nearly 0 when the load is just above h.",
            ),
        ),
        measure=_replaced,
        expected=Verdict.ERRATUM,
    ),
    Claim(
        name="fullest-pool-of-a-large-threshold",
        place="Sec. 3.2, after Ex. 1",
        labels=("Ex. 1",),
        statement="With a threshold that is too large, the number of tasks in the fullest pool is the threshold.",
        how=_RUNS + "More would take a total above pools times threshold, which is six deviations away.",
        measure=_fullest_of_large,
    ),
    Claim(
        name="fullest-pool-of-a-small-threshold",
        place="Sec. 3.2, after Ex. 1",
        labels=("Ex. 2", "Thm 2"),
        statement=(
            "With a threshold that is too small, the fullest pool grows without bound with the number of pools, "
            "while at threshold floor(load) it stays at ceil(load) tasks."
        ),
        how=(
            "Load 5.5, threshold 3, 16 long runs for each of several numbers of pools. The mean must be that of "
            "the fullest of as many independent pools with the law of Example 2, which is unbounded, up to 0.1."
        ),
        measure=_fullest_of_small,
    ),
)
