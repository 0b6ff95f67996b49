"""Claims that no other thresholds balance the load.

Paper: Sec. 3.2, Cor. 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import pi, sqrt

import numpy as np

from evenly.paper.claims.balance import imbalances
from evenly.paper.claims.claim import Claim, Kind, Measured, Note, Verdict
from evenly.paper.claims.equilibria import runs_of_figure_2, theta_of_large
from evenly.paper.claims.judge import above, at_most, equals, is_exactly, is_near
from evenly.paper.experiments.lab import Lab
from evenly.paper.experiments.wrong_threshold import bias, occupancy_rows, of_paper, simulated
from evenly.sim import Scenario, compare
from evenly.theory.balance import balanced_occupancy, optimal_thresholds
from evenly.theory.equilibrium import predict_equilibrium
from evenly.theory.fluid.predict import predict_fluid

SLIGHT = 0.5  # a load below 1
LATE, BALANCED = 25.0, 1e-6  # solutions closer to balance than this at this late time are balanced


def _others(lab: Lab) -> list[Measured]:
    whole = replace(of_paper(lab), load=5.0, thresholds=(3, 6))
    runs = [runs_of_figure_2(lab)[threshold] for threshold in (3, 4, 6, 7)] + list(simulated(lab, whole).values())
    numbers = []
    for run in runs:
        load, threshold = run.scenario.load_at_start, run.scenario.initial_threshold
        limit = predict_equilibrium(load=load, threshold=threshold).occupancy
        away = float(np.linalg.norm(limit - balanced_occupancy(load, limit.size)))
        what = f"imbalance at load {load:g}, threshold {threshold}, {run.scenario.pools:,} pools"
        # Fluctuations of total variance load / n lengthen a vector by that over twice its length.
        longer = load / (2 * away * run.scenario.pools)
        numbers.append(equals(what, imbalances(run), away, slack=bias(run) + longer))
    wrong = sum(_misjudged(load, range(round(load) + 3)) for load in (1.5, 2.9, 5.0))
    return [*numbers, is_exactly("thresholds wrongly called optimal or not, loads 1.5, 2.9 and 5", wrong, 0)]


def _below_one(lab: Lab) -> list[Measured]:
    pools, load = lab.pick(100_000, 10_000), SLIGHT
    case = Scenario(pools=pools, load=load, initial_tasks=load, warmup=3.0, horizon=8.0)
    zero, one, two = compare(
        [replace(case, threshold=threshold) for threshold in (0, 1, 2)],
        replications=lab.pick(16, 8),
        seed=lab.seed_for("below one"),
        mean_holding_times=True,
    )
    crowded = float(occupancy_rows(one, 3)[:, 2].max())
    apart = float(np.max(np.abs(np.subtract(imbalances(one), imbalances(zero)))))
    # The total deviates by a normal number of variance load / n, all of it on level 1; at time 3, exp(-6) of that
    # is not there yet.
    chance = sqrt(2 * load / (pi * pools))
    limit = predict_equilibrium(load=load, threshold=2).occupancy
    away = float(np.linalg.norm(limit - balanced_occupancy(load, limit.size)))
    return [
        equals(f"imbalance at threshold 1, {pools:,} pools", imbalances(one), chance, 0.01 * chance).named("one"),
        at_most("share of pools with two tasks or more at threshold 1", crowded, 0.0),
        at_most("distance between the imbalances at thresholds 0 and 1, same randomness", apart, 1e-12),
        equals("imbalance at threshold 2", imbalances(two), away, bias(two) + load / (2 * away * pools)).named(
            "two"
        ),
        is_exactly("thresholds up to 4 wrongly called optimal or not", _misjudged(load, range(5)), 0),
        is_near("theta of Example 1 at threshold 1", theta_of_large(load, 1), load, 1e-9).named("theta"),
        above("imbalance at threshold 1, as it would be if it did not balance", imbalances(one), away / 2).about(
            Kind.ERRATUM
        ),
    ]


def _misjudged(load: float, thresholds: Iterable[int]) -> int:
    """Count the thresholds that `optimal_thresholds` calls optimal although solutions stay unbalanced, or not."""
    wrong = 0
    for threshold in thresholds:
        path = predict_fluid(load=load, threshold=threshold, horizon=LATE, points=2)
        wrong += (path.imbalance[-1] < BALANCED) != (threshold in optimal_thresholds(load))
    return wrong


CLAIMS = (
    Claim(
        name="no-other-threshold-balances",
        place="Sec. 3.2, Cor. 1",
        labels=("Cor. 1",),
        statement=(
            "At loads of at least 1, only the threshold floor(load) balances the load and, if the load is a whole "
            "number, load - 1."
        ),
        how=(
            "Large systems started in balance: the runs of Figure 2 at load 5.5, and similar runs at load 5. "
            "Their imbalance in the long run must be that of the equilibria of Examples 1 and 2, up to terms of "
            "order 1 / pools. The thresholds that the package calls optimal must be those whose fluid solutions "
            "from empty pools are balanced."
        ),
        measure=_others,
    ),
    Claim(
        name="unique-below-load-one",
        place="Sec. 3.2, Cor. 1",
        labels=("Cor. 1", "Ex. 1"),
        statement="At a load below 1, the thresholds 0 and 1 balance the load, and no others.",
        how=(
            f"Runs of a large system with thresholds 0, 1 and 2 at load {SLIGHT}, on the same randomness. With "
            "threshold 1 tasks go to empty pools as long as there are any. If, as printed, only floor(load) = 0 "
            "balanced the load, the imbalance at threshold 1 would not vanish: we ask for half of that at "
            "threshold 2. If threshold 1 balances, it is the fluctuation of the total, (2 load / (pi n))^(1/2). "
            f"Fluid solutions from empty pools to time {LATE:g} decide which thresholds are optimal."
        ),
        notes=(
            Note(
                Kind.ERRATUM,
                "As printed, threshold 0 is the only optimal one. At threshold 1 the equilibrium of Example 1 has "
                "theta = {theta:.3g}, the load: it is the balanced state, so the example does not rule this "
                "threshold out. At threshold 1 the measured imbalance is {one:.2g}, from chance alone; at "
                "threshold 2 it is {two:.2g}. At loads of at least 1 the corollary holds.",
            ),
        ),
        measure=_below_one,
        expected=Verdict.ERRATUM,
    ),
)
