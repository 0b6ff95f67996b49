"""Claims about the total and the tail masses of fluid solutions and of systems.

Paper: Sec. 3.2, Def. 1, Lems 1 and 2, Prop. 1.
"""

from __future__ import annotations

from itertools import pairwise
from math import exp

import numpy as np

from evenly.paper.claims.claim import Claim, Kind, Measured, Note
from evenly.paper.claims.judge import at_least, at_most, equals
from evenly.paper.experiments.lab import Lab
from evenly.paper.experiments.random_starts import Case, random_cases
from evenly.sim import Scenario, simulate
from evenly.theory.balance import FloatArray
from evenly.theory.fluid.mass import tail_mass_bound
from evenly.theory.fluid.modes import assignment
from evenly.theory.fluid.path import FluidPath
from evenly.theory.fluid.predict import predict_fluid

LOAD, HIGH = 5.5, 11.0
HORIZON, POINTS = 4.0, 41
ROUNDING = 1e-8  # the solver's error in a tail mass stays below
SCHEDULE = "0:9,1:2,2:6~4/1.5"  # two steps, then waves
CELLS = 800  # of the grid on which varying functions are integrated
DEVIATIONS = 7.0

# --- the total mass ----------------------------------------------------------------------------------------


def _total_mass(lab: Lab) -> list[Measured]:
    numbers = []
    paths = [
        predict_fluid(load=LOAD, threshold=3, initial_tasks=start, horizon=2.0, points=2 * CELLS + 1)
        for start in (0.0, HIGH)
    ]
    off = max(float(np.max(np.abs(path.tail_mass(1) - _mass(path)))) for path in paths)
    tails = max(equation_error(path, level) for path in paths for level in range(1, 9))
    for pools, start, points in ((10, 0.0, (1, 4)), (10, HIGH, (2,)), (1000, 0.0, (2,)), (1000, HIGH, (2,))):
        scenario = Scenario(pools=pools, load=LOAD, threshold=3, initial_tasks=start, horizon=2.0)
        repeats = lab.pick(600, 60) if pools == 10 else lab.pick(60, 12)
        purpose = f"mass {pools} {start}"
        run = simulate(scenario, replications=repeats, seed=lab.seed_for(purpose), points=5)
        for point in points:
            found = [path.occupancy[point, 1:].sum() for path in run.trajectories]
            expected = LOAD + (start - LOAD) * exp(-point / 2)
            what = f"tasks per pool at time {point / 2:g}, {pools:,} pools, from {start:g} each"
            numbers.append(equals(what, found, expected))
    # A change of mode inside a cell changes the integrand by at most the load; each path has two.
    return [
        *numbers,
        at_most("largest error of the fluid solutions", off, 1e-9),
        at_most("largest error of the equation for tail masses from level 1 to 8 on", tails, 4 * LOAD / CELLS),
    ]


def _mass(path: FluidPath) -> FloatArray:
    return np.asarray(path.load + (path.tail_mass(1)[0] - path.load) * np.exp(-path.times))


def equation_error(path: FluidPath, level: int) -> float:
    """Return the largest error of the equation for the tail mass from `level` on, along a solution.

    Its right-hand side is evaluated at every second time, and the equation solved in between.

    Paper: Lem. 1.
    """
    middles = path.occupancy[1::2]
    rates = [assignment(q, path.load, path.initial_threshold)[level:].sum() for q in middles]
    limits = np.asarray(rates) - (level - 1) * middles[:, level]
    mass = path.tail_mass(level)[::2]
    return float(np.max(np.abs(mass - varying_bound(float(mass[0]), limits, path.times[::2]))))


# --- the exponential bound ---------------------------------------------------------------------------------


def varying_bound(start: float, limits: FloatArray, times: FloatArray) -> FloatArray:
    """Return the bound for a function phi that takes the values `limits` between the `times`.

    Paper: Lem. 2, whose integral is summed interval by interval.
    """
    bounds = [start]
    for limit, (begin, end) in zip(limits, pairwise(times), strict=True):
        bounds.append(float(tail_mass_bound(bounds[-1], limit, end - begin)))
    return np.asarray(bounds)


def _exponential_bound(lab: Lab) -> list[Measured]:
    rng = np.random.default_rng(lab.seed_for("exponential bound"))
    worst, tight = _random_functions(rng, lab.pick(400, 100))
    path = predict_fluid(schedule=SCHEDULE, threshold=3, initial_tasks=6.0, horizon=HORIZON, points=2 * CELLS + 1)
    scenario = Scenario(
        pools=lab.pick(100_000, 5000), schedule=SCHEDULE, threshold=3, initial_tasks=6.0, horizon=HORIZON
    )
    run = simulate(scenario, seed=lab.seed_for("varying load"), points=2 * CELLS + 1).trajectories[0]
    # The load is taken in the middle of each cell; steps are at the ends of cells. Along the waves, whose second
    # derivative is at most 70, that is off by 70 / 24 times the square of a cell, 7e-5, and by less than that at
    # each kink where the load crosses the threshold.
    coarse = 1e-3
    noise = np.sqrt(2 * 10.0 / (2 * scenario.pools))  # arrivals and departures, at rates of at most 10 per pool
    return [
        at_most("excess of random functions over their bounds", worst, 1e-12),
        at_most("excess of fluid tail masses under a varying load", _varying_excess(path, path.occupancy), coarse),
        at_most(
            f"excess of the tail masses of {scenario.pools:,} pools under it",
            _varying_excess(path, run.occupancy),
            coarse + DEVIATIONS * float(noise),
        ),
        at_most("distance of a function from its bound, if the inequality is an equation", tight, 1e-12).about(
            Kind.REMARK
        ),
    ]


def _random_functions(rng: np.random.Generator, count: int) -> tuple[float, float]:
    """Return the largest excess of random functions over their bounds, and the distance where there is equality.

    Both phi and the gap in the inequality are constant between random times, so f is known exactly.
    """
    worst, tight = -np.inf, 0.0
    for _ in range(count):
        times = np.cumsum(rng.exponential(0.3, 31))
        phi, gap = rng.normal(0.0, 5.0, 30), rng.exponential(1.0, 30)
        start = rng.normal(0.0, 5.0)
        bound = varying_bound(start, phi, times)
        worst = max(worst, float(np.max((_solution(start, phi - gap, times) - bound)[1:])))
        tight = max(tight, float(np.max(np.abs(_solution(start, phi, times) - bound))))
    return worst, tight


def _solution(start: float, drift: FloatArray, times: FloatArray) -> FloatArray:
    """Solve f' = drift - f, for a drift that is constant between the times, by the integral of the lemma."""
    weights = drift * np.diff(np.exp(times - times[0]))
    return np.asarray((start + np.concatenate([[0.0], np.cumsum(weights)])) * np.exp(times[0] - times))


def _varying_excess(path: FluidPath, occupancy: FloatArray) -> float:
    """Return how far the tail masses exceed the bounds for the load of the path."""
    load, threshold = path.demand[1::2], path.initial_threshold
    worst = -np.inf
    for level in (threshold + 1, threshold + 2):
        mass = occupancy[::2, level:].sum(axis=1)
        bound = varying_bound(float(mass[0]), np.maximum(load - level + 1, 0.0), path.times[::2])
        worst = max(worst, float(np.max((mass - bound)[1:])))
    return worst


# --- the tail masses ---------------------------------------------------------------------------------------


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
        name="total-mass",
        place="Sec. 3.2, Lem. 1",
        labels=("Lem. 1", "Def. 1"),
        statement=(
            "The number of tasks per pool approaches the load exponentially, with the mean task time as its time "
            "scale, whatever the policy. The tail masses follow a similar equation."
        ),
        how=(
            "Replications of 10 and of 1,000 pools at load 5.5 and threshold 3, from empty pools and from 11 "
            "tasks each. The mean must be load + (start - load) exp(-t) for any number of pools, and the fluid "
            "solver must agree with it to 1e-9. The equation for the tail masses is integrated along the same "
            f"fluid solutions in {CELLS} cells. Its error may be that of a cell at each change of mode."
        ),
        measure=_total_mass,
    ),
    Claim(
        name="exponential-bound",
        place="Sec. 3.2, Lem. 2",
        labels=("Lem. 2",),
        statement=(
            "If a function falls at least as fast as its distance above a second function, which may vary, then "
            "it stays below its initial value times exp(-t) plus the exponentially weighted integral of the "
            "second function."
        ),
        how=(
            "Random functions whose two terms are constant between 31 random times, so that their solution is "
            "exact. Then the tail masses beyond threshold 3, and beyond 4, under a load that steps from 9 to 2 "
            "and swings by 4 around 6: the second function is the part of the load above the threshold. A fluid "
            f"solution, and a simulated system up to {DEVIATIONS:g} deviations of its noise, must stay below the "
            f"bound, up to the error of {CELLS} cells."
        ),
        notes=(
            Note(
                Kind.REMARK,
                "The bound is sharp: it is reached if the inequality is an equation. The paper applies the lemma "
                "with constant functions only.",
            ),
        ),
        measure=_exponential_bound,
    ),
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
