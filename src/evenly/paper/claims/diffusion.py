"""Claims about fluctuations of order sqrt(n) around the balanced load.

Every sample is a separate system, started from the balanced state.

Paper: Sec. 3.3.
"""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np

from evenly.paper.claims.claim import Claim, Kind, Measured, Note
from evenly.paper.claims.judge import above, at_most, below, empirical_reach, equals, is_exactly, powers
from evenly.paper.experiments.ensembles import Counts, Floats, Systems, shares, watch
from evenly.paper.experiments.lab import Lab
from evenly.sim import Scenario
from evenly.theory.diffusion.fractional import ornstein_uhlenbeck
from evenly.theory.diffusion.whole import ReflectedPaths, reflected
from evenly.theory.diffusion.whole_law import stationary_summary

LOAD, WHOLE = 2.5, 3
FLOOR, CEIL = 2, 3
TIMES = (1.75, 2.0)
LONG = 5.0  # by then exp(-10) of the initial state is left in the variance
POOLS = 400  # enough for six deviations of the total to be less than the tasks above floor(load)

# Gaps below floor(load) open at rate floor(load) (n - Q(ceil(load))) and are filled at rate load n: a queue with
# this ratio, for any n.
RATIO = FLOOR * (CEIL - LOAD) / LOAD
MISSING = RATIO / (1 - RATIO)
# The ratio varies with Z by -floor(load) / (load sqrt(n)). The mean gap has the second derivative
# 2 / (1 - ratio)^3 in it, which shifts the mean by 7.4 / n; half of that is added for higher orders.
MISSING_SLACK = 1.5 * FLOOR**2 / (LOAD * (1 - RATIO) ** 3)
# Its first derivative, 1 / (1 - ratio)^2, correlates gaps with the total: the variance of Z loses 11 / n.
VARIANCE_SLACK = 1.5 * 2 * FLOOR / (1 - RATIO) ** 2
# The mean gap shifts the distribution function of Z by 0.17 / sqrt(n), the skewness of Poisson numbers by
# 0.04 / sqrt(n).
LAW_SLACK = 0.3

SIZES = (100, 400, 1600, 6400)
SNAPSHOTS = 51
GROUPS = 8


def pools_for(lab: Lab, load: float) -> int:
    """Return the number of pools. Results for whole loads are only known up to 1 / sqrt(n), so these get more."""
    return lab.pick(1600, POOLS) if load == WHOLE else POOLS


def _systems(lab: Lab, policy: str, load: float, times: tuple[float, ...]) -> int:
    """Return the number of systems: for fractional loads it gives the variance to 2 %, or 5 % in quick runs."""
    if policy == "power-of-d":
        return 30  # its difference is large
    if load == WHOLE:
        return lab.pick(1000, 500) if times == TIMES else lab.pick(500, 150)
    return lab.pick(4000, 800)


def sampled(lab: Lab, policy: str, load: float, times: tuple[float, ...] = TIMES) -> Counts:
    """Simulate independent systems and return their states at these times."""
    name = f"diffusion {policy} {load} {times}"
    scenario = Scenario(
        policy=policy, pools=pools_for(lab, load), load=load, initial_tasks=load, horizon=times[-1]
    )
    systems = _systems(lab, policy, load, times)
    return lab.once(name, lambda: watch(scenario, times, systems, lab.seed_for(name)).states)


def _z(states: Counts) -> Floats:
    """Return the paper's Z at both times, for the fractional load."""
    return np.asarray((states[:, :, CEIL] - POOLS * (LOAD - FLOOR)) / sqrt(POOLS))


def _normal_distance(states: Counts) -> float:
    """Return the distance of Z at the end from the normal law, evaluated halfway between the values of Z."""
    levels = np.arange(POOLS + 1)
    law = ornstein_uhlenbeck(LOAD).cdf((levels + 0.5 - POOLS * (LOAD - FLOOR)) / sqrt(POOLS), time=TIMES[1])
    return float(np.abs(shares(states[:, 1, CEIL], levels.size) - law).max())


def _normal(lab: Lab) -> list[Measured]:
    limit, slack = ornstein_uhlenbeck(LOAD), VARIANCE_SLACK / POOLS
    # The variance of a change is that of both ends minus twice their covariance.
    early, late = (limit.variance(time) for time in TIMES)
    change = early + late - 2 * exp(TIMES[0] - TIMES[1]) * early
    numbers, distances = [], []
    for policy, name in (("threshold", "threshold"), ("jsq", "shortest queue")):
        states = sampled(lab, policy, LOAD)
        z = _z(states)
        numbers.append(equals(f"variance at time 2, {name}", z[:, 1] ** 2, late, slack))
        numbers.append(equals(f"mean square change in 0.25, {name}", (z[:, 1] - z[:, 0]) ** 2, change, slack))
        allowed = empirical_reach(len(z)) + LAW_SLACK / sqrt(POOLS)
        distances.append(at_most(f"distance to the normal law, {name}", _normal_distance(states), allowed))
    return numbers + distances


def _beside(lab: Lab, pools: int) -> Systems:
    times = np.linspace(0.0, TIMES[-1], SNAPSHOTS).tolist()
    scenario = Scenario(pools=pools, load=LOAD, initial_tasks=LOAD, horizon=TIMES[-1])
    name = f"beside {pools}"
    return lab.once(name, lambda: watch(scenario, times, GROUPS * lab.pick(8, 4), lab.seed_for(name)))


def _largest_gap(lab: Lab, pools: int) -> Floats:
    """Return, for each system, the most tasks missing below floor(load) at any snapshot, over sqrt(n)."""
    missing = FLOOR * pools - _beside(lab, pools).states[:, :, 1 : FLOOR + 1].sum(axis=2)
    return np.asarray(missing.max(axis=1) / sqrt(pools))


def _vanishing(lab: Lab) -> list[Measured]:
    gaps = [_largest_gap(lab, pools) for pools in SIZES]
    rows = np.stack([gap.reshape(GROUPS, -1).mean(axis=1) for gap in gaps], axis=1)
    # The mean of the largest over all snapshots, if the ratio were always four deviations above its mean.
    ratio = RATIO + 4 * FLOOR / sqrt(LOAD * SIZES[-1])
    limit = (1 + log(SNAPSHOTS)) / -log(ratio) / sqrt(SIZES[-1])
    most = max(int(_beside(lab, pools).states[:, :, CEIL + 1].max()) for pools in SIZES[2:])
    return [
        below(f"most tasks missing over sqrt(n), {SIZES[-1]} pools", gaps[-1], limit),
        below("power of n at which it falls", powers(SIZES, rows), -0.25),
        is_exactly("most pools above 3 tasks, from 1600 pools on", most, 0),
    ]


def _off_balance(lab: Lab) -> list[Measured]:
    numbers, missing = [], []
    for pools in SIZES[2:]:
        means = _beside(lab, pools).means
        off = pools - means[:, FLOOR] + means[:, CEIL + 1]
        numbers.append(below(f"mean number of pools off balance, {pools:,} pools", off, sqrt(pools)))
        gaps = FLOOR * pools - means[:, 1 : FLOOR + 1].sum(axis=1)
        what = f"mean tasks missing below {FLOOR}, {pools:,} pools"
        missing.append(equals(what, gaps, MISSING, MISSING_SLACK / pools).about(Kind.REMARK))
    most = max(int(_beside(lab, pools).states[:, :, CEIL + 1].max()) for pools in SIZES[2:])
    return [
        *numbers,
        missing[0].named("fewer"),
        missing[1].named("more"),
        is_exactly(f"most pools above {CEIL} tasks", most, 0).about(Kind.REMARK),
    ]


def _paths(lab: Lab) -> ReflectedPaths:
    rng = np.random.default_rng(lab.seed_for("reflected limit"))
    return reflected(WHOLE).sample_path([TIMES[1]], rng, start=[0, 0], paths=lab.pick(20_000, 3000))


def sides(states: Counts) -> tuple[Counts, Counts]:
    """Return, at the end, the tasks missing up to the whole load and the pools above it."""
    end = states[:, -1]
    return np.asarray(WHOLE * end[:, 0] - end[:, 1 : WHOLE + 1].sum(axis=1)), end[:, WHOLE + 1]


def _reflected(lab: Lab) -> list[Measured]:
    root, law, paths = sqrt(pools_for(lab, WHOLE)), stationary_summary(WHOLE), _paths(lab)
    numbers = []
    # A value of the lattice stands for the interval up to the next one: means may differ by a step, 1 / sqrt(n).
    limits = (paths.below[:, 0], paths.above[:, 0, 0])
    early = sides(sampled(lab, "threshold", WHOLE))
    for name, counts, limit in zip(("missing", "above"), early, limits, strict=True):
        slack = 1 / root + 6 * float(limit.std()) / sqrt(limit.size)
        numbers.append(equals(f"mean {name} at time 2, over sqrt(n)", counts / root, float(limit.mean()), slack))
    late = sides(sampled(lab, "threshold", WHOLE, (LONG,)))
    for name, counts, side in zip(("missing", "above"), late, (law.below, law.above), strict=True):
        numbers.append(equals(f"mean {name} in the long run, over sqrt(n)", counts / root, side.mean, 1 / root))
        steps = np.arange(int(counts.max()) + 2)
        distance = float(np.abs(shares(counts, steps.size) - side.cdf((steps + 1) / root)).max())
        allowed = empirical_reach(counts.size) + LAW_SLACK / root
        numbers.append(at_most(f"distance to the law of those {name}", distance, allowed))
    expected = float(law.above.cdf(1 / root))
    none = equals("share of systems without a pool above the load", late[1] == 0, expected, LAW_SLACK / root)
    return [*numbers, none.about(Kind.REMARK).named("none")]


def _off_whole(lab: Lab) -> list[Measured]:
    pools, law = pools_for(lab, WHOLE), stationary_summary(WHOLE)
    end = sampled(lab, "threshold", WHOLE, (LONG,))[:, -1]
    below_it, above_it = pools - end[:, WHOLE], end[:, WHOLE + 1]
    # Each side counts pools, of which there are at most as many as tasks missing, and is known up to a step.
    limit = law.below.mean + law.above.mean + 3 / sqrt(pools)
    return [
        below(
            f"mean number of other pools over sqrt(n), {pools:,} pools",
            (below_it + above_it) / sqrt(pools),
            2 * limit,
        ),
        above("share of pools with exactly the load", 1 - (below_it + above_it) / pools, 0.5),
    ]


CLAIMS = (
    Claim(
        name="fluctuations-are-normal",
        place="Sec. 3.3, Thm 3 (b)",
        labels=("Thm 3",),
        statement=(
            "If the load is not whole, the number of pools with ceil(load) tasks fluctuates around its balanced "
            "value by sqrt(n) times an Ornstein-Uhlenbeck process, both with threshold floor(load) and under "
            "join-the-shortest-queue."
        ),
        how=(
            "4000 independent systems (800 in quick runs) of 400 pools, load 2.5, from the balanced state: "
            "the variance at time 2, the mean square change from 1.75 to 2, which is the diffusion's speed, and "
            "the distribution function against the exact ones of the limit, up to chance and the terms of order "
            "1/n (moments) and 1/sqrt(n) (law) that the gaps below 2 tasks and the skewness of Poisson numbers "
            "add. An error of 25 % in the variance would be noticed (50 % in quick runs)."
        ),
        measure=_normal,
    ),
    Claim(
        name="nothing-else-at-this-scale",
        place="Sec. 3.3, Thm 3 (a)",
        labels=("Thm 3",),
        statement=(
            "If the load is not whole, the tasks missing below floor(load) and the pools above ceil(load) vanish "
            "over any finite time when divided by sqrt(n)."
        ),
        how=(
            "Threshold 2, load 2.5, from the balanced state over 2 mean task times, 100 to 6400 pools: the most "
            "tasks missing at any of 51 snapshots, against the mean of the largest of 51 geometric variables; and "
            "its power of n. With 1600 pools or more, no pool may have more than 3 tasks: the total would have to "
            "be twelve deviations above its mean."
        ),
        measure=_vanishing,
    ),
    Claim(
        name="few-pools-off-balance",
        place="Sec. 3.3, after Thm 3",
        labels=("Thm 3",),
        statement="No more than about sqrt(n) pools have fewer than floor(load) or more than ceil(load) tasks.",
        how=(
            "The same runs of 1600 and 6400 pools: the mean number of pools off balance against sqrt(n). For the "
            "remark, the mean number of tasks missing below 2, not scaled, against that of a queue with ratio "
            "floor(load) (ceil(load) - load) / load, up to 11/n for the fluctuations of the ratio."
        ),
        notes=(
            Note(
                Kind.REMARK,
                "True, but far from sharp: the number does not grow at all. Gaps below floor(load) form a queue "
                f"whose ratio does not depend on n. At load {LOAD:g}, {{fewer:.2g}} tasks are missing with "
                f"{SIZES[2]} pools and {{more:.2g}} with {SIZES[3]}. No pool is above ceil(load).",
            ),
        ),
        measure=_off_balance,
    ),
    Claim(
        name="whole-load-reflected",
        place="Sec. 3.3, Thm 4",
        labels=("Thm 4",),
        statement=(
            "If the load is whole, the tasks missing up to it and the pools above it, divided by sqrt(n), follow "
            "a diffusion that is reflected where nothing is missing."
        ),
        how=(
            "Independent systems of 1600 pools (400 in quick runs), load and threshold 3, from the balanced "
            "state: the means of 1000 systems (500) at time 2 against sampled paths of the limit, and the means "
            "and distribution functions of 500 (150) at time 5 against its stationary law, up to chance and one "
            "step of the lattice, 1/sqrt(n)."
        ),
        notes=(
            Note(
                Kind.REMARK,
                "Values are read as intervals of the lattice. Otherwise the law of the pools above the load is "
                "approached very slowly: it rises like y^(1/(load + 1)) at first, so the probability to see no "
                f"such pool, {{none:.0%}} here, falls only like n^(-1/{2 * (WHOLE + 1)}) at load {WHOLE}.",
            ),
        ),
        measure=_reflected,
    ),
    Claim(
        name="few-pools-off-a-whole-load",
        place="Sec. 3.3, after Thm 4",
        labels=("Thm 4",),
        statement=(
            "If the load is whole, only about sqrt(n) pools have fewer or more tasks than the load, so most "
            "pools have exactly as many."
        ),
        how=(
            "The systems of the previous row at time 5: the mean number of pools with another number of tasks, "
            "over sqrt(n), may be twice that of the limit. Most means more than half."
        ),
        measure=_off_whole,
    ),
)
