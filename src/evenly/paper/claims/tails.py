"""Claims about the tail masses of fluid solutions and of systems with a fixed threshold.

Paper: Sec. 3.2, Prop. 1.
"""

from __future__ import annotations

import numpy as np

from evenly.paper.claims.claim import Claim, Kind, Measured, Note
from evenly.paper.claims.judge import at_least, at_most
from evenly.paper.experiments.lab import Lab
from evenly.paper.experiments.random_starts import Case, random_cases
from evenly.sim import Scenario, simulate
from evenly.theory.balance import FloatArray
from evenly.theory.fluid.mass import tail_mass_bound
from evenly.theory.fluid.predict import predict_fluid

HORIZON, POINTS = 4.0, 41
ROUNDING = 1e-8  # the solver's error in a tail mass stays below
DEVIATIONS = 7.0


def tail_excess(occupancy: FloatArray, times: FloatArray, level: int, limit: float) -> float:
    """Return how far the tail mass from `level` on exceeds its bound, after the first time."""
    mass = occupancy[:, level:].sum(axis=1)
    return float(np.max((mass - tail_mass_bound(float(mass[0]), limit, times - times[0]))[1:]))


def _excesses(case: Case, occupancy: FloatArray, times: FloatArray) -> tuple[float, float]:
    """Return the excess of both tail masses, from time 0 on."""
    high = case.threshold + 1
    first = tail_excess(occupancy, times, high, max(case.load - case.threshold, 0.0))
    return first, tail_excess(occupancy, times, high + 1, max(case.load - high, 0.0))


def _solved(case: Case) -> tuple[float, float]:
    path = predict_fluid(
        load=case.load,
        threshold=case.threshold,
        initial_occupancy=case.occupancy,
        horizon=HORIZON,
        points=POINTS,
    )
    return _excesses(case, path.occupancy, path.times)


def _simulated(case: Case, pools: int, seed: int) -> tuple[float, float]:
    """Return the excesses of one run, in deviations of its noise."""
    start = case.tasks(pools)
    scenario = Scenario(
        pools=pools, load=case.load, threshold=case.threshold, initial_tasks=start, horizon=HORIZON
    )
    run = simulate(scenario, seed=seed, points=POINTS).trajectories[0]
    # Arrivals and departures add noise at a rate of at most load + tasks, which is forgotten at rate 1.
    noise = float(np.sqrt((case.load + max(float(start.mean()), case.load)) / (2 * pools)))
    first, second = _excesses(case, run.occupancy, run.times)
    return first / noise, second / noise


def _tail_masses(lab: Lab) -> list[Measured]:
    rng = np.random.default_rng(lab.seed_for("tails"))
    cases = random_cases(rng, lab.pick(400, 60))
    pools, systems = lab.pick(100_000, 5000), lab.pick(40, 15)
    solved = {case: _solved(case) for case in cases}
    seed = lab.seed_for("tails of systems") >> 1  # leaves room to count up
    seen = {case: _simulated(case, pools, seed + index) for index, case in enumerate(cases[:systems])}
    # The two bounds and the cases in which the paper states them.
    first = [case for case in cases if case.threshold + 1 > case.load]
    second = [case for case in cases if case.threshold + 1 >= case.load]
    low = [case for case in cases if case.threshold + 1 <= case.load]
    noisy = [seen[case][0] for case in first if case in seen] + [seen[case][1] for case in second if case in seen]
    return [
        at_most(f"excess over (3a), {len(first)} fluid solutions", max(solved[x][0] for x in first), ROUNDING),
        at_most(f"excess over (3b), {len(second)} fluid solutions", max(solved[x][1] for x in second), ROUNDING),
        at_most(f"excess of {pools:,} pools, in deviations of their noise", max(noisy), DEVIATIONS),
        at_least("fluid solutions with h above the load whose pools all have h tasks at time 0", _full(first), 3),
        at_most(
            f"excess over (3a) where h is at most the load, {len(low)} fluid solutions",
            max(solved[case][0] for case in low),
            ROUNDING,
        ).about(Kind.REMARK),
        at_most(
            "excess over (3b) with limit load - h where h is at most the load",
            max(solved[case][1] for case in low),
            ROUNDING,
        ).about(Kind.REMARK),
    ]


def _full(cases: list[Case]) -> int:
    """Count the starts in which every pool has threshold + 1 tasks or more."""
    return sum(case.occupancy[case.threshold + 1 : case.threshold + 2] == (1.0,) for case in cases)


CLAIMS = (
    Claim(
        name="tail-mass-bounds",
        place="Sec. 3.2, Prop. 1",
        labels=("Prop. 1", "Lem. 2"),
        statement=(
            "If h = threshold + 1 exceeds the load, the tasks beyond the threshold fall exponentially to load - "
            "threshold or below from some time on (3a), and those beyond h to zero (3b), the latter from time 0 "
            "on and also if the load is h."
        ),
        how=(
            "Fluid solutions at random loads and thresholds from random occupancies, in which often all pools "
            "have many tasks. Both bounds are compared from time 0 on, up to time "
            f"{HORIZON:g}, to {ROUNDING:g}. Simulated systems from some of these occupancies may exceed them by "
            f"{DEVIATIONS:g} deviations of their noise."
        ),
        notes=(
            Note(
                Kind.REMARK,
                "More is true: (3a) holds from time 0 on, and at any load. In each of the three modes of the "
                "fluid equations, the arrivals beyond the threshold less threshold q(h) are at most (load - "
                "threshold)+. For the same reason (3b) holds at any load with the limit (load - h)+.",
            ),
        ),
        measure=_tail_masses,
    ),
)
