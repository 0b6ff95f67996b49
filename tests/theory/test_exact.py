"""The exact law against closed forms, and against a dense solution that distinguishes all pools.

The dense solution below is independent: pool by pool, with no lumping, no search and no sparse matrices.
"""

import ast
import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import evenly.theory.exact.law as module
from evenly.errors import InputError
from evenly.theory.exact.chain import (
    Assignment,
    FloatArray,
    SmallSystem,
    State,
    assign_by_sample,
    assign_by_threshold,
    assign_to_shortest,
    explore,
    learned_threshold,
    pools_at_least,
    total_tasks,
)
from evenly.theory.exact.count import check_size
from evenly.theory.exact.inputs import largest_fall
from evenly.theory.exact.law import ExactLaw, solve_exact
from evenly.theory.exact.solve import recurrent_states, stationary_law
from tests import distributions as stats

POLICIES: list[dict[str, Any]] = [
    {"policy": "threshold", "threshold": 0},
    {"policy": "threshold", "threshold": 1},
    {"policy": "threshold", "threshold": 3},
    {"policy": "threshold", "alpha": 0.3},
    {"policy": "threshold", "alpha": "0.5"},
    {"policy": "threshold", "alpha": 0.9},
    {"policy": "jsq"},
    {"policy": "power-of-d", "sample_size": 2},
    {"policy": "random"},
]


def named(options: dict[str, Any]) -> str:
    return " ".join(str(value) for value in options.values())


# --- a dense solution that distinguishes all pools ---------------------------------------------------------

Picks = Iterator[tuple[int, float]]
FullState = tuple[tuple[int, ...], int]


def uniform(pools: list[int]) -> Picks:
    return ((pool, 1 / len(pools)) for pool in pools)


def dense_picks(tasks: tuple[int, ...], threshold: int, policy: str, sample_size: int) -> Picks:
    """Return the pools that the next task may go to, with probabilities."""
    everyone = list(range(len(tasks)))
    if policy == "threshold":
        green = [pool for pool in everyone if tasks[pool] < threshold]
        yellow = [pool for pool in everyone if tasks[pool] <= threshold]
        return uniform(green or yellow or everyone)
    size = {"random": 1, "jsq": len(tasks), "power-of-d": sample_size}[policy]
    chance: dict[int, float] = defaultdict(float)
    samples = list(itertools.combinations(everyone, size))
    for sample in samples:
        shortest = [pool for pool in sample if tasks[pool] == min(tasks[i] for i in sample)]
        for pool in shortest:
            chance[pool] += 1 / len(samples) / len(shortest)
    return iter(chance.items())


def dense_learn(tasks: tuple[int, ...], threshold: int, alpha: Fraction, highest: int) -> int:
    pools = len(tasks)
    change = 0
    if sum(x >= threshold + 1 for x in tasks) >= pools - 1:
        change += 1
    if Fraction(sum(x >= threshold for x in tasks), pools) <= alpha:
        change -= 1
    return min(threshold + change, highest)


def dense_solution(
    *,
    policy: str,
    pools: int,
    load: float,
    threshold: int | None = None,
    alpha: float | str | None = None,
    sample_size: int = 2,
    capacity: int | None = None,
    most: int,
) -> dict[str, Any]:
    """Return all averages, from a dense solution over all vectors of tasks with a total of at most `most`."""
    top = most if capacity is None else capacity
    highest = most if capacity is None else capacity - 1
    vectors = [x for x in itertools.product(range(top + 1), repeat=pools) if sum(x) <= most]
    levels = range(highest + 1) if alpha is not None else [threshold or 0]
    index = {state: number for number, state in enumerate(itertools.product(vectors, levels))}
    matrix = np.zeros((len(index), len(index)))
    counts: dict[str, FloatArray] = defaultdict(lambda: np.zeros(len(index)))

    def jump(source: FullState, target: FullState, rate: float, **happened: float) -> None:
        row = index[source]
        matrix[row, index[target]] += rate
        matrix[row, row] -= rate
        for what, number in happened.items():
            counts[what][row] += rate * number

    for tasks, level in index:
        learned = level if alpha is None else dense_learn(tasks, level, Fraction(str(alpha)), highest)
        for pool, probability in dense_picks(tasks, level, policy, sample_size):
            accepted = tasks[pool] != capacity and sum(tasks) < most
            after = tuple(x + (i == pool and accepted) for i, x in enumerate(tasks))
            resync = 0
            if learned > level:
                resync = after.count(learned)
            elif learned < level:
                resync = sum(x < learned for x in after)
            jump(
                (tasks, level),
                (after, learned),
                pools * load * probability,
                green=accepted and after[pool] < level,
                resync=resync,
                changes=learned != level,
                lost=tasks[pool] == capacity,
            )
        for pool, number in enumerate(tasks):
            if number:
                after = tuple(x - (i == pool) for i, x in enumerate(tasks))
                jump((tasks, level), (after, level), number, green=number == level, yellow=number == level + 1)
    equations = matrix.T.copy()
    equations[0] = 1  # the balance equations add up to zero, so the sum of probabilities can replace one of them
    law = np.linalg.solve(equations, np.eye(len(index))[0])

    def mean(value: Callable[[tuple[int, ...], int], float]) -> float:
        return float(sum(p * value(*state) for p, state in zip(law, index, strict=True)))

    def distance(tasks: tuple[int, ...], _: int) -> float:
        squares = []
        for i in range(max(most, int(load) + 1) + 2):
            ideal = 1.0 if i <= int(load) else load - int(load) if i == int(load) + 1 else 0.0
            squares.append((sum(x >= i for x in tasks) / pools - ideal) ** 2)
        return sqrt(sum(squares))

    return {
        "exactly": [mean(lambda x, _, i=i: x.count(i) / pools) for i in range(top + 1)],  # type: ignore[misc]
        "max": [mean(lambda x, _, i=i: max(x) == i) for i in range(top + 1)],  # type: ignore[misc]
        "time_at": [mean(lambda _, level, i=i: level == i) for i in range(most + 1)],  # type: ignore[misc]
        "imbalance": mean(distance),
    } | {what: float(law @ counts[what]) for what in ("green", "yellow", "resync", "changes", "lost")}


def padded(values: FloatArray, size: int) -> FloatArray:
    return np.pad(values, (0, size - len(values)))


def assert_same(law: ExactLaw, dense: dict[str, Any], close: float = 1e-11) -> None:
    arrivals = law.pools * law.load
    size = len(dense["exactly"])
    assert_allclose(padded(law.pools_with_exactly, size), dense["exactly"], atol=close)
    assert_allclose(padded(law.max_tasks_distribution, size), dense["max"], atol=close)
    assert law.imbalance == pytest.approx(dense["imbalance"], abs=close)
    assert law.lost_share == pytest.approx(dense["lost"] / arrivals, abs=close)
    if law.threshold_share:
        assert law.green_per_task == pytest.approx(dense["green"] / arrivals, abs=close)
        assert law.yellow_per_task == pytest.approx(dense["yellow"] / arrivals, abs=close)
        assert law.resync_per_task == pytest.approx(dense["resync"] / arrivals, abs=close)
        assert (law.rise_rate or 0) + (law.fall_rate or 0) == pytest.approx(dense["changes"], abs=close)
        for level, share in enumerate(dense["time_at"]):
            assert law.threshold_share.get(level, 0.0) == pytest.approx(share, abs=close)


def poisson_cut(mean: float, tolerance: float) -> int:
    return next(k for k in itertools.count(max(int(mean), 1)) if stats.poisson.sf(k, mean) < tolerance)


LEARNING = [options for options in POLICIES if "alpha" in options]


@pytest.mark.parametrize(
    "pools, load, tolerance, options",
    [
        *((2, 0.7, 1e-5, options) for options in POLICIES),
        *((3, 0.9, 1e-2, options) for options in POLICIES),
        *(pytest.param(2, 2.0, 1e-3, options, marks=pytest.mark.full) for options in LEARNING),
    ],
    ids=str,
)
def test_agrees_with_a_dense_solution(pools: int, load: float, tolerance: float, options: dict[str, Any]) -> None:
    law = solve_exact(pools=pools, load=load, tolerance=tolerance, **options)
    assert law.truncation < tolerance
    assert_same(law, dense_solution(pools=pools, load=load, most=poisson_cut(pools * load, tolerance), **options))


@pytest.mark.parametrize(
    "pools, load, capacity, options",
    [
        *((3, 1.2, 4, options) for options in POLICIES),
        *(pytest.param(2, 2.5, 4, options, marks=pytest.mark.full) for options in LEARNING),
    ],
    ids=str,
)
def test_agrees_with_a_dense_solution_with_a_capacity(
    pools: int, load: float, capacity: int, options: dict[str, Any]
) -> None:
    law = solve_exact(pools=pools, load=load, capacity=capacity, **options)
    assert law.truncation == 0
    dense = dense_solution(pools=pools, load=load, capacity=capacity, most=pools * capacity, **options)
    assert_same(law, dense)


# --- closed forms ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", POLICIES, ids=named)
def test_the_total_is_poisson_under_every_policy(options: dict[str, Any]) -> None:
    law = solve_exact(pools=4, load=1.3, **options)
    assert law.mean_tasks == pytest.approx(1.3, abs=100 * law.truncation)
    assert law.pools_with_exactly.sum() == pytest.approx(1)
    assert law.task_share.sum() == pytest.approx(1)
    assert law.max_tasks_distribution.sum() == pytest.approx(1)
    assert law.lost_share == 0
    assert law.residual < 1e-13


@pytest.mark.parametrize(
    "system",
    [
        SmallSystem(
            pools=3, load=1.3, assign=assign, threshold=1, falls_at=falls_at, capacity=None, total_limit=12
        )
        for assign, falls_at in [
            (assign_by_threshold, None),
            (assign_by_threshold, 1),
            (assign_by_threshold, 2),
            (assign_to_shortest, None),
            (assign_by_sample(2), None),
        ]
    ],
)
@pytest.mark.parametrize("lu_states", [0, 10_000])
def test_distribution_of_the_total(system: SmallSystem, lu_states: int) -> None:
    chain = explore(system, 10_000)
    law, _ = stationary_law(chain, lu_states)
    totals = np.bincount([total_tasks(state.occupancy) for state in chain.states], weights=law)
    expected = stats.poisson.pmf(np.arange(13), 3.9)
    assert_allclose(totals, expected / expected.sum(), atol=1e-13)


@pytest.mark.parametrize("pools", [1, 2, 4])
def test_random_routing_makes_every_pool_poisson(pools: int) -> None:
    law = solve_exact(policy="random", pools=pools, load=1.7)
    levels = np.arange(len(law.pools_with_exactly))
    assert_allclose(law.pools_with_exactly, stats.poisson.pmf(levels, 1.7), atol=1e-9)
    # independent pools: the maximum is below i when all of them are
    below = np.cumsum(law.max_tasks_distribution)
    assert_allclose(below, stats.poisson.cdf(levels, 1.7) ** pools, atol=1e-9)


@pytest.mark.parametrize("capacity", [1, 3, 5])
def test_random_routing_with_a_capacity_is_erlang(capacity: int) -> None:
    law = solve_exact(policy="random", pools=4, load=2.2, capacity=capacity)
    weights = stats.poisson.pmf(np.arange(capacity + 1), 2.2)
    assert_allclose(law.pools_with_exactly, weights / weights.sum(), atol=1e-13)
    assert law.lost_share == pytest.approx(weights[-1] / weights.sum(), abs=1e-13)
    assert law.mean_tasks == pytest.approx(2.2 * (1 - law.lost_share), abs=1e-13)


def test_jsq_with_capacity_one_is_one_erlang_system() -> None:
    law = solve_exact(policy="jsq", pools=6, load=0.8, capacity=1)
    weights = stats.poisson.pmf(np.arange(7), 4.8)
    assert law.lost_share == pytest.approx(weights[-1] / weights.sum(), abs=1e-13)


@pytest.mark.parametrize("policy", ["threshold", "jsq", "power-of-d", "random"])
def test_one_pool_is_poisson(policy: str) -> None:
    law = solve_exact(policy=policy, pools=1, load=40.5)
    levels = np.arange(len(law.pools_with_exactly))
    assert_allclose(law.pools_with_exactly, stats.poisson.pmf(levels, 40.5), atol=1e-10)
    assert_allclose(law.max_tasks_distribution, law.pools_with_exactly, atol=1e-15)


@pytest.mark.parametrize("threshold", [0, 1, 2, 5])
def test_messages_of_one_pool(threshold: int) -> None:
    """Poisson arrivals and departures see the same law, so green is P(X < l) and yellow is P(X = l)."""
    law = solve_exact(policy="threshold", pools=1, load=2.5, threshold=threshold)
    assert law.green_per_task == pytest.approx(stats.poisson.cdf(threshold - 1, 2.5), abs=1e-9)
    assert law.yellow_per_task == pytest.approx(stats.poisson.pmf(threshold, 2.5), abs=1e-9)
    assert law.resync_per_task == 0


def test_one_sample_is_random_and_all_samples_are_jsq() -> None:
    for sample_size, policy in ((1, "random"), (4, "jsq")):
        sampled = solve_exact(policy="power-of-d", sample_size=sample_size, pools=4, load=1.5)
        named_policy = solve_exact(policy=policy, pools=4, load=1.5)
        assert_allclose(sampled.pools_with_exactly, named_policy.pools_with_exactly, atol=1e-14)
        assert sampled.imbalance == pytest.approx(named_policy.imbalance, abs=1e-13)


def test_a_threshold_out_of_reach_is_random_routing() -> None:
    high = solve_exact(policy="threshold", threshold=99, pools=3, load=1.5)
    random = solve_exact(policy="random", pools=3, load=1.5)
    assert_allclose(high.pools_with_exactly, random.pools_with_exactly, atol=1e-14)


# --- the coupling of the threshold policy with join the shortest queue -------------------------------------


def coupled_law(system: SmallSystem, threshold: int) -> dict[tuple[int, int], float]:
    chain = explore(system, 10_000)
    law, _ = stationary_law(chain)
    joint: dict[tuple[int, int], float] = defaultdict(float)
    for state, probability in zip(chain.states, law, strict=True):
        at_least = [pools_at_least(state.occupancy, level) for level in range(threshold + 2)]
        joint[sum(at_least[1:-1]), at_least[-1]] += probability
    return joint


@pytest.mark.parametrize("pools, load, threshold", [(2, 1.5, 1), (5, 2.4, 2), (4, 3.0, 3), (6, 0.7, 0)])
def test_threshold_and_jsq_lose_the_same_share(pools: int, load: float, threshold: int) -> None:
    """With room for l + 1 tasks per pool, (Q(1) + ... + Q(l), Q(l + 1)) has one law under both (Prop. 2)."""
    high = threshold + 1
    ours = solve_exact(policy="threshold", pools=pools, load=load, threshold=threshold, capacity=high)
    jsq = solve_exact(policy="jsq", pools=pools, load=load, capacity=high)
    assert ours.lost_share == pytest.approx(jsq.lost_share, abs=1e-13)
    assert ours.pools_with_exactly[high] == pytest.approx(jsq.pools_with_exactly[high], abs=1e-13)
    system = SmallSystem(
        pools=pools,
        load=load,
        assign=assign_by_threshold,
        threshold=threshold,
        falls_at=None,
        capacity=high,
        total_limit=pools * high,
    )
    joint = coupled_law(system, threshold)
    other = coupled_law(replace(system, assign=assign_to_shortest, threshold=0), threshold)
    assert joint.keys() == other.keys()
    for pair, probability in joint.items():
        assert probability == pytest.approx(other[pair], abs=1e-13)


# --- learning ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("alpha", "capacity"), [(0.1, 4), (0.5, None), (0.75, 4), (0.99, None)])
def test_the_threshold_rises_as_often_as_it_falls(alpha: float, capacity: int | None) -> None:
    law = solve_exact(policy="threshold", pools=4, load=1.6, alpha=alpha, capacity=capacity)
    assert law.threshold_share is not None
    assert sum(law.threshold_share.values()) == pytest.approx(1, abs=1e-13)
    assert law.rise_rate is not None
    assert law.rise_rate > 0
    assert law.rise_rate == pytest.approx(law.fall_rate, rel=1e-10)
    assert (law.resync_per_task or 0) > 0
    if capacity is not None:
        assert max(law.threshold_share) < capacity


@pytest.mark.parametrize("capacity, start", [(None, 6), (5, 4)])
def test_the_starting_threshold_does_not_matter_in_the_long_run(capacity: int | None, start: int) -> None:
    high = solve_exact(
        policy="threshold", pools=4, load=0.3, alpha=0.5, threshold=start, capacity=capacity, tolerance=1e-6
    )
    low = solve_exact(policy="threshold", pools=4, load=0.3, alpha=0.5, capacity=capacity, tolerance=1e-6)
    assert high.states > low.states or capacity is not None
    assert high.threshold_share == pytest.approx(low.threshold_share, abs=1e-13)
    assert_allclose(high.pools_with_exactly, low.pools_with_exactly, atol=1e-13)


def test_one_pool_with_a_capacity_learns_the_highest_threshold() -> None:
    law = solve_exact(policy="threshold", pools=1, load=1.5, alpha=0.5, capacity=3)
    assert law.threshold_share == {2: 1.0}


def test_both_rules_at_once_cancel() -> None:
    four = SmallSystem(
        pools=4,
        load=1.0,
        assign=assign_by_threshold,
        threshold=1,
        falls_at=largest_fall(0.75, 4, None),
        capacity=None,
        total_limit=20,
    )
    both = State(((0, 1), (2, 3)), threshold=1)
    assert learned_threshold(four, both) == 1
    assert learned_threshold(replace(four, falls_at=2), both) == 2
    assert learned_threshold(four, State(((0, 2), (2, 2)), threshold=1)) == 0
    assert learned_threshold(four, State(((0, 4),), threshold=0)) == 0


def test_alpha_is_the_decimal_as_written() -> None:
    assert largest_fall(0.57, 100, None) == 57
    assert largest_fall("0.29", 100, None) == 29
    assert largest_fall(0.999, 100, None) == 99


def test_alphas_with_the_same_number_of_pools_are_equivalent() -> None:
    one = solve_exact(policy="threshold", pools=3, load=1.2, alpha=0.34)
    other = solve_exact(policy="threshold", pools=3, load=1.2, alpha="0.66")
    assert one.threshold_share == other.threshold_share


# --- the solver --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pools, load, assign, falls_at",
    [
        (4, 1.4, assign_by_threshold, 0),
        (4, 1.4, assign_by_threshold, 2),
        (2, 15.5, assign_by_threshold, 0),
        (7, 1.4, assign_to_shortest, None),
        (3, 3.4, assign_by_sample(2), None),
    ],
)
def test_lu_and_sweeps_agree(
    pools: int, load: float, assign: Callable[[State], Assignment], falls_at: int | None
) -> None:
    chain = explore(
        SmallSystem(
            pools=pools,
            load=load,
            assign=assign,
            threshold=0,
            falls_at=falls_at,
            capacity=None,
            total_limit=poisson_cut(pools * load, 1e-6),
        ),
        20_000,
    )
    factored, residual = stationary_law(chain, lu_states=20_000)
    swept, swept_residual = stationary_law(chain, lu_states=0)
    assert max(residual, swept_residual) < 1e-13
    assert np.abs(factored - swept).sum() < 1e-11
    for law in (factored, swept):
        assert law.min() >= 0
        assert law.sum() == pytest.approx(1, abs=1e-14)


def test_truncation_is_of_the_size_of_the_error() -> None:
    fine = solve_exact(policy="threshold", pools=3, load=1.5, alpha=0.5, tolerance=1e-12)
    coarse = solve_exact(policy="threshold", pools=3, load=1.5, alpha=0.5, tolerance=1e-5)
    size = len(fine.pools_with_exactly)
    error = np.abs(fine.pools_with_exactly - padded(coarse.pools_with_exactly, size)).sum() / 2
    assert coarse.truncation / 10 < error < 10 * coarse.truncation


def test_two_recurrent_classes_are_rejected() -> None:
    rates = sparse.csr_array(np.array([[-2.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))
    with pytest.raises(RuntimeError, match="2 recurrent classes"):
        recurrent_states(rates)


def test_transient_states_have_no_weight() -> None:
    rates = sparse.csr_array(np.array([[-1.0, 1.0, 0.0], [0.0, -1.0, 1.0], [0.0, 2.0, -2.0]]))
    assert recurrent_states(rates).tolist() == [1, 2]


# --- input and output --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"load": -1.0}, "load must be a positive number of at most 1000000, not -1.0."),
        ({"load": 1e9, "capacity": 10}, "load must be a positive number of at most 1000000, not 1000000000.0."),
        ({"pools": 0}, "pools must be a whole number from 1 to 1000000000, not 0."),
        ({"capacity": 0}, "capacity must be a whole number from 1 to 1000000, not 0."),
        ({"tolerance": 0.0}, "tolerance must be a positive number of at most 1, not 0.0."),
        ({"tolerance": 1}, "tolerance must be below 1, not 1."),
        ({"max_states": 0}, "max_states must be a whole number from 1 to 1000000, not 0."),
        ({"alpha": 1}, "alpha must lie strictly between 0 and 1, not 1."),
        ({"alpha": 0.5, "pools": 1}, "pools must be at least 2 to learn without a capacity, not 1"),
        ({"threshold": -1}, "threshold must be a whole number from 0 to 1000000, not -1."),
        ({"threshold": 3, "capacity": 3}, "threshold must be at most 2 with capacity 3, not 3."),
        ({"sample_size": 2}, "sample_size is for policy power-of-d, not threshold."),
        (
            {"policy": "power-of-d", "sample_size": 4},
            "sample_size must be a whole number from 1 to 3 (the number of pools), not 4.",
        ),
        ({"policy": "jsq", "alpha": 0.5}, "alpha is for policy threshold, not jsq."),
        ({"policy": "jiq"}, "policy must be one of threshold, jsq, power-of-d, random"),
    ],
)
def test_bad_input_is_rejected_in_one_sentence(options: dict[str, Any], sentence: str) -> None:
    usable: dict[str, Any] = {"policy": "threshold", "pools": 3, "load": 1.0}
    with pytest.raises(InputError) as error:
        solve_exact(**usable | options)
    assert str(error.value).startswith(sentence)


@pytest.mark.parametrize(
    "options, least",
    [
        ({"policy": "jsq", "pools": 1000, "load": 2.5}, "166,759,901"),
        ({"policy": "jsq", "pools": 10_000, "load": 10.5}, "1e33"),
        ({"policy": "random", "pools": 10**9, "load": 1e6}, "1,000,000,000,000,000"),
        ({"policy": "random", "pools": 3, "load": 20.0, "max_states": 20_000}, "46,210"),
        ({"pools": 10, "load": 3.0}, "427,416"),
        ({"pools": 1, "load": 1.0, "alpha": 0.5, "capacity": 1000}, "500,501"),
        ({"pools": 2, "load": 1.0, "alpha": 0.5, "threshold": 10**6}, "999,985"),
    ],
)
def test_too_many_states_are_rejected(options: dict[str, Any], least: str) -> None:
    """Exploring them one by one would have stopped at 400,001."""
    with pytest.raises(InputError, match=f"at least {least}.*reduce pools"):
        solve_exact(**options)


def test_exploration_stops_at_the_limit() -> None:
    four_levels = small_system("jsq", pools=3, total_limit=12, capacity=4)
    assert len(explore(four_levels, 35).states) == 35
    with pytest.raises(InputError, match=r"at least 35 states, more than max_states \(34\)"):
        explore(four_levels, 34)


def small_system(policy: str, *, pools: int, total_limit: int, **options: Any) -> SmallSystem:  # noqa: ANN401
    return SmallSystem(
        pools=pools,
        load=1.0,
        assign={
            "threshold": assign_by_threshold,
            "jsq": assign_to_shortest,
            "power-of-d": assign_by_sample(options.pop("sample_size", 1)),
        }[policy],
        threshold=options.pop("threshold", 0),
        falls_at=options.pop("falls_at", None),
        capacity=options.pop("capacity", None),
        total_limit=total_limit,
    )


COUNTED: list[dict[str, Any]] = [
    {"policy": "jsq"},
    {"policy": "power-of-d", "sample_size": 1},
    {"policy": "threshold", "threshold": 0},
    {"policy": "threshold", "threshold": 1},
    {"policy": "threshold", "threshold": 3},
    {"policy": "threshold", "threshold": 10**6},
]
BOUNDED: list[dict[str, Any]] = [
    {"policy": "power-of-d", "sample_size": 2},
    *({"policy": "threshold", "falls_at": falls_at} for falls_at in (0, 1, 2)),
    *({"policy": "threshold", "falls_at": 1, "threshold": threshold} for threshold in (2, 9, 40)),
]


@pytest.mark.parametrize("options", [*COUNTED, *BOUNDED], ids=str)
def test_states_are_counted_in_advance(options: dict[str, Any]) -> None:
    """The count is never too high; it is exact without learning or sampling, else at least about half."""
    for pools, total_limit in ((3, 1), (3, 3), (3, 14), (5, 13)):
        system = small_system(**options, pools=pools, total_limit=total_limit)
        states = len(explore(system, 10**6).states)
        sample_size = options.get("sample_size", 1)
        check_size(system, options["policy"], sample_size, states)
        fewer = states - 1 if options in COUNTED else int(0.4 * states)
        with pytest.raises(InputError, match="at least"):
            check_size(system, options["policy"], sample_size, fewer)


@pytest.mark.parametrize("options", [*COUNTED[:3], *BOUNDED[:4]], ids=str)
def test_states_with_a_capacity_are_counted_in_advance(options: dict[str, Any]) -> None:
    for pools, capacity in ((3, 1), (5, 3)):
        system = small_system(**options, pools=pools, capacity=capacity, total_limit=pools * capacity)
        states = len(explore(system, 10**6).states)
        sample_size = options.get("sample_size", 1)
        check_size(system, options["policy"], sample_size, states)
        with pytest.raises(InputError, match="at least"):
            check_size(system, options["policy"], sample_size, int(0.8 * states))


@pytest.mark.parametrize(("load", "capacity"), [(0.3, None), (2.0, 2), (2.5, None), (2.5, 30)])
def test_imbalance_of_a_single_pool(load: float, capacity: int | None) -> None:
    """Distances of occupancies, level by level, against the shortcut for one pool."""
    law = solve_exact(pools=1, load=load, capacity=capacity)
    levels = np.arange(max(len(law.pools_with_exactly), 5))
    balanced = np.clip(load - levels + 1, 0, 1)
    distances = [sqrt(np.sum(((levels <= tasks) - balanced) ** 2)) for tasks in range(len(law.pools_with_exactly))]
    assert law.imbalance == pytest.approx(law.pools_with_exactly @ distances, abs=1e-9)


def test_defaults() -> None:
    assert solve_exact(policy="threshold", pools=2, load=1.5).initial_threshold == 1
    assert solve_exact(policy="threshold", pools=2, load=9.5, capacity=3).initial_threshold == 2
    assert solve_exact(policy="threshold", pools=2, load=1.5, alpha=0.5).initial_threshold == 0
    assert solve_exact(policy="power-of-d", pools=3, load=0.5).sample_size == 2
    assert solve_exact(policy="jsq", pools=2, load=1e-13).task_share.tolist() == [0.0, 1.0]


def test_to_dict_has_the_keys_of_a_simulation() -> None:
    law = solve_exact(policy="threshold", pools=3, load=1.2, alpha="0.5", capacity=4)
    found = json.loads(json.dumps(law.to_dict(), allow_nan=False))
    assert found["pools_with_exactly"] == law.pools_with_exactly.tolist()
    assert found["max_tasks"]["mean"] == pytest.approx(np.arange(5) @ law.max_tasks_distribution)
    assert found["task_share"][2] == pytest.approx(2 * law.pools_with_exactly[2] / law.mean_tasks)
    assert sum(found["threshold"]["time_at"].values()) == pytest.approx(1)
    assert found["threshold"]["mean"] == pytest.approx(
        sum(int(level) * share for level, share in found["threshold"]["time_at"].items())
    )
    messages = found["messages"]
    assert messages["per_task"] == messages["green_per_task"] + messages["yellow_per_task"]
    others = solve_exact(policy="jsq", pools=3, load=1.2).to_dict()
    assert others.keys() == found.keys()
    assert others["threshold"] is None
    assert others["messages"] is None


def test_exact_shares_no_code_with_the_simulator() -> None:
    files = sorted(Path(module.__file__).parent.glob("*.py"))
    assert len(files) > 4
    for file in files:
        imports: set[str] = set()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                imports.add("." * node.level + (node.module or ""))
            elif isinstance(node, ast.Import):
                imports.update(alias.name for alias in node.names)
        ours = {name for name in imports if name.startswith((".", "evenly"))}
        own = {"evenly.errors", "evenly.frames", "evenly.inputs", "evenly.policies", "evenly.plots"}
        assert all(name in own or name.startswith("evenly.theory.") for name in ours)
