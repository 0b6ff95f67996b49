"""Claims about how steady the threshold of a finite system is.

Shares of time are compared with `evenly.theory.stability`, which does not use the simulator.

Paper: Sec. 5.1, Fig. 3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenly.paper.claims.claim import Claim, Kind, Measured, Note, Verdict
from evenly.paper.claims.excursions import BRIEF, GONE, OPTIMUM, STEADY, share_slack
from evenly.paper.claims.judge import above, at_least, below, equals
from evenly.paper.experiments import learned_threshold
from evenly.paper.experiments.lab import Lab
from evenly.paper.experiments.learned_threshold import (
    ALPHA,
    LOAD,
    SIZES,
    excursion_rate,
    long_run,
    prediction,
    ratio_samples,
    share_above,
    share_at,
    share_elsewhere,
)
from evenly.sim import Result, Scenario, simulate

RARE = 0.1  # excursions per mean task time
FRACTIONS = (2.1, 2.5, 2.9)
SWAY_LOAD, SWAY_SIZES = 2.5, (400, 1600, 6400)


def _of_figure_3(lab: Lab, pools: int) -> Result:
    """Return the long run of one of the systems of Fig. 3."""
    return learned_threshold.in_the_long_run(lab, learned_threshold.of_paper(lab), pools)


def _large(lab: Lab) -> Result:
    return long_run(lab, STEADY[LOAD], LOAD, ALPHA, lab.pick(16_000.0, 800.0))


def _few_pools(lab: Lab) -> list[Measured]:
    run, theory = _of_figure_3(lab, 100), prediction(lab, 100, LOAD, ALPHA).threshold_share
    at = {threshold: share_at(run, threshold) for threshold in (1, 2, 3)}
    names = {1: "floor(load) - 1", 2: "floor(load)", 3: "ceil(load)"}
    numbers = [
        equals(f"share of time at {names[value]}", at[value], theory[value], share_slack(theory[value])).named(
            f"at_{value}"
        )
        for value in at
    ]
    changes, expected = 2 * excursion_rate(run), prediction(lab, 100, LOAD, ALPHA).change_rate
    return [
        *numbers,
        below("share of time at any other threshold", share_elsewhere(run, *at), 1e-4),
        equals("changes per mean task time", changes, expected, 0.02 * expected).named("changes"),
        below("share of time at floor(load) - 1, compared with 1 %", at[1], 0.01).about(Kind.REMARK),
    ]


def _more_pools(lab: Lab) -> list[Measured]:
    run, theory = _of_figure_3(lab, 400), prediction(lab, 400, LOAD, ALPHA)
    off, rate = share_above(run, OPTIMUM), excursion_rate(run)
    lengths = ratio_samples(off, rate)
    length = theory.excursion_length
    return [
        above("share of time at floor(load)", share_at(run, OPTIMUM), 0.5),
        equals(
            "share of time at ceil(load)",
            share_at(run, OPTIMUM + 1),
            theory.share_above,
            share_slack(theory.share_above),
        ),
        below("share of time at any other threshold", share_elsewhere(run, OPTIMUM, OPTIMUM + 1), 1e-4),
        equals("excursions per mean task time", rate, theory.change_rate / 2, 0.01 * theory.change_rate),
        equals("mean length of an excursion, in mean task times", lengths, length, 0.02 * length),
        below("the same, compared with a quarter of a mean task time", lengths, BRIEF),
        # It is about 5. Estimated from 32 parts, it falls below 0.5 with a probability below 1e-10.
        at_least(
            "variance of the number of excursions over its mean (clockwork 0, Poisson 1)", _clustering(run), 0.5
        ).named("clustering"),
        below("excursions per mean task time, compared with one in ten", rate, RARE)
        .about(Kind.READING)
        .named("rate"),
    ]


def _clustering(run: Result) -> float:
    """Return the variance of the number of excursions over its mean: 1 for Poisson's law, more for clusters."""
    counts = np.array([window.change_count / 2 for window in run.windows])
    return float(counts.var(ddof=1) / counts.mean())


def _steadier_with_size(lab: Lab) -> list[Measured]:
    sizes = (*SIZES, STEADY[LOAD])
    shares = [share_above(run, OPTIMUM) for run in (*(_of_figure_3(lab, size) for size in SIZES), _large(lab))]
    expected = [prediction(lab, size, LOAD, ALPHA).share_above for size in sizes]
    numbers = [
        equals(f"share of time above floor(load), {size:,} pools", share, theory, share_slack(theory))
        for size, share, theory in zip(sizes, shares, expected, strict=True)
    ]
    return [
        *numbers,
        above("share with 100 pools minus share with 400", shares[0] - shares[1], 0.0),
        above("share with 400 pools minus share with 1,938", shares[1] - shares[2], 0.0),
    ]


def _fractional_part(lab: Lab) -> list[Measured]:
    runs = {load: long_run(lab, 100, load, ALPHA, lab.pick(30_000.0, 1_600.0)) for load in FRACTIONS[:2]}
    runs[LOAD] = _of_figure_3(lab, 100)
    rises = {load: share_above(run, OPTIMUM) for load, run in runs.items()}
    theory = {load: prediction(lab, 100, load, ALPHA).share_above for load in FRACTIONS}
    large = prediction(lab, STEADY[LOAD], LOAD, ALPHA).share_above
    off = {load: prediction(lab, 100, load, ALPHA).share_off for load in FRACTIONS}
    return [
        *(
            equals(f"share of time above floor(load), load {x}", rises[x], theory[x], share_slack(theory[x]))
            for x in theory
        ),
        equals("the same with 1,938 pools", share_above(_large(lab), OPTIMUM), large, share_slack(large)),
        above("share at load 2.9 minus share at 2.5", rises[2.9] - rises[2.5], 0.0),
        below("share of time above floor(load), load 2.5, compared with 1 %", rises[2.5], GONE),
        above("share of time below floor(load), load 2.1", share_at(runs[2.1], 0, 1), 0.5)
        .about(Kind.REMARK)
        .named("under"),
        at_least("share of time off at load 2.1 minus share at 2.5, predicted", off[2.1] - off[2.5], 0.01).about(
            Kind.REMARK
        ),
        at_least("share of time off at load 2.9 minus share at 2.5, predicted", off[2.9] - off[2.5], 0.01).about(
            Kind.REMARK
        ),
    ]


def sway(lab: Lab, pools: int) -> NDArray[np.float64]:
    """Return n times the variance of the share of pools with at least ceil(load) tasks, relative to the limit's.

    From the balanced state the limit of Thm 3 has variance load (1 - exp(-2 t)) at time t.
    """
    horizon = lab.pick(20, 4)
    run = Scenario(
        pools=pools, load=SWAY_LOAD, initial_tasks=SWAY_LOAD, horizon=horizon
    )  # its threshold is the optimum
    found = simulate(
        run, replications=lab.pick(96, 24), seed=lab.seed_for(f"sway {pools}"), points=horizon // 2 + 1
    )
    times = found.trajectories[0].times[1:]
    variance = SWAY_LOAD * (1 - np.exp(-2 * times))
    rows = [path.occupancy[1:, OPTIMUM + 1] - (SWAY_LOAD - OPTIMUM) for path in found.trajectories]
    return np.array([np.mean(pools * row**2 / variance) for row in rows])


def _root_of_n(lab: Lab) -> list[Measured]:
    # Pools that wait for their second task shift the share by 2.2 / n of its deviation (a queue with load 0.4).
    return [
        equals(f"n times the variance, relative to the limit's, {size:,} pools", sway(lab, size), 1.0, 5 / size)
        for size in SWAY_SIZES
    ]


CLAIMS = (
    Claim(
        name="few-pools-oscillate",
        place="Sec. 5.1, Fig. 3 (left)",
        labels=("Fig. 3", "Sec. 4.1"),
        statement="With 100 pools, load 2.9 and alpha 0.97 the threshold oscillates between floor(load) - 1 and "
        "ceil(load).",
        how="Long runs from the balanced state. The shares of time at each threshold and the rate of changes must "
        "be those of a prediction that solves a chain for each level, within its known error: 1 % for shares, a "
        "tenth for shares below 0.01, 2 % for the rate.",
        measure=_few_pools,
        notes=(
            Note(
                Kind.REMARK,
                "It mostly oscillates between floor(load) and ceil(load), with {changes:.1f} changes per mean "
                "task time. It is at floor(load) {at_2:.0%} of the time, at ceil(load) {at_3:.0%}, and at "
                "floor(load) - 1 only {at_1:.1%}.",
            ),
        ),
    ),
    Claim(
        name="more-pools-stay",
        place="Sec. 5.1, Fig. 3 (right)",
        labels=("Fig. 3",),
        statement="With 400 pools the threshold is at floor(load) most of the time, with sporadic and brief "
        "excursions to ceil(load).",
        how="Load 2.9, alpha 0.97, long runs from the balanced state, against the prediction. Most of the time "
        "means more than half of it, brief means a quarter of a mean task time or less, and sporadic means at "
        "irregular times: the variance of their number must be at least half of Poisson's. By another reading, "
        "sporadic means rare: fewer than one in ten mean task times.",
        measure=_more_pools,
        notes=(
            Note(
                Kind.READING,
                "The excursions come at irregular times, in clusters, as the number of tasks per pool stays near "
                "ceil(load) for a while: the variance of their number is {clustering:.1f} times that of Poisson's "
                "law. They are not rare: there are {rate:.2f} per mean task time.",
            ),
        ),
        expected=Verdict.READING,
    ),
    Claim(
        name="steadier-with-more-pools",
        place="Sec. 5.1",
        labels=("Fig. 3", "Thm 6"),
        statement="The more pools, the less time the threshold spends above floor(load).",
        how="Load 2.9, alpha 0.97, long runs with 100, 400 and 1,938 pools, each compared with the prediction and "
        "with the next.",
        measure=_steadier_with_size,
    ),
    Claim(
        name="fractional-part-decides",
        place="Sec. 5.1",
        labels=("Fig. 3", "Thm 3"),
        statement="The larger the fractional part of the load, the more time the threshold spends above "
        "floor(load) with the same number of pools, so the more pools are needed.",
        how="100 pools, alpha 0.97, loads 2.1, 2.5 and 2.9, long runs: the share of time above floor(load), "
        "which must grow with the fractional part, against the prediction. At load 2.5 it must be below 1 % with "
        "100 pools. At load 2.9 the number of pools that brings it to 1 % by the prediction, 1,938, is simulated.",
        measure=_fractional_part,
        notes=(
            Note(
                Kind.REMARK,
                "A small fractional part is no better overall: the threshold then falls below floor(load), at "
                f"load {FRACTIONS[0]} {{under:.0%}} of the time. Of these three loads, {FRACTIONS[1]} is best.",
            ),
        ),
    ),
    Claim(
        name="deviations-of-order-root-n",
        place="Sec. 5.1",
        labels=("Thm 3",),
        statement="At threshold floor(load) the share of pools with ceil(load) tasks deviates from its mean, the "
        "fractional part of the load, by the order of 1/sqrt(n).",
        how="Fixed threshold 2 at load 2.5, from the balanced state, with 400, 1,600 and 6,400 pools, observed "
        "every 2 mean task times: n times the squared deviation, over the variance of the diffusion limit, must "
        "be 1 on average. Slack 5/n for the few pools that wait for their second task.",
        measure=_root_of_n,
    ),
)
