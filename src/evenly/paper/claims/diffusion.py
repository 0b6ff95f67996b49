"""Claims about fluctuations of the order of sqrt(n) around the balanced load.

Every sample is a system of its own, started from the balanced state.

Paper: Sec. 3.3.
"""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np

from evenly.paper.claim import Claim, Measured
from evenly.paper.claims.ensembles import Counts, Floats, Systems, watch
from evenly.paper.lab import Lab
from evenly.paper.measure import at_least, at_most, below, empirical_reach, equals, is_exactly, powers
from evenly.sim import Scenario, with_policies
from evenly.theory.diffusion import ornstein_uhlenbeck
from evenly.theory.reflected import ReflectedPaths, reflected
from evenly.theory.reflected_law import stationary_summary

LOAD, WHOLE = 5.5, 3
FLOOR, CEIL = 5, 6
TIMES = (1.0, 2.0)
LONG = 5.0  # when exp(-10) of the start is left in the variance

# Gaps below floor(load) come at rate floor(load) (n - Q(ceil(load))) and are filled at rate load n: a queue with
# this ratio, whatever n.
RATIO = FLOOR * (CEIL - LOAD) / LOAD
MISSING = RATIO / (1 - RATIO)
# The ratio moves with Z by floor(load) / (load sqrt(n)), which bends the mean gap by 28 / n and ties gaps to Z, so
# that the variance of Z loses 6.1 load / n.
MISSING_SLACK, VARIANCE_SLACK = 40.0, 10 * LOAD
# The mean gap shifts the distribution function of Z by 0.15 / sqrt(n), the skewness of Poisson numbers does by
# 0.03 / sqrt(n).
LAW_SLACK = 0.3

SIZES = (100, 400, 1600, 6400)
SNAPSHOTS = 51
GROUPS = 8


def _pools(lab: Lab) -> int:
    return lab.pick(1600, 400)


def _sampled(lab: Lab, policy: str, load: float, times: tuple[float, ...] = TIMES) -> Counts:
    """Independent systems at these times."""
    name = f"diffusion {policy} {load} {times}"
    scenario = Scenario(policy=policy, pools=_pools(lab), load=load, initial=load, horizon=times[-1])
    return lab.once(name, lambda: watch(scenario, times, lab.pick(500, 150), lab.seed_for(name)).states)


def _shares(counts: Counts, size: int) -> Floats:
    """The fraction of systems with a count of at most 0, 1, 2, ..."""
    return np.asarray(np.cumsum(np.bincount(counts, minlength=size)) / counts.size)


def _z(lab: Lab, states: Counts) -> Floats:
    """The paper's Z at both times, for a load that is not whole."""
    return np.asarray((states[:, :, CEIL] - _pools(lab) * (LOAD - FLOOR)) / sqrt(_pools(lab)))


def _normal_distance(lab: Lab, states: Counts) -> float:
    """Between Z at the end and the normal law, read halfway between the values that Z can take."""
    pools = _pools(lab)
    levels = np.arange(pools + 1)
    law = ornstein_uhlenbeck(LOAD).cdf((levels + 0.5 - pools * (LOAD - FLOOR)) / sqrt(pools), time=TIMES[1])
    return float(np.abs(_shares(states[:, 1, CEIL], levels.size) - law).max())


def _normal(lab: Lab) -> list[Measured]:
    limit = ornstein_uhlenbeck(LOAD)
    threshold, jsq = (_sampled(lab, policy, LOAD) for policy in ("threshold", "jsq"))
    z = _z(lab, threshold)
    slack = VARIANCE_SLACK / _pools(lab)
    allowed = empirical_reach(len(z)) + LAW_SLACK / sqrt(_pools(lab))
    return [
        equals("variance at time 2", z[:, 1] ** 2, limit.variance(TIMES[1]), slack),
        equals("variance at time 2, shortest queue", _z(lab, jsq)[:, 1] ** 2, limit.variance(TIMES[1]), slack),
        equals("covariance of times 1 and 2", z[:, 0] * z[:, 1], exp(-1) * limit.variance(TIMES[0]), slack),
        at_most("distance to the normal law", _normal_distance(lab, threshold), allowed),
        at_most("distance to the normal law, shortest queue", _normal_distance(lab, jsq), allowed),
    ]


def _beside(lab: Lab, pools: int) -> Systems:
    times = np.linspace(0.0, TIMES[-1], SNAPSHOTS).tolist()
    scenario = Scenario(pools=pools, load=LOAD, initial=LOAD, horizon=TIMES[-1])
    name = f"beside {pools}"
    systems = GROUPS * lab.pick(8, 2) * (2 if pools <= SIZES[1] else 1)  # small ones are cheap, and scatter
    return lab.once(name, lambda: watch(scenario, times, systems, lab.seed_for(name)))


def _largest_gap(lab: Lab, pools: int) -> Floats:
    """For each system the most tasks missing below floor(load) at any snapshot, over sqrt(n)."""
    missing = FLOOR * pools - _beside(lab, pools).states[:, :, 1 : FLOOR + 1].sum(axis=2)
    return np.asarray(missing.max(axis=1) / sqrt(pools))


def _vanishing(lab: Lab) -> list[Measured]:
    gaps = [_largest_gap(lab, pools) for pools in SIZES]
    rows = np.stack([gap.reshape(GROUPS, -1).mean(axis=1) for gap in gaps], axis=1)
    # If the ratio were four deviations above its mean all along: the mean of the largest of so many snapshots.
    ratio = RATIO + 4 * FLOOR / sqrt(LOAD * SIZES[-1])
    limit = (1 + log(SNAPSHOTS)) / -log(ratio) / sqrt(SIZES[-1])
    most = max(int(_beside(lab, pools).states[:, :, CEIL + 1].max()) for pools in SIZES[2:])
    return [
        below(f"most tasks missing over sqrt(n), {SIZES[-1]} pools", gaps[-1], limit),
        below("power of n at which it falls", powers(SIZES, rows), -0.25),
        is_exactly("most pools above 6 tasks, from 1600 pools on", most, 0),
    ]


def _remark(lab: Lab) -> list[Measured]:
    numbers = []
    for pools in SIZES[2:]:
        missing = FLOOR * pools - _beside(lab, pools).means[:, 1 : FLOOR + 1].sum(axis=1)
        what = f"mean tasks missing below 5, {pools} pools"
        numbers.append(equals(what, missing, MISSING, MISSING_SLACK / pools))
    return numbers


def _paths(lab: Lab) -> ReflectedPaths:
    rng = np.random.default_rng(lab.seed_for("reflected limit"))
    return reflected(WHOLE).sample_path([TIMES[1]], rng, start=[0, 0], paths=lab.pick(20_000, 3000))


def _sides(states: Counts) -> tuple[Counts, Counts]:
    """At the end: tasks missing up to the whole load, and pools above it."""
    end = states[:, -1]
    return np.asarray(WHOLE * end[:, 0] - end[:, 1 : WHOLE + 1].sum(axis=1)), end[:, WHOLE + 1]


def _reflected(lab: Lab) -> list[Measured]:
    root, law, paths = sqrt(_pools(lab)), stationary_summary(WHOLE), _paths(lab)
    numbers = []
    # On the lattice a value stands for the interval up to the next one: means may be a step, 1 / sqrt(n), apart.
    limits = (paths.below[:, 0], paths.above[:, 0, 0])
    early = _sides(_sampled(lab, "threshold", WHOLE))
    for name, counts, limit in zip(("missing", "above"), early, limits, strict=True):
        slack = 1 / root + 6 * float(limit.std()) / sqrt(limit.size)
        numbers.append(equals(f"mean {name} at time 2, over sqrt(n)", counts / root, float(limit.mean()), slack))
    late = _sides(_sampled(lab, "threshold", WHOLE, (LONG,)))
    for name, counts, side in zip(("missing", "above"), late, (law.below, law.above), strict=True):
        numbers.append(equals(f"mean {name} in the long run, over sqrt(n)", counts / root, side.mean, 1 / root))
        steps = np.arange(int(counts.max()) + 2)
        distance = float(np.abs(_shares(counts, steps.size) - side.cdf((steps + 1) / root)).max())
        allowed = empirical_reach(counts.size) + LAW_SLACK / root
        numbers.append(at_most(f"distance to the law of those {name}", distance, allowed))
    return numbers


def _pair(states: Counts, load: float) -> Counts:
    """What both limits are about: tasks up to floor(load), and pools above."""
    floor = int(load)
    return np.stack([states[:, :, 1 : floor + 1].sum(axis=2), states[:, :, floor + 1]], axis=2)


def _largest_distance(first: Counts, second: Counts) -> float:
    """Kolmogorov's, between two samples of counts."""
    size = int(max(first.max(), second.max())) + 1
    return float(np.abs(_shares(first, size) - _shares(second, size)).max())


def _side_by_side(lab: Lab, load: float) -> list[Counts]:
    """The threshold policy, join-the-shortest-queue and power of two on the same randomness."""
    times = np.linspace(0.0, TIMES[-1], SNAPSHOTS).tolist()
    seed = lab.seed_for(f"side by side {load}")
    scenario = Scenario(pools=1000, load=load, initial=load, horizon=TIMES[-1])
    scenarios = with_policies(scenario, ["threshold", "jsq", "power-of-d"])
    return [watch(each, times, lab.pick(32, 8), seed).states[:, 1:] for each in scenarios]


def _optimal(lab: Lab) -> list[Measured]:
    numbers, others, power = [], 0, []
    for load in (LOAD, float(WHOLE)):
        ours, best, two = _side_by_side(lab, load)
        differ = (_pair(ours, load) != _pair(best, load)).any(axis=2)
        numbers.append(is_exactly(f"snapshots that differ, load {load:g}", int(differ.sum()), 0))
        others += int((ours != best).any(axis=2).sum())
        power.append(float((_pair(two, load) != _pair(best, load)).any(axis=2).mean()))
    for load, level in ((LOAD, CEIL), (WHOLE, WHOLE + 1)):
        first, second = (_sampled(lab, policy, load)[:, 1, level] for policy in ("threshold", "jsq"))
        what = f"distance between independent samples, load {load:g}"
        numbers.append(at_most(what, _largest_distance(first, second), 2 * empirical_reach(first.size)))
    return [
        *numbers,
        at_least("snapshots that differ in emptier pools", others, 1),
        at_least("share of snapshots that differ, power of two", min(power), 0.9),
    ]


CLAIMS = (
    Claim(
        name="fluctuations-are-normal",
        place="Sec. 3.3, Thm 3 (b)",
        labels=("Thm 3",),
        statement=(
            "If the load is not whole, the number of pools with ceil(load) tasks fluctuates around its balanced "
            "value by sqrt(n) times an Ornstein-Uhlenbeck process, with threshold floor(load) and under "
            "join-the-shortest-queue alike."
        ),
        how=(
            "Independent systems of 1600 pools (400 in quick runs), load 5.5, from the balanced state: variance, "
            "covariance and distribution function against the exact ones of the limit, up to chance and the terms "
            "of order 1/n (moments) and 1/sqrt(n) (law) that the gaps below 5 tasks and the skewness of Poisson "
            "numbers add."
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
            "Threshold 5, load 5.5, from the balanced state over 2 task times, 100 to 6400 pools: the most tasks "
            "missing at any of 51 snapshots, against the mean of the largest of 51 geometric variables; and its "
            "power of n. No pool may have more than 6 tasks: the total would have to be eight deviations above "
            "its mean."
        ),
        measure=_vanishing,
    ),
    Claim(
        name="few-pools-off-balance",
        place="Sec. 3.3, after Thm 3",
        labels=("Thm 3",),
        statement="No more than about sqrt(n) pools have fewer than floor(load) or more than ceil(load) tasks.",
        how=(
            "The same runs of 1600 and 6400 pools: the mean number of tasks missing below 5, not scaled, against "
            "that of a queue with ratio floor(load) (ceil(load) - load) / load, up to 40/n for the ratio's own "
            "fluctuations."
        ),
        note=(
            "True, and far from sharp: the number does not grow at all. Gaps below floor(load) are a queue whose "
            "ratio does not depend on n, with mean 0.83 at load 5.5, and no pool is above ceil(load)."
        ),
        measure=_remark,
    ),
    Claim(
        name="whole-load-reflected",
        place="Sec. 3.3, Thm 4",
        labels=("Thm 4",),
        statement=(
            "If the load is whole, the tasks missing up to it and the pools above it, divided by sqrt(n), follow "
            "a diffusion that is pushed back where nothing is missing."
        ),
        how=(
            "Independent systems of 1600 pools (400 in quick runs), load and threshold 3, from the balanced "
            "state: means at time 2 against sampled paths of the limit, and at time 5 means and distribution "
            "functions against its stationary law, up to chance and one step of the lattice, 1/sqrt(n)."
        ),
        note=(
            "The values are read as intervals of the lattice. Without that the law of the pools above is "
            "approached very slowly: it rises like y^(1/(load + 1)) near 0, so that the chance to see no such "
            "pool at all falls only like n^(-1/8) at load 3."
        ),
        measure=_reflected,
    ),
    Claim(
        name="diffusion-optimal",
        place="Sec. 3.3",
        labels=("Thm 3", "Thm 4"),
        statement=(
            "With threshold floor(load) the policy fluctuates in the same way as join-the-shortest-queue, the "
            "best policy there is, whether the load is whole or not."
        ),
        how=(
            "Both policies on the same arrivals and departures, 1000 pools, loads 5.5 and 3: the tasks up to "
            "floor(load) and the pools above must be equal at every snapshot, though emptier pools differ; with "
            "power of two choices they are not. Independent samples of both must have the same law up to chance."
        ),
        measure=_optimal,
    ),
)
