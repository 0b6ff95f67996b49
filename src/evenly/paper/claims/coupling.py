"""Claims that the proof of the diffusion limits rests on: a coupling, and random routing that vanishes.

Paper: Sec. 3.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.stats import binom, poisson

from evenly.paper.claims.claim import Claim, Kind, Measured, Note, Verdict
from evenly.paper.claims.judge import FALSE_ALARM, at_least, at_most, is_exactly, proportion
from evenly.paper.experiments.lab import Lab
from evenly.paper.experiments.printed_coupling import printed_differences
from evenly.sim import Scenario, simulate
from evenly.sim.coupling.jsq import couple_with_jsq, random_routing_probability

LOAD, FLOOR, HORIZON = 2.5, 2, 5.0
ENOUGH = 200  # pools for the probability to vanish
CLOSE, MANY = 2.9, 1000  # a load just below a whole number, and pools that do not suffice for it
VANISHED = 0.01  # a probability that counts as none
FEW, PRINTED_EVENTS = 20, 1000  # pools and events of the coupling as printed
MODES = 12
ROUTED = (  # policy, pools and load of the runs
    ("threshold", 10, LOAD),
    ("threshold", 40, LOAD),
    ("jsq", 40, LOAD),
    ("threshold", ENOUGH, LOAD),
    ("jsq", ENOUGH, LOAD),
    ("threshold", MANY, CLOSE),
)


def _starts() -> list[tuple[int, float, Sequence[int] | float]]:
    """Return pools, load and initial tasks: none, balanced, uneven, and some beyond floor(load) + 1."""
    uneven = [0, 0, 1, 2, 3, 3, 0, 1, 2, 2] * 5
    return [
        (1, 0.6, 0.0),
        (20, 2.5, 0.0),
        (50, 2.5, uneven),
        (50, 3.0, [3] * 50),
        (100, 5.5, [5, 6] * 50),
        (40, 1.7, [0, 4, 7, 2] * 10),
        (10_000, 4.9, 0.0),
    ]


def _coupling(lab: Lab) -> list[Measured]:
    runs = [
        couple_with_jsq(
            pools=pools,
            load=load,
            initial_tasks=start,
            seed=lab.seed_for(f"coupling {n}"),
            events=lab.pick(30_000, 5000),
        )
        for pools, load, start in _starts()
        for n in range(lab.pick(5, 2))
    ]
    unlike = sum(int((run.jsq != run.threshold).any(axis=1).sum()) for run in runs)
    others = sum(not np.array_equal(run.final_jsq, run.final_threshold) for run in runs)
    rng = np.random.default_rng(lab.seed_for("printed coupling"))
    differ, empty = printed_differences(pools=FEW, load=LOAD, events=PRINTED_EVENTS, rng=rng)
    return [
        is_exactly("events after which the two policies differ", unlike, 0),
        at_least("runs that end in different full states", others, 1),
        is_exactly(f"events after which they differ if a pool is picked, {FEW} pools", differ, 0)
        .about(Kind.ERRATUM)
        .named("differ"),
        is_exactly("departures for which an empty pool is picked, among these", empty, 0)
        .about(Kind.ERRATUM)
        .named("empty"),
    ]


def passage_probability(pools: int, load: float, goal: int, horizon: float) -> float:
    """Return the probability that the total number of tasks, from pools * load, exceeds `goal` by the horizon.

    The total is a birth-death process whatever the policy: births at rate pools * load, deaths at rate 1 per task.
    Made symmetric, its generator has an orthogonal basis. The rates of decay are about 0, 1, 2, ..., so a few
    eigenvectors are enough. States more than eight deviations below the start are left out.
    """
    start = round(pools * load)
    lowest = max(0, start - round(8 * sqrt(start)))
    states = np.arange(lowest, goal + 1)
    diagonal = -(pools * load + states)
    diagonal[0] = -pools * load  # no way down
    slowest = (max(0, states.size - MODES), states.size - 1)
    values, vectors = eigh_tridiagonal(
        diagonal, np.sqrt(pools * load * states[1:]), select="i", select_range=slowest
    )
    weights = np.exp((poisson.logpmf(states, pools * load) - poisson.logpmf(start, pools * load)) / 2)
    alive = (vectors[start - lowest] * np.exp(values * horizon)) @ (vectors.T @ weights)
    return float(1 - alive)


def _frequency(lab: Lab, policy: str, pools: int, load: float, runs: int) -> int:
    """Count the runs in which a task goes to a pool with floor(load) + 1 tasks, so that some pool has one more."""
    seed = lab.seed_for(f"routing {policy} {pools} {load}")
    if policy == "threshold":
        found = random_routing_probability(pools=pools, load=load, horizon=HORIZON, replications=runs, seed=seed)
        return round(found[0] * runs)
    scenario = Scenario(policy=policy, pools=pools, load=load, initial_tasks=load, horizon=HORIZON)
    result = simulate(scenario, replications=runs, seed=seed, batches=0)
    return sum(bool(window.max_time[FLOOR + 2 :].any()) for window in result.windows)


def _random_routing(lab: Lab) -> list[Measured]:
    runs = lab.pick(2000, 250)
    numbers = []
    for policy, pools, load in ROUTED:
        hits = _frequency(lab, policy, pools, load, runs)
        chance = passage_probability(pools, load, pools * (FLOOR + 1), HORIZON)
        low, high = (binom.ppf(tail, runs, chance) for tail in (FALSE_ALARM / 2, 1 - FALSE_ALARM / 2))
        share, error = proportion(hits, runs)
        name = "shortest queue" if policy == "jsq" else policy
        what = f"probability, {pools} pools, load {load:g}, {name}"
        numbers.append(Measured(what, share, low <= hits <= high, error, chance))
    gone = passage_probability(ENOUGH, LOAD, ENOUGH * (FLOOR + 1), HORIZON)
    close = passage_probability(MANY, CLOSE, MANY * (FLOOR + 1), HORIZON)
    return [
        *numbers,
        at_most(f"probability, {ENOUGH} pools, load {LOAD:g}, computed", gone, VANISHED),
        at_most(f"probability, {MANY} pools, load {CLOSE:g}, computed", close, VANISHED)
        .about(Kind.FINITE)
        .named("close"),
    ]


CLAIMS = (
    Claim(
        name="coupling",
        place="Sec. 3.4, Prop. 2",
        labels=("Prop. 2",),
        statement=(
            "If tasks that find floor(load) + 1 tasks in every pool are discarded, join-the-shortest-queue and "
            "the policy with threshold floor(load) can be coupled so that they always have equally many tasks up "
            "to the threshold and equally many pools above it."
        ),
        how=(
            "The coupling, run event by event with 1 to 10000 pools, loads 0.6 to 5.5, whole and not, from "
            "empty, even and uneven states, some with fuller pools: both numbers are compared after every "
            "event. The full states must differ somewhere, or the comparison would prove nothing. The "
            "construction has its own copy of the two dispatching rules and would not notice a wrong "
            "dispatcher; the tests of this row compare its two systems with the exact laws of the policies. "
            "Departures are those of tasks. As printed, those of pools, the coupling is run for "
            f"{PRINTED_EVENTS} events."
        ),
        notes=(
            Note(
                Kind.ERRATUM,
                "At a departure from a pool with at most floor(load) tasks the text selects a pool uniformly. "
                f"It must select a task: the pool may be empty, as in {{empty:.0f}} cases here, and then the "
                f"systems drift apart, for {{differ:.0f}} of {PRINTED_EVENTS} events. Even without empty pools, "
                "tasks in emptier pools would leave sooner than others. Selecting a task is all that the proof "
                "needs.",
            ),
        ),
        measure=_coupling,
        expected=Verdict.ERRATUM,
    ),
    Claim(
        name="random-routing-vanishes",
        place="Sec. 3.4, Prop. 3",
        labels=("Prop. 3",),
        statement=(
            "With threshold floor(load), and under join-the-shortest-queue, the probability that within a finite "
            "time any task is sent to a pool with floor(load) + 1 tasks or more vanishes as the number of pools "
            "grows."
        ),
        how=(
            f"Loads {LOAD} and {CLOSE} over {HORIZON:g} mean task times from the balanced state, 2000 runs (250 "
            "in quick runs) of each size: the frequency against the probability that the total number of tasks, "
            "a birth-death process, passes 3 n, computed from its eigenvectors. The frequency may deviate as "
            f"the binomial law allows. A probability below {VANISHED} counts as vanished."
        ),
        notes=(
            Note(
                Kind.FINITE,
                f"It takes many pools when the load is just below a whole number: at load {CLOSE}, {{close:.0%}} "
                f"of the runs with {MANY} pools still see such a task.",
            ),
        ),
        measure=_random_routing,
        expected=Verdict.FINITE,
    ),
)
