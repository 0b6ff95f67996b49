"""Claims about the loads and alphas at which the learned threshold settles at the optimum.

Paper: Sec. 4.5, Cor. 2.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import floor

from evenly.paper.claims.claim import Claim, Kind, Measured, Note, Verdict
from evenly.paper.claims.judge import at_least, at_most, is_exactly, is_near
from evenly.paper.claims.tuning import ALPHA, LOAD_MAX
from evenly.paper.experiments.lab import Lab
from evenly.paper.experiments.learning_cases import Case, ends
from evenly.sim import compare
from evenly.theory.balance import optimal_thresholds
from evenly.theory.fluid.predict import predict_fluid
from evenly.theory.persistence import can_settle_above, full_share_above, loads_settling_above
from evenly.theory.tuning import exact_alpha_min, is_optimal

BETWEEN = 2.9  # a load for which Cor. 2's condition fails at alphas up to 0.9667
LOW, HIGH = "0.905", "0.908"  # alphas around the one from which on threshold 3 cannot stay at this load
FALLING = "0.85"  # an alpha with which it can, but does not from this start, though q(3) is 0.92 at time 0
FALLING_START = [1.0] + 3 * [0.92] + 6 * [0.06]
SPARSE = ("0.91", "0.93", "0.97")  # alphas for which the loads that violate Cor. 2's condition are counted
MARGIN = 0.004  # in load, around the edges of the set where it can settle above the optimum
ALL_FROM = 10.12  # alpha/(1 - alpha) for alpha 0.91, rounded up: all loads from there on violate it
GRID = tuple(step for step in range(1, 100 * LOAD_MAX) if step % 100)  # loads in units of 0.01, without whole ones


def _violating(alpha: str) -> set[int]:
    """Return the loads up to LOAD_MAX that violate Cor. 2's condition, in units of 0.01."""
    return {step for step in GRID if not is_optimal(load=step / 100, alpha=alpha)}


def _shrinking(lab: Lab) -> list[Measured]:
    sets = {alpha: _violating(alpha) for alpha in (*SPARSE, "0.99", "0.995", "0.9999")}
    lists = list(sets.values())
    added = sum(len(later - earlier) for earlier, later in pairwise(lists))
    # The loads from alpha k to each whole number k, an interval of length (1 - alpha) k, summed over k. The grid
    # may count one too few or too many in each interval.
    lengths = {alpha: float(1 - Fraction(alpha)) * LOAD_MAX * (LOAD_MAX + 1) / 2 for alpha in (*SPARSE, "0.99")}
    printed = sum(exact_alpha_min(step / 100) >= Fraction(ALPHA) for step in GRID)
    return [
        *(
            is_near(f"length of the set, alpha {alpha}", len(sets[alpha]) / 100, length, LOAD_MAX / 100)
            for alpha, length in lengths.items()
        ),
        is_exactly("loads on the grid that a larger alpha adds", added, 0),
        is_exactly("loads left on the grid, alpha 0.9999", len(lists[-1]), 0),
        is_exactly(
            "load 9.999999 violates it with alpha 0.9999", float(not is_optimal(load=9.999999, alpha="0.9999")), 1
        ),
        at_least(f"loads up to {LOAD_MAX} that violate (13) with alpha {ALPHA}", printed, 1).about(Kind.ERRATUM),
        *(number.about(Kind.REMARK) for number in _how_many(lab, len(sets[ALPHA]) / len(GRID), lengths)),
    ]


def _how_many(lab: Lab, share: float, lengths: dict[str, float]) -> list[Measured]:
    """Measure how many loads violate the condition, and at how many the threshold can settle too high."""
    beyond = [round(ALL_FROM + place / 10, 2) for place in range(int(10 * ALL_FROM))]
    held = sum(is_optimal(load=load, alpha=ALPHA) for load in beyond)
    tops = lab.pick((1, 3, 6, 10), (3,))
    sharp = {alpha: loads_settling_above(alpha=alpha, load_max=LOAD_MAX) for alpha in SPARSE}
    astray = misjudged = 0
    for top in tops:  # from all pools full to the threshold above the optimum
        edge = min((low for low, high in sharp[ALPHA] if high == top), default=float(top))
        for load, stays in ((round(edge - MARGIN, 4), False), (round(edge + MARGIN, 4), True)):
            astray += (Case(load, ALPHA, top, float(top)).end == top) != stays
            misjudged += can_settle_above(load=load, alpha=ALPHA) != stays
    return [
        at_least(f"share of the loads up to {LOAD_MAX} that violate it, alpha {ALPHA}", share, 0.45).named(
            "share"
        ),
        is_exactly(f"loads from {ALL_FROM} to twice that for which it holds, alpha {ALPHA}", held, 0),
        *(
            at_most(
                f"length of the set where floor(load) + 1 can persist, alpha {alpha}",
                sum(high - low for low, high in sharp[alpha]),
                lengths[alpha] / 5,
            ).named(f"sharp_{place}")
            for place, alpha in enumerate(SPARSE)
        ),
        *(
            is_near(  # below load 1 it is the interval [alpha, 1), where threshold 1 is optimal
                f"length of the part where it is not optimal, alpha {alpha}",
                sum(high - low for low, high in sharp[alpha] if floor(low) + 1 not in optimal_thresholds(low)),
                sum(high - low for low, high in sharp[alpha]) - float(1 - Fraction(alpha)),
                1e-9,
            ).named(f"lost_{place}")
            for place, alpha in enumerate(SPARSE)
        ),
        is_exactly("thresholds at the edges of its intervals that do not stay inside or fall outside", astray, 0),
        is_exactly("loads at these edges that are misjudged by the condition for one load", misjudged, 0),
    ]


def _best(lab: Lab) -> list[Measured]:
    found = [(case, end) for case, end in ends(lab) if case.optimal]
    wrong = sum(end not in range(case.lowest, case.floor + 1) for case, end in found)
    return [
        is_exactly("systems with a larger alpha that settle elsewhere", wrong, 0),
        at_least("systems with a larger alpha", len(found), lab.pick(40, 10)),
        *(number.about(Kind.REMARK) for number in _between(lab)),
    ]


def _between(lab: Lab) -> list[Measured]:
    """Measure which alphas let the threshold stay at 3 at load 2.9, where the condition fails for all of them."""
    low, high = Case(BETWEEN, "0.8", 7, 7.0), Case(BETWEEN, "0.93", 7, 7.0)
    scenarios = [case.scenario(10_000, 10.0) for case in (low, high)]
    results = compare(scenarios, seed=lab.seed_for("condition"), batches=0)
    stays, theta = low.solved(), full_share_above(BETWEEN)
    falls = predict_fluid(
        load=BETWEEN, alpha=FALLING, threshold=3, initial_occupancy=FALLING_START, horizon=15.0, points=2
    )
    return [
        is_exactly("threshold at load 2.9 with alpha 0.8, fluid", int(stays.threshold[-1]), 3),
        is_exactly("the same, 10000 pools", results[0].endings[0].threshold, 3),
        is_exactly(f"the same with alpha {LOW}, fluid", Case(BETWEEN, LOW, 7, 7.0).end, 3),
        is_exactly(f"threshold at load 2.9 with alpha {HIGH}, fluid", Case(BETWEEN, HIGH, 7, 7.0).end, 2),
        is_exactly("the same with alpha 0.93, 10000 pools", results[1].endings[0].threshold, 2),
        is_near(
            "share of pools with 3 tasks in the end, alpha 0.8", float(stays.occupancy[-1, 3]), theta, 1e-6
        ).named("theta"),
        is_exactly(f"threshold with alpha {FALLING} from the uneven start", int(falls.threshold[-1]), 2),
    ]


CLAIMS = (
    Claim(
        name="optimal-if-alpha-is-large",
        place="Sec. 4.5, Cor. 2",
        labels=("Cor. 2",),
        statement=(
            "If alpha > load / (floor(load) + 1), the threshold settles at floor(load), or at load - 1 or load if "
            "the load is whole."
        ),
        how=(
            "All fluid and simulated systems above for which the condition holds. Then load 2.9, where the "
            "condition is alpha > 0.967, from 7 tasks per pool: fluid systems with alpha 0.8, 0.905 and 0.908, "
            "and 10000 pools with alpha 0.8 and 0.93. Last, alpha 0.85 with threshold 3, where 92 % of the pools "
            "start with 3 tasks or more, 6 % with 9, and the others empty."
        ),
        notes=(
            Note(
                Kind.REMARK,
                "Sufficient, not necessary: the threshold can stay at ceil(load) only if at least a fraction "
                f"alpha of the pools is full to it in the equilibrium of Ex. 1 (at load {BETWEEN} it is "
                f"{{theta:.4f}}). From an even start it stays with alpha {LOW} and falls with {HIGH}. That it "
                f"can stay does not mean that it does: from the uneven start it falls with alpha {FALLING}.",
            ),
        ),
        measure=_best,
    ),
    Claim(
        name="few-loads-violate-the-condition",
        place="Sec. 4.5, after Cor. 2",
        labels=("Cor. 2",),
        statement=(
            "For each alpha there are loads, just below whole numbers, that violate Cor. 2's condition, eq. (14). "
            "The set of these loads shrinks to the empty set as alpha approaches 1."
        ),
        how=(
            "The condition, decided on fractions, for all loads up to 10 in steps of 0.01 and alphas from 0.91 "
            "to 0.9999: the length of the set against (1 - alpha) times 1 + 2 + ... + 10, up to a step at each "
            "whole number. No load may be added as alpha grows. Closer to a whole number than a step there are "
            "always some. Then loads from alpha/(1 - alpha) on, the loads up to 10 at which the threshold "
            "ceil(load) can stay in the equilibrium of Ex. 1 (fluid systems with alpha 0.91 and loads 0.004 "
            "inside and outside the set, from pools full to ceil(load), must stay there or fall), and the loads "
            "that violate eq. (13), as printed."
        ),
        notes=(
            Note(
                Kind.ERRATUM,
                "The text states that these loads violate (13), which has load_max in it, not the load. It must "
                f"mean (14): alpha {ALPHA} satisfies (13) for all loads up to {LOAD_MAX}.",
            ),
            Note(
                Kind.REMARK,
                f"They are not few: with alpha {ALPHA}, {{share:.0%}} of the loads up to {LOAD_MAX} violate it, "
                f"and all from {ALL_FROM} on, since for any alpha all loads from alpha/(1 - alpha) on do. But "
                "the threshold floor(load) + 1 can persist only where, in its equilibrium of Ex. 1, at least a "
                f"fraction alpha of the pools is full. Up to load {LOAD_MAX} these loads have a total length of "
                "{sharp_0:.3f}, {sharp_1:.3f} and {sharp_2:.3f} with alpha "
                f"{', '.join(SPARSE[:-1])} and {SPARSE[-1]}. Some of them are below 1, where this threshold is "
                "optimal, too. So optimality can be lost on lengths of {lost_0:.3f}, {lost_1:.3f} and "
                "{lost_2:.3f}. This is proven, on the page of errata and sharpenings: with a fixed threshold "
                "above the load all solutions converge to that equilibrium.",
            ),
        ),
        measure=_shrinking,
        expected=Verdict.ERRATUM,
    ),
)
