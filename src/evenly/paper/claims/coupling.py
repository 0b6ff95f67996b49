"""Claims that the proof of the diffusion limits rests on: a coupling, and random routing that vanishes.

Paper: Sec. 3.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.stats import binom, poisson

from evenly.paper.claims.claim import Claim, Kind, Measured, Note
from evenly.paper.claims.judge import FALSE_ALARM, at_least, is_exactly, proportion
from evenly.paper.experiments.lab import Lab
from evenly.sim import Scenario
from evenly.sim.coupling.jsq import CoupledRun, couple_with_jsq
from evenly.sim.simulation import Simulation

LOAD, FLOOR, HORIZON = 2.5, 2, 5.0
CLOSE = 2.9  # a load just below a whole number
MODES = 12


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


def _unlike(run: CoupledRun) -> int:
    """Count the events after which the two systems differ in tasks up to the threshold or in pools above it."""
    return int((run.jsq != run.threshold).any(axis=1).sum())


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
    others = sum(not np.array_equal(run.final_jsq, run.final_threshold) for run in runs)
    return [
        is_exactly("events after which the two policies differ", sum(map(_unlike, runs)), 0),
        at_least("runs that end in different full states", others, 1),
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


def _frequency(lab: Lab, policy: str, pools: int, runs: int) -> int:
    """Count the runs in which a task goes to a pool with floor(load) + 1 tasks, so that some pool has one more."""
    scenario = Scenario(policy=policy, pools=pools, load=LOAD, initial_tasks=LOAD, horizon=HORIZON)
    hits = 0
    for run in range(runs):
        seed = np.random.SeedSequence(lab.seed_for(f"routing {policy} {pools}"), spawn_key=(run,))
        simulation = Simulation(scenario, seed)
        simulation.advance(HORIZON)
        hits += bool(simulation.tally().max_time[FLOOR + 2 :].any())
    return hits


def _random_routing(lab: Lab) -> list[Measured]:
    runs = lab.pick(2000, 250)
    numbers = []
    for policy, pools in (("threshold", 10), ("threshold", 40), ("jsq", 40), ("threshold", 200), ("jsq", 200)):
        hits = _frequency(lab, policy, pools, runs)
        chance = passage_probability(pools, LOAD, pools * (FLOOR + 1), HORIZON)
        low, high = (binom.ppf(tail, runs, chance) for tail in (FALSE_ALARM / 2, 1 - FALSE_ALARM / 2))
        share, error = proportion(hits, runs)
        name = "shortest queue" if policy == "jsq" else policy
        numbers.append(Measured(f"probability, {pools} pools, {name}", share, low <= hits <= high, error, chance))
    close = passage_probability(1000, CLOSE, 1000 * (FLOOR + 1), HORIZON)
    return [*numbers, at_least("probability, 1000 pools, load 2.9, computed", close, 0.4)]


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
            "The coupling, run event by event with 1 to 10000 pools, loads 0.6 to 5.5, whole and not, from empty, "
            "even and uneven states, some with fuller pools: both numbers are compared after every event. The "
            "full states must differ somewhere, or the comparison would prove nothing. The construction has its "
            "own copy of the two dispatching rules and would not notice a wrong dispatcher; the tests of this row "
            "compare its two systems with the exact laws of the policies."
        ),
        notes=(
            Note(
                Kind.REMARK,
                "At a departure from a pool with at most floor(load) tasks the text picks a pool. It must pick a "
                "task: a pool picked uniformly may be empty, and tasks would not leave at equal rates. Picking a task "
                "is all that the proof needs.",
            ),
        ),
        measure=_coupling,
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
            "Load 2.5 over 5 mean task times from the balanced state, 2000 runs (250 in quick runs) of 10, 40 and "
            "200 pools: the frequency against the probability that the total number of tasks, a birth-death "
            "process, passes 3 n, computed from its eigenvectors. The frequency may deviate as the binomial law "
            "allows, so almost none of the runs with 200 pools may see such a task."
        ),
        notes=(
            Note(
                Kind.REMARK,
                "It takes many pools when the load is just below a whole number: at load 2.9 nearly half of the runs "
                "with 1000 pools still see such a task.",
            ),
        ),
        measure=_random_routing,
    ),
)
