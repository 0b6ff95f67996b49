"""Recommend an alpha for a given number of pools.

In the large-system limit any alpha above the paper's bound will do. In a finite system the threshold fluctuates,
more so the closer alpha is to 1, and each change costs a round of messages. A small alpha lets a threshold stay
too large, and balance suffers. So candidates are measured and compared:

1. Good: spread over pools, relative to the shortest queue's, within 2 % of the best candidate's at the worst of
   the loads. Bad balance hurts whenever it occurs.
2. Cheap: at most a tenth of a resync message per task on average over the loads, on top of the two that a task
   costs at most.
3. Of the good and cheap ones the largest, since the closer alpha is to 1, the fewer loads there are with a
   threshold that settles too high (Cor. 2). If none is cheap, the good one with the fewest resync messages.

Over a network, where tasks carry the threshold, its changes cost no messages. Instead of cheap candidates, steady
ones count then: with at most one change of the threshold per mean task time.

The measured loads are the largest ones up to `load_max` with fractional parts 0, 0.33 and 0.67, and `load_max`
itself: balance depends on the fractional part of the load, and only weakly on its whole part.

Paper: Sec. 4.5. Departs: the paper's rule, eq. (13), does not look at the number of pools.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor

import numpy as np

from evenly.advice.measure import Progress, measure
from evenly.advice.recommendation import CHEAP, STEADY, TOLERATED, Advice, Candidate, meets_rule, rule_possible
from evenly.errors import InputError
from evenly.inputs import check_function, number_from, shown, whole_number
from evenly.theory.tuning import MAX_POOLS, exact_alpha_min, shortest_decimal
from evenly.workload.delay import Delay, parse_delay

FRACTIONS = (0.0, 0.33, 0.67)
MIN_LOAD = 1e-100
MAX_LOAD = 1000
FEW_POOLS = 16  # up to which every candidate is tried
MAX_DELAY = 1.0  # beyond it, the threshold makes hardly any difference
MANY_TASKS = 10**5  # above which half the candidates are tried
MAX_TASKS = 2 * 10**5  # a smaller system is measured in place of one with more


def recommend_alpha(
    *,
    pools: int,
    load_max: float,
    seed: int = 1,
    delay: float | str | Delay = 0.0,
    progress: Progress | None = None,
) -> Advice:
    """Recommend an alpha for loads up to `load_max`: measure candidates and choose one.

    `delay` is how long tasks and messages are on the way, as in a `Scenario`. Without one, small chains are solved
    exactly. Others are simulated on the same random numbers as JSQ, from an overloaded
    start with a matching threshold, so that a threshold that stays too high shows. A smaller system is measured in
    place of one with more than `MAX_TASKS` tasks. More pools only make changes rarer, so the choice is then among
    the candidates above `alpha_min`, whatever their cost in the smaller system. If it has too few pools for any
    such candidate, the paper's rule is followed without a measurement.
    """
    pools = whole_number("pools", pools, 2, MAX_POOLS)
    load_max = number_from("load_max", load_max, MIN_LOAD, MAX_LOAD)
    seed = whole_number("seed", seed, 0, 2**64 - 1)
    delay = parse_delay(delay)
    if delay.mean > MAX_DELAY:
        raise InputError(f"delay must be at most {MAX_DELAY:g} for a recommendation, not {shown(delay.written)}.")
    check_function("progress", progress)
    measured_pools = floor(min(pools, MAX_TASKS / load_max))
    loads = measured_loads(load_max)
    alphas = candidate_alphas(measured_pools, load_max)
    method, rows = measure(measured_pools, loads, alphas, seed, progress, delay)
    candidates = tuple(
        Candidate(alpha=alpha, measurements=tuple(row)) for alpha, row in zip(alphas, rows, strict=True)
    )
    return Advice(
        pools=pools,
        pools_measured=measured_pools,
        load_max=load_max,
        seed=seed,
        delay=delay,
        loads=loads,
        alpha=_chosen_alpha(pools, measured_pools, load_max, candidates, late=delay.mean > 0),
        alpha_min=float(exact_alpha_min(load_max)),
        method=method,
        candidates=candidates,
    )


def _chosen_alpha(
    pools: int, measured_pools: int, load_max: float, candidates: Sequence[Candidate], *, late: bool
) -> float:
    """Choose by the measurements; if a smaller system was measured, by the paper's rule first."""
    if measured_pools == pools or not rule_possible(pools, load_max):
        return choose(candidates, late=late).alpha
    follows = [candidate for candidate in candidates if meets_rule(candidate.alpha, load_max)]
    if follows:
        return choose(follows, late=late).alpha
    return shortest_decimal(exact_alpha_min(load_max), 1 - Fraction(1, pools), strictly=True)


def choose(candidates: Sequence[Candidate], *, late: bool = False) -> Candidate:
    """Return the largest alpha that is good and cheap, else the cheapest of the good ones.

    With `late` messages, steady takes the place of cheap.
    """

    def cost(candidate: Candidate) -> float:
        return candidate.change_rate / STEADY if late else candidate.resync_per_task / CHEAP

    best = min(candidate.relative_spread for candidate in candidates)
    good = [candidate for candidate in candidates if candidate.relative_spread <= TOLERATED * best]
    cheap = [candidate for candidate in good if cost(candidate) <= 1]
    return max(cheap, key=lambda candidate: candidate.alpha) if cheap else min(good, key=cost)


def measured_loads(load_max: float) -> tuple[float, ...]:
    """Return the largest loads up to `load_max` with each of the fractional parts, and `load_max`."""
    loads = {float(load_max)}
    for part in FRACTIONS:
        load = round(floor(round(load_max - part, 9)) + part, 2)
        if load > 0:
            loads.add(load)
    return tuple(sorted(loads))


def candidate_alphas(pools: int, load_max: float) -> list[float]:
    """Return short decimals. Only floor(alpha * pools) matters, and it stays below pools - 1.

    All of them for few pools; for many, some whose distance to 1 grows by a factor, and one just above the
    paper's bound.
    """
    if pools <= FEW_POOLS:
        falls = set(range(pools - 1))
    else:
        count = 14 if pools * load_max <= MANY_TASKS else 7
        distances = np.geomspace(max(2 / pools, 0.003), 0.5, count)
        falls = {floor(pools * (1 - Fraction(f"{distance:.2g}"))) for distance in distances}
        falls |= {floor(exact_alpha_min(load_max) * pools) + 1}
    return [
        shortest_decimal(Fraction(fall, pools), Fraction(fall + 1, pools), strictly=fall == 0)
        for fall in sorted(falls)
        if fall <= pools - 2
    ]
