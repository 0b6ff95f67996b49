"""Claims about the model, the policy and its tokens.

Paper: Sec. 2 and Sec. 2.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, floor, log, sqrt

import numpy as np
from scipy.stats import poisson

from evenly.paper.claims.balance import tasks_missing
from evenly.paper.claims.claim import Claim, Measured
from evenly.paper.claims.judge import above, at_least, at_most, below, empirical_reach, equals, is_exactly
from evenly.paper.experiments.events import (
    CORE,
    KERNEL,
    POOLS,
    WATCHED,
    Event,
    all_events,
    choices,
    distance_from_uniform,
    recorded,
)
from evenly.paper.experiments.lab import Lab
from evenly.policies import COMPARED
from evenly.sim import Result, Scenario, compare, simulate, with_policies
from evenly.sim.tally import averages
from evenly.theory.balance import FloatArray

POLICIES = tuple(reversed(COMPARED))  # those of Fig. 5


# --- tokens and dispatching --------------------------------------------------------------------------------


def _tokens(lab: Lab) -> list[Measured]:
    runs = recorded(lab, CORE)
    filling = max(event.tokens for event in runs["large"])
    return [
        at_most(
            f"most tokens at any time, {POOLS} pools", max(e.tokens for e in all_events(lab, CORE)), 2 * POOLS
        ),
        is_exactly(f"most tokens from an empty system, {POOLS} pools, threshold 6", filling, 2 * POOLS),
    ]


def _truth(lab: Lab) -> list[Measured]:
    runs = recorded(lab, CORE)
    fixed = [*runs["small"], *runs["right"], *runs["large"]]
    steps = [event.step for event in runs["learning"]]
    return [
        is_exactly(f"events after which a token is wrong, out of {len(fixed):,}", _wrong(fixed), 0),
        is_exactly(f"the same while learning, out of {len(steps):,}", _wrong(runs["learning"]), 0),
        at_least("rises of the threshold among these", steps.count(1), 2),
        at_least("falls of the threshold among these", steps.count(-1), 2),
    ]


def _wrong(events: Sequence[Event]) -> int:
    return sum(not event.honest for event in events)


def _dispatching(lab: Lab) -> list[Measured]:
    numbers, seen = [], []
    for where in (CORE, KERNEL):
        placements = [event.placement for event in all_events(lab, where) if event.placement]
        against = sum(not place.allowed for place in placements)
        numbers.append(
            is_exactly(f"tasks sent against the rule ({where}), out of {len(placements):,}", against, 0)
        )
    for case, name in (("below", "below the threshold"), ("at", "at the threshold"), ("anywhere", "anywhere")):
        found = [places for where in (CORE, KERNEL) for places in choices(lab, where, case)]
        distances = [(distance_from_uniform(places), empirical_reach(max(places.size, 1))) for places in found]
        worst = max(distances, key=lambda pair: pair[0] / pair[1])  # relative to its bound
        numbers.append(at_most(f"distance of the choices from the uniform law, pools {name}", *worst))
        seen.append(min(places.size for places in found))
    return [*numbers, at_least("choices in the rarest of the three cases", min(seen), 200)]


# --- the total number of tasks -----------------------------------------------------------------------------


def _poisson_total(lab: Lab) -> list[Measured]:
    pools, load, apart = 20, 5.5, 10.0
    mean = pools * load * (1 - exp(-apart))
    law = poisson(mean)
    looks = lab.pick(300, 45)
    numbers, totals = [], []
    for policy in POLICIES:
        scenario = Scenario(policy=policy, pools=pools, load=load, horizon=looks * apart)
        run = simulate(scenario, replications=8, seed=lab.seed_for(f"total {policy}"), points=looks + 1)
        found = np.concatenate([path.pools_at_least[1:, 1:].sum(axis=1) for path in run.trajectories])
        totals.append(found)
        share = np.cumsum(np.bincount(found)) / found.size
        gap = float(np.max(np.abs(share - law.cdf(np.arange(share.size)))))
        numbers.append(at_most(f"distance from the Poisson law, {policy}", gap, empirical_reach(found.size)))
    every = np.concatenate(totals)
    # Observations 10 apart are correlated by exp(-10), less than 1e-4, and the mean of the later ones differs by
    # no more than that.
    return [
        *numbers,
        equals("mean number of tasks, all policies", every, mean, slack=1e-4 * mean),
        equals("its variance", (every - mean) ** 2, mean, slack=1e-4 * mean),
    ]


# --- utility -----------------------------------------------------------------------------------------------


def utility_lost(shares: FloatArray, quality: Callable[[float], float]) -> float:
    """Return the utility lost per pool against a balanced load, whose utility is linear between whole loads."""
    levels = np.arange(shares.size + 1)
    worth = np.array([0.0, *(tasks * quality(1 / tasks) for tasks in range(1, levels.size))])
    mean = float(shares @ levels[:-1])
    return float(np.interp(mean, levels, worth) - shares @ worth[:-1])


def _lost(run: Result, quality: Callable[[float], float]) -> list[float]:
    pools = run.scenario.pools
    return [utility_lost(averages(sample, pools).pools_with_exactly, quality) for sample in run.windows]


def _utility(lab: Lab) -> list[Measured]:
    load, pools, window = 10.5, 500, lab.pick(60.0, 4.0)
    scenario = Scenario(pools=pools, load=load, initial_tasks=load, warmup=5.0, horizon=5.0 + window)
    found = compare(
        with_policies(scenario, POLICIES), replications=16, seed=lab.seed_for("utility"), mean_holding_times=True
    )
    runs = dict(zip(POLICIES, found, strict=True))
    least = min(min(_lost(run, quality)) for run in found for quality in (log, sqrt))
    # A pool with one task fewer than floor(load) loses the distance from the line through the next two utilities.
    # More tasks are missing while few pools have 11, hence four times.
    around = [tasks * log(1 / tasks) for tasks in range(floor(load) - 1, floor(load) + 2)]
    kink = -np.diff(around, 2)[0]
    limit = 4 * tasks_missing(load) * float(kink) / pools
    law = poisson.pmf(np.arange(80), load)
    # At the end of the warm-up a fraction exp(-5) of the initial tasks is left, so under random routing the
    # variance is too small by 10 exp(-10), and the utility lost by less than 1e-4.
    return [
        at_least("smallest utility lost per pool, all policies and samples, log and root", least, -1e-12),
        below("utility lost per pool, log, threshold 10", _lost(runs["threshold"], log), limit),
        below("utility lost per pool, log, jsq", _lost(runs["jsq"], log), limit),
        above("utility lost per pool, log, power-of-2", _lost(runs["power-of-d"], log), 20 * limit),
        equals("utility lost per pool, log, random", _lost(runs["random"], log), utility_lost(law, log), 1e-4),
        equals("utility lost per pool, root, random", _lost(runs["random"], sqrt), utility_lost(law, sqrt), 1e-4),
    ]


CLAIMS = (
    Claim(
        name="two-tokens-a-pool",
        place="Sec. 2.1",
        labels=("Sec. 2.1",),
        statement=(
            "The dispatcher never holds more than two tokens per pool, and holds two per pool in an empty system."
        ),
        how=WATCHED + "The tokens of the core's dispatcher are counted after every event.",
        measure=_tokens,
    ),
    Claim(
        name="tokens-tell-the-truth",
        place="Sec. 2.1",
        labels=("Sec. 2.1",),
        statement=(
            "The messages keep the tokens right: green for exactly the pools below the threshold, yellow for "
            "exactly those at or below it."
        ),
        how=(
            WATCHED + "After every event the tokens of the core's dispatcher are compared with the tasks of all "
            "pools."
        ),
        measure=_truth,
    ),
    Claim(
        name="dispatching-rule",
        place="Sec. 2.1",
        labels=("Sec. 2.1",),
        statement=(
            "A task goes to a pool below the threshold if there is one, else to a pool at it, else to any pool. "
            "In each case all such pools are equally likely."
        ),
        how=(
            WATCHED + "In each of the three cases, the rank of the chosen pool among its candidates must be "
            "uniform, ordered by tasks (core and kernel) and by pool number (core). The largest of these three "
            "Kolmogorov distances must stay below the bound of Dvoretzky, Kiefer, Wolfowitz and Massart for an "
            "error probability of 1e-9."
        ),
        measure=_dispatching,
    ),
    Claim(
        name="total-is-poisson",
        place="Sec. 2.1",
        labels=("Sec. 2.1",),
        statement=(
            "In the long run the total number of tasks is Poisson with mean pools times load, whatever the policy."
        ),
        how=(
            "20 pools at load 5.5 from an empty system, 8 long runs per policy, each policy with separate random "
            "numbers, observed every 10 mean task times: then the mean is 110 (1 - exp(-10)), and observations "
            "are practically independent. The Kolmogorov distance must stay below the bound for an error "
            "probability of 1e-9."
        ),
        measure=_poisson_total,
    ),
    Claim(
        name="balance-maximises-utility",
        place="Sec. 2",
        labels=("Sec. 2",),
        statement=(
            "The overall utility, the sum over pools of X g(1/X) with g concave and increasing, is largest when "
            "the load is balanced."
        ),
        how=(
            "500 pools at load 10.5 under the policies of Figure 5, long runs, with g the logarithm and the root. "
            "For whole numbers of tasks no policy can exceed the interpolated utility at its mean number of "
            "tasks. Threshold and JSQ may lose four times the cost of the geometric number of tasks missing below "
            "10; random must lose what follows from the Poisson law."
        ),
        measure=_utility,
    ),
)
