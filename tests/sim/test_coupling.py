"""Two blocking systems on common randomness: they agree where they should, differ elsewhere, each with its law.

Statistical bounds have a false-alarm rate of 1e-9 each; there are a few dozen of them.
"""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from evenly.errors import InputError
from evenly.sim.coupling.jsq import CoupledRun, couple_with_jsq, random_routing_probability
from evenly.theory.exact.law import ExactLaw, solve_exact
from tests.sim.support import FALSE_ALARM, assert_mean
from tests.sim.test_simulate_sizes import uniforms

CASES = [
    (1, 0.4),
    (2, 1.0),
    (5, 2.5),
    (40, 3.3),
    *(pytest.param(pools, load, marks=pytest.mark.full) for pools, load in ((1, 3.0), (8, 4.0), (100, 2.0))),
]


def pair(at_least: NDArray[np.int64], threshold: int) -> list[int]:
    return [int(at_least[1 : threshold + 1].sum()), int(at_least[threshold + 1])]


@pytest.mark.parametrize(("pools", "load"), CASES)
def test_both_systems_agree_at_every_event(pools: int, load: float) -> None:
    threshold = math.floor(load)
    moves: set[tuple[int, int]] = set()
    for seed in range(25):
        run = couple_with_jsq(pools=pools, load=load, seed=seed, events=3000)
        assert run.jsq.shape == run.threshold.shape == (3001, 2)
        assert np.array_equal(run.jsq, run.threshold)
        assert run.jsq[0].tolist() == [0, 0]
        assert pair(run.final_jsq, threshold) == run.jsq[-1].tolist()
        assert pair(run.final_threshold, threshold) == run.threshold[-1].tolist()
        moves |= {(int(low), int(above)) for low, above in np.diff(run.jsq, axis=0)}
    assert moves <= {(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)}
    assert moves >= {(0, 0), (0, 1), (0, -1)}
    assert ((1, 0) in moves) == ((-1, 0) in moves) == (threshold > 0)


@pytest.mark.parametrize(("pools", "load"), CASES)
def test_the_pair_follows_the_construction(pools: int, load: float) -> None:
    """The pair by itself, from the same raw numbers: a task leaves a full pool if U < a, another one if U < b."""
    holding, kinds, departures, _ = (uniforms(11, part) for part in range(4))
    full, places = math.floor(load) * pools, (math.floor(load) + 1) * pools
    low, above, time = 0, 0, 0.0
    path, times = [[0, 0]], [0.0]
    for _ in range(1500):
        time -= math.log1p(-next(holding)) / (pools * load + places)
        if next(kinds) * (pools * load + places) < pools * load:
            low, above = (low + 1, above) if low < full else (low, min(above + 1, pools))
        else:
            uniform = next(departures)
            if uniform < above / pools:
                above -= 1
            elif uniform < (low + above) / places:
                low -= 1
        path.append([low, above])
        times.append(time)
    run = couple_with_jsq(pools=pools, load=load, seed=11, events=1500)
    assert run.jsq.tolist() == run.threshold.tolist() == path
    np.testing.assert_allclose(run.times, times, rtol=1e-9)


@pytest.mark.parametrize(("pools", "load"), [(40, 3.3)])
def test_the_whole_states_differ_while_the_pairs_agree(pools: int, load: float) -> None:
    differing = 0
    for events in range(5, 400, 5):
        run = couple_with_jsq(pools=pools, load=load, seed=4, events=events)
        assert np.array_equal(run.jsq, run.threshold)
        differing += not np.array_equal(run.final_jsq, run.final_threshold)
        above = math.floor(load) + 1
        assert np.array_equal(run.final_jsq[above:], run.final_threshold[above:])
    assert differing > 2


def test_no_pool_goes_beyond_its_capacity_and_full_systems_discard() -> None:
    run = couple_with_jsq(pools=3, load=1.95, seed=2, events=5000)
    assert run.final_jsq.size == run.final_threshold.size == 3
    assert run.jsq.max(axis=0).tolist() == [3, 3]
    full = (run.jsq[:-1] == 3).all(axis=1)
    after = run.jsq[1:][full]
    # From full, a potential departure always takes a task of a full pool; an arrival changes nothing.
    assert {tuple(row) for row in after.tolist()} == {(3, 3), (3, 2)}


def test_a_run_begins_like_a_longer_one() -> None:
    short = couple_with_jsq(pools=7, load=2.5, seed=3, events=100)
    long = couple_with_jsq(pools=7, load=2.5, seed=3, events=400)
    assert np.array_equal(short.jsq, long.jsq[:101])
    assert np.array_equal(short.times, long.times[:101])
    other = couple_with_jsq(pools=7, load=2.5, seed=5, events=100)
    assert not np.array_equal(short.jsq, other.jsq)


def test_events_come_at_the_rate_of_arrivals_and_places() -> None:
    from scipy.stats import gamma

    run = couple_with_jsq(pools=6, load=2.5, events=40_000)
    assert run.times[0] == 0
    assert (np.diff(run.times) > 0).all()
    rate = 6 * (2.5 + 3)
    low, high = (gamma.ppf(tail, 40_000) / rate for tail in (FALSE_ALARM / 2, 1 - FALSE_ALARM / 2))
    assert low < run.times[-1] < high
    gaps = np.diff(run.times) * rate
    # The sample variance of exponentials has mean 1 and deviation sqrt(8 / n): six and a half of them.
    assert abs(gaps.var() - 1) < 6.5 * math.sqrt(8 / gaps.size)


# --- laws ---------------------------------------------------------------------------------------------------


def law_of(policy: str, pools: int, load: float) -> ExactLaw:
    threshold = math.floor(load) if policy == "threshold" else None
    return solve_exact(policy=policy, pools=pools, load=load, threshold=threshold, capacity=math.floor(load) + 1)


@pytest.mark.parametrize(("pools", "load"), [(4, 3.7), pytest.param(3, 2.0, marks=pytest.mark.full)])
def test_each_system_ends_with_its_exact_law(pools: int, load: float) -> None:
    """The rate of all events is constant: after a number of them the law is as after a time, here over 16."""
    high = math.floor(load) + 1
    events = math.ceil(16 * pools * (load + high))
    runs = [couple_with_jsq(pools=pools, load=load, seed=seed, events=events) for seed in range(6000)]
    for policy in ("jsq", "threshold"):
        exact = law_of(policy, pools, load).pools_with_exactly
        ends = np.array([ending(run, policy) for run in runs]) / pools
        shares = ends[:, :-1] - ends[:, 1:]
        for level in range(high):
            if exact[level] > 0.005:
                assert_mean(shares[:, level], float(exact[level]), f"{policy}, {level}", slack=1e-6)
        assert_mean(ends[:, high], float(exact[high]), f"{policy}, {high}", slack=1e-6)


def ending(run: CoupledRun, policy: str) -> NDArray[np.int64]:
    return run.final_jsq if policy == "jsq" else run.final_threshold


@pytest.mark.parametrize(("pools", "load"), [(2, 1.0), pytest.param(6, 3.2, marks=pytest.mark.full)])
def test_time_averages_are_the_exact_ones(pools: int, load: float) -> None:
    """The mean of the pair over 30 independent runs of thousands of mean task times each."""
    high = math.floor(load) + 1
    samples: dict[str, list[tuple[float, float]]] = {"jsq": [], "threshold": []}
    for seed in range(30):
        run = couple_with_jsq(pools=pools, load=load, seed=seed, events=60_000)
        later = run.times[:-1] > 16
        weights = np.diff(run.times)[later]
        for policy, pairs in (("jsq", run.jsq), ("threshold", run.threshold)):
            means = np.average(pairs[:-1][later], axis=0, weights=weights)
            samples[policy].append((means.sum() / pools, means[1] / pools))
    for policy, rows in samples.items():
        law = law_of(policy, pools, load)
        totals, above = zip(*rows, strict=True)
        assert_mean(totals, law.mean_tasks, f"{policy}: mean tasks", slack=1e-7)
        assert_mean(above, float(law.pools_with_exactly[high]), f"{policy}: pools above", slack=1e-7)


# --- starts above the capacity ------------------------------------------------------------------------------


@pytest.mark.parametrize("initial", [[9, 0, 0, 4, 1], [3, 3, 3, 3, 3], [0, 1, 2, 0, 1]])
def test_the_systems_agree_from_any_start(initial: list[int]) -> None:
    for seed in range(40):
        run = couple_with_jsq(pools=5, load=2.5, seed=seed, events=400, initial_tasks=initial)
        assert run.jsq[0].tolist() == [
            sum(min(tasks, 2) for tasks in initial),
            sum(tasks >= 3 for tasks in initial),
        ]
        assert np.array_equal(run.jsq, run.threshold)
        assert np.array_equal(run.final_jsq[3:], run.final_threshold[3:])
        assert run.final_jsq.size == max(*initial, 3) + 1


def test_a_pool_above_the_capacity_only_loses_tasks_each_at_unit_rate() -> None:
    """The full pool's tasks leave one by one: per event, with probability (its tasks) / (rate of all events)."""
    from scipy.stats import binom

    initial, load, events = [8, 1, 0], 2.5, 30
    places = 8 + 3 + 3
    rate = 3 * load + places
    law = np.zeros(9)
    law[8] = 1.0
    down = np.arange(9) / rate
    for _ in range(events):
        law = law * (1 - down) + np.append((law * down)[1:], 0.0)
    runs = 4000
    above = np.zeros(9)
    for seed in range(runs):
        run = couple_with_jsq(pools=3, load=load, seed=seed, events=events, initial_tasks=initial)
        assert np.array_equal(run.final_jsq[4:], run.final_threshold[4:])
        above += run.final_jsq >= 1
    for level in range(4, 9):  # once at the capacity it is as any other
        chance = float(law[level:].sum())
        low, high = (binom.ppf(tail, runs, chance) for tail in (FALSE_ALARM / 2, 1 - FALSE_ALARM / 2))
        assert low <= above[level] <= high, (level, above[level], chance * runs)


# --- input --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"pools": 0}, "pools must be a whole number from 1"),
        ({"events": 0}, "events must be a whole number from 1 to 1000000, not 0"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"initial_tasks": [1, 2]}, "initial_tasks must have 3 numbers"),
        ({"load": 5000.0, "events": 10**6}, "1000000 events on 5003 levels are too many"),
    ],
)
def test_bad_input_is_rejected(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        couple_with_jsq(**{"pools": 3, "load": 2.5, **arguments})


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"pools": 0}, "pools must be a whole number from 1"),
        ({"replications": 0}, "replications must be a whole number"),
        ({"seed": -1}, "seed must be a whole number"),
    ],
)
def test_bad_input_to_random_routing_is_rejected(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        random_routing_probability(**{"pools": 3, "load": 2.5, "horizon": 1.0, "replications": 2, **arguments})
