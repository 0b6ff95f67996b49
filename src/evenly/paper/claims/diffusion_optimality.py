"""The claim that no policy fluctuates less: threshold and join-the-shortest-queue side by side.

Paper: Sec. 3.3.
"""

from __future__ import annotations

import numpy as np

from evenly.paper.claims.claim import Claim, Measured
from evenly.paper.claims.diffusion import LOAD, SNAPSHOTS, TIMES, WHOLE, sampled
from evenly.paper.claims.judge import at_least, at_most, is_exactly, two_sample_reach
from evenly.paper.experiments.ensembles import Counts, largest_distance, watch
from evenly.paper.experiments.lab import Lab
from evenly.sim import Scenario, with_policies


def _pair(states: Counts, load: float) -> Counts:
    """Return the two numbers of both limits: tasks up to floor(load), and pools above it."""
    floor = int(load)
    return np.stack([states[:, :, 1 : floor + 1].sum(axis=2), states[:, :, floor + 1]], axis=2)


def _side_by_side(lab: Lab, load: float) -> list[Counts]:
    """Simulate threshold, join-the-shortest-queue and power of two on the same randomness."""
    times = np.linspace(0.0, TIMES[-1], SNAPSHOTS).tolist()
    seed = lab.seed_for(f"side by side {load}")
    scenario = Scenario(pools=1000, load=load, initial_tasks=load, horizon=TIMES[-1])
    scenarios = with_policies(scenario, ["threshold", "jsq", "power-of-d"])
    return [watch(each, times, lab.pick(32, 8), seed).states[:, 1:] for each in scenarios]


def _optimal(lab: Lab) -> list[Measured]:
    numbers: list[Measured] = []
    others, power = 0, []
    for load in (LOAD, float(WHOLE)):
        ours, best, two = _side_by_side(lab, load)
        differ = (_pair(ours, load) != _pair(best, load)).any(axis=2)
        numbers.append(is_exactly(f"snapshots that differ, load {load:g}", int(differ.sum()), 0))
        others += int((ours != best).any(axis=2).sum())
        power.append(float((_pair(two, load) != _pair(best, load)).any(axis=2).mean()))
    far = []
    for load in (LOAD, float(WHOLE)):
        policies = ("threshold", "jsq", "power-of-d")
        first, second, third = (_pair(sampled(lab, policy, load), load)[:, 1] for policy in policies)
        what = f"distance between independent samples, load {load:g}"
        numbers.append(at_most(what, largest_distance(first, second), two_sample_reach(len(first))))
        far.append(largest_distance(second, third))
    return [
        *numbers,
        at_least("snapshots that differ in emptier pools", others, 1),
        at_least("share of snapshots that differ, power of two", min(power), 0.9),
        at_least("distance between independent samples, power of two", min(far), 0.9),
    ]


CLAIMS = (
    Claim(
        name="diffusion-optimal",
        place="Sec. 3.3",
        labels=("Thm 3", "Thm 4"),
        statement=(
            "With threshold floor(load) the policy fluctuates in the same way as join-the-shortest-queue, the "
            "best of all policies, whether the load is whole or not."
        ),
        how=(
            "Both policies on the same arrivals and departures, 1000 pools, loads 2.5 and 3: the tasks up to "
            "floor(load) and the pools above it must be equal at every snapshot, even where emptier pools differ. "
            "Then independent systems under each policy at time 2: "
            "the largest distance between the distribution functions of the same two numbers, up to chance "
            "(Dvoretzky, Kiefer and Wolfowitz for two samples). With power of two choices, at least 0.9 of the "
            "snapshots must differ, and the distance be at least 0.9."
        ),
        measure=_optimal,
    ),
)
