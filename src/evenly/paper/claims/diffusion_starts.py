"""Claims about fluctuations of order sqrt(n) from unbalanced starts, as the theorems allow them.

Paper: Sec. 3.3, Thms 3 and 4.
"""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

from evenly.paper.claims.claim import Claim, Kind, Measured, Note, Verdict
from evenly.paper.claims.diffusion import (
    CEIL,
    FLOOR,
    LAW_SLACK,
    LOAD,
    MISSING,
    RATIO,
    VARIANCE_SLACK,
    WHOLE,
    pools_for,
    sampled,
    sides,
)
from evenly.paper.claims.judge import at_most, below, empirical_reach, equals, is_exactly
from evenly.paper.experiments.ensembles import Counts, Floats, shares, watch
from evenly.paper.experiments.lab import Lab
from evenly.sim import Scenario
from evenly.theory.diffusion.fractional import ornstein_uhlenbeck
from evenly.theory.diffusion.whole import ReflectedPaths, reflected

POLICIES = (("threshold", "threshold"), ("jsq", "shortest queue"))
POOLS = 1600  # from 3 sqrt(n) above the mean, the total is ten deviations away from 3 n
TIMES = tuple(np.linspace(0.0, 1.0, 11).tolist())
STARTS = (3.0, -3.0)  # Z at time 0, for a load that is not whole
MOST = 5  # tasks in the fullest pool at time 0; M in the theorem
# For a whole load: pools with one task fewer, and with at least 1, 2, 3 more, all over sqrt(n).
SCALED = (1.0, 2.0, 1.5, 0.5)
MOST_WHOLE = WHOLE + len(SCALED) - 1

# --- loads that are not whole ------------------------------------------------------------------------------


def few(pools: int) -> int:
    """Return n^(1/4): a number of pools that vanishes when divided by sqrt(n)."""
    return round(sqrt(sqrt(pools)))


def fractional_start(pools: int, z: float) -> NDArray[np.int64]:
    """Return the tasks of each pool: n^(1/4) with too few and with too many, z sqrt(n) more at ceil(load)."""
    odd = few(pools)
    at_least_ceil = round(pools * (LOAD - FLOOR) + z * sqrt(pools))
    tasks = np.full(pools, FLOOR, np.int64)
    tasks[:at_least_ceil] = CEIL
    tasks[:odd] = MOST
    tasks[-odd:] = FLOOR - 1
    return tasks


def initial_vector(tasks: NDArray[np.int64]) -> Floats:
    """Return the vector of the theorem's assumption: Y, Z and the levels above ceil(load), up to M.

    Paper: Thm 3.
    """
    pools = tasks.size
    levels = [int((tasks >= level).sum()) for level in range(MOST + 1)]
    missing = sum(pools - count for count in levels[1 : FLOOR + 1])
    z = levels[CEIL] - pools * (LOAD - FLOOR)
    return np.array([missing, z, *levels[CEIL + 1 :]]) / sqrt(pools)


def _from_start(lab: Lab, policy: str, z: float) -> Counts:
    scenario = Scenario(
        policy=policy, pools=POOLS, load=LOAD, initial_tasks=fractional_start(POOLS, z), horizon=TIMES[-1]
    )
    name = f"unbalanced {policy} {z}"
    return lab.once(name, lambda: watch(scenario, TIMES, lab.pick(1500, 150), lab.seed_for(name)).states)


def _fractional(lab: Lab) -> list[Measured]:
    limit, time, root, odd = ornstein_uhlenbeck(LOAD), TIMES[-1], sqrt(POOLS), few(POOLS)
    left = exp(-time)
    # Z is the fluctuation of the total plus the tasks missing, less those above. The total is off by the few odd
    # tasks, of which exp(-time) is left, as of those above; gaps are twice their mean when Z is low.
    slack = (3 * odd * left + 2 * MISSING) / root
    # Tasks that are there at time 0 survive independently, which makes the variance depend on their number.
    wider = (abs(STARTS[0]) * root + odd) * left * (1 - left) / POOLS + (VARIANCE_SLACK + 2 * odd) / POOLS
    numbers, gaps, most = [], [], 0
    for policy, name in POLICIES:
        for z in STARTS:
            states = _from_start(lab, policy, z)
            found = (states[:, -1, CEIL] - POOLS * (LOAD - FLOOR)) / root
            spread = (found - found.mean()) ** 2 * found.size / (found.size - 1)
            at = f"from Z = {z:g}, {name}"
            numbers.append(equals(f"mean of Z at time 1, {at}", found, limit.mean(z, time), slack))
            numbers.append(equals(f"variance of Z at time 1, {at}", spread, limit.variance(time), wider))
            gaps.append((FLOOR * POOLS - states[:, 1:, 1 : FLOOR + 1].sum(axis=2)).max(axis=1) / root)
            most = max(most, int(states[:, :, CEIL + 1].max()))
    # The mean of the largest of the snapshots, if the ratio were always four deviations above that of the start.
    ratio = RATIO + FLOOR * (abs(STARTS[1]) + 4 * sqrt(LOAD)) / (LOAD * root)
    vanishing = (1 + log(len(TIMES) - 1)) / -log(ratio) / root
    size = initial_vector(fractional_start(POOLS, STARTS[0])).size
    return [
        *numbers,
        below("most tasks missing over sqrt(n) after time 0, all of these", np.concatenate(gaps), vanishing),
        at_most(f"most pools above {CEIL} tasks at any time, compared with n^(1/4)", most, odd),
        is_exactly(f"components of the initial vector for M = {MOST}", size, MOST - FLOOR + 1),
        is_exactly("the same, as printed", size, MOST - FLOOR + 2).about(Kind.ERRATUM).named("size"),
    ]


# --- whole loads -------------------------------------------------------------------------------------------


def whole_start(pools: int) -> NDArray[np.int64]:
    """Return the tasks of each pool, of the order of sqrt(n) away from balance on both sides."""
    counts = [round(scaled * sqrt(pools)) for scaled in SCALED]
    tasks = np.full(pools, WHOLE, np.int64)
    for count in counts[1:]:
        tasks[:count] += 1
    tasks[-counts[0] :] -= 1
    tasks[-few(pools) :] -= 1
    return tasks


def _whole_systems(lab: Lab, policy: str, pools: int) -> Counts:
    scenario = Scenario(
        policy=policy, pools=pools, load=float(WHOLE), initial_tasks=whole_start(pools), horizon=TIMES[-1]
    )
    name = f"unbalanced {policy} {WHOLE} {pools}"
    times = (0.0, TIMES[3], TIMES[-1])
    return lab.once(name, lambda: watch(scenario, times, lab.pick(1000, 250), lab.seed_for(name)).states)


def _limit(lab: Lab, states: Counts) -> ReflectedPaths:
    """Sample the limit from the start of these systems."""
    pools = int(states[0, 0, 0])
    missing, _ = sides(states[:1, :1])
    start = np.array([missing[0], *states[0, 0, WHOLE + 1 : MOST_WHOLE + 1]]) / sqrt(pools)
    rng = np.random.default_rng(lab.seed_for("reflected limit, unbalanced"))
    law = reflected(WHOLE, MOST_WHOLE)
    return law.sample_path([TIMES[3], TIMES[-1]], rng, start=start, paths=lab.pick(20_000, 3000))


def _whole(lab: Lab) -> list[Measured]:
    pools = pools_for(lab, WHOLE)
    root = sqrt(pools)
    numbers, distances = [], []
    for policy, name in POLICIES:
        states = _whole_systems(lab, policy, pools)
        limit = _limit(lab, states)
        for place, time in enumerate(limit.times):
            missing, first = sides(states[:, : place + 2])
            # A value of the lattice stands for the interval up to the next one.
            for what, counts, values in (
                ("missing", missing, limit.below[:, place]),
                ("above", first, limit.above[:, place, 0]),
            ):
                slack = 1 / root + 6 * float(values.std()) / sqrt(values.size)
                title = f"mean {what} at time {time:.1f}, over sqrt(n), {name}"
                numbers.append(equals(title, counts / root, float(values.mean()), slack))
        # The levels beyond only lose tasks, so their means are exact. Later on there are too few pools to judge.
        for level in range(WHOLE + 2, MOST_WHOLE + 1):
            expected = float(limit.above[0, 0, level - WHOLE - 1])
            title = f"mean pools with {level} tasks or more at time {limit.times[0]:.1f}, over sqrt(n), {name}"
            numbers.append(equals(title, states[:, 1, level] / root, expected))
        distances += [
            at_most(f"distance to the law of those {what} at time 1, {name}", *_law_distance(counts, values, root))
            for what, counts, values in (
                ("missing", missing, limit.below[:, -1]),
                ("above", first, limit.above[:, -1, 0]),
            )
        ]
    size = 1 + limit.above.shape[-1]
    alone = sides(sampled(lab, "threshold", WHOLE))[1] / sqrt(pools)
    return [
        *numbers,
        *distances,
        is_exactly(f"components of the limit for M = {MOST_WHOLE}", size, MOST_WHOLE - WHOLE + 1),
        is_exactly("the same, as printed", size, MOST_WHOLE - WHOLE + 2).about(Kind.ERRATUM).named("size"),
        equals(f"mean above at time 2, from balance, by the last equation with M = {WHOLE + 1}", alone, 0.0)
        .about(Kind.ERRATUM)
        .named("above"),
    ]


def _law_distance(counts: Counts, values: Floats, root: float) -> tuple[float, float]:
    """Return the distance between the laws of counts and of sampled values, and the one allowed."""
    steps = np.arange(int(counts.max()) + 2)
    sampled_law = np.searchsorted(np.sort(values), (steps + 1) / root, side="right") / values.size
    distance = float(np.abs(shares(counts, steps.size) - sampled_law).max())
    return distance, empirical_reach(counts.size) + empirical_reach(values.size) + LAW_SLACK / root


CLAIMS = (
    Claim(
        name="fluctuations-from-unbalanced-starts",
        place="Sec. 3.3, Thm 3",
        labels=("Thm 3",),
        statement=(
            "The limit for loads that are not whole holds from any start with about sqrt(n) pools too many or "
            "too few at ceil(load) tasks, and with fewer than that elsewhere: the number of pools with "
            "ceil(load) tasks returns to its mean exponentially, and the others vanish. The initial vector has M "
            "- floor(load) + 1 components."
        ),
        how=(
            f"Independent systems of {POOLS} pools, load {LOAD:g}, threshold and join-the-shortest-queue. At "
            f"time 0, {abs(STARTS[0]):g} sqrt(n) pools too many or too few have {CEIL} tasks or more, n^(1/4) "
            f"pools have {MOST} tasks and as many have {FLOOR - 1}. The mean and the variance of Z at time 1 are "
            "compared with those of the Ornstein-Uhlenbeck process, up to terms that the odd pools add. At 10 "
            "snapshots, tasks missing must be those of a queue, and pools above ceil(load) no more than at the "
            "start."
        ),
        notes=(
            Note(
                Kind.ERRATUM,
                f"As printed, it has one component more. It has {{size:.0f}} for M = {MOST}.",
            ),
        ),
        measure=_fractional,
        expected=Verdict.ERRATUM,
    ),
    Claim(
        name="whole-load-from-unbalanced-starts",
        place="Sec. 3.3, Thm 4",
        labels=("Thm 4",),
        statement=(
            "The limit for whole loads holds from any start that is about sqrt(n) pools away from balance, with "
            "pools of up to M tasks. It has M - load + 1 components, for any M above load + 1."
        ),
        how=(
            f"Independent systems of 1600 pools (400 in quick runs), load and threshold {WHOLE}, threshold and "
            f"join-the-shortest-queue. At time 0, sqrt(n) times {', '.join(f'{x:g}' for x in SCALED)} pools have "
            "one task too few, and at least one, two and three too many, and n^(1/4) pools lack two. The means "
            f"at times {TIMES[3]:.1f} and 1, and the laws at time 1, are compared with sampled paths of the "
            "limit, up to chance and one step of the lattice; the levels from two above the load on, whose "
            "means are exact, up to chance."
        ),
        notes=(
            Note(
                Kind.ERRATUM,
                f"As printed, the limit has one component more. It has {{size:.0f}} for M = {MOST_WHOLE}.",
            ),
            Note(
                Kind.ERRATUM,
                "As printed, M is at least the load. The equations need M > load + 1 (pools of M tasks need not "
                "exist). With M = load + 1 the last "
                "equation lacks the reflection and contradicts the second one: from balance no pool would ever be "
                "above the load, while {above:.2g} sqrt(n) are after 2 mean task times.",
            ),
        ),
        measure=_whole,
        expected=Verdict.ERRATUM,
    ),
)
