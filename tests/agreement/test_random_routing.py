"""Random routing vanishes: simulated frequencies against an absorbing chain, which is exact at every size.

Until a task finds all pools with floor(load) + 1 tasks, the pair of Prop. 2 is a Markov chain: W, the tasks
missing up to the threshold, and Y, the pools above it. It is absorbed at the first such task.

Binomial bounds have a false-alarm rate of 1e-9 each; there are a few dozen of them.

Paper: Props. 2 and 3.
"""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csc_array
from scipy.sparse.linalg import expm_multiply

from evenly.sim import Scenario, simulate
from evenly.sim.coupling.jsq import random_routing_probability
from tests import distributions as stats
from tests.sim.support import FALSE_ALARM, first_seed, reference_path
from tests.tiers import rest_in_full


def absorbed_by(pools: int, load: float, horizon: float) -> float:
    """Return the probability that a task has found W = 0 and Y = pools, from the balanced state."""
    threshold = math.floor(load)
    states = [(w, y) for y in range(pools + 1) for w in range(threshold * (pools - y) + 1)]
    place = {state: index for index, state in enumerate(states)}
    rows, columns, rates = [], [], []
    for (w, y), index in place.items():
        arrival = (w - 1, y) if w > 0 else (0, y + 1)  # leaves the chain from (0, pools)
        moves = {arrival: pools * load, (w, y - 1): (threshold + 1) * y, (w + 1, y): threshold * (pools - y) - w}
        for target, rate in moves.items():
            if rate > 0:
                rows.append(index)
                columns.append(index)
                rates.append(-float(rate))
                if target in place:
                    rows.append(place[target])
                    columns.append(index)
                    rates.append(float(rate))
    generator = csc_array((rates, (rows, columns)), shape=(len(states), len(states)))
    start = np.zeros(len(states))
    start[place[0, round((load - threshold) * pools)]] = 1.0
    return 1.0 - float(expm_multiply(generator * horizon, start).sum())


def agree(pools: int, load: float, horizon: float, replications: int) -> None:
    chance = absorbed_by(pools, load, horizon)
    estimate, error = random_routing_probability(
        pools=pools, load=load, horizon=horizon, replications=replications, seed=7
    )
    low, high = (stats.binom.ppf(tail, replications, chance) for tail in (FALSE_ALARM / 2, 1 - FALSE_ALARM / 2))
    assert low <= round(estimate * replications) <= high, (estimate, chance)
    assert error == math.sqrt(estimate * (1 - estimate) / replications)


@pytest.mark.parametrize(
    ("pools", "load"),
    [
        *[(10, 2.9), (30, 2.5)],
        *(pytest.param(*case, marks=pytest.mark.full) for case in [(10, 2.5), (20, 2.5), (20, 2.9), (30, 2.9)]),
    ],
)
def test_the_frequency_agrees_with_the_absorbing_chain(pools: int, load: float) -> None:
    agree(pools, load, 5.0, 2000)


@pytest.mark.parametrize(
    ("pools", "load", "horizon"),
    rest_in_full([(4, 0.5, 0.3), (6, 2.0, 1.5), (1, 0.6, 1.0), (40, 1.6, 2.0)], 2),
)
def test_the_frequency_below_load_one_and_at_whole_loads(pools: int, load: float, horizon: float) -> None:
    agree(pools, load, horizon, 2000)


def test_the_chain_of_a_single_pool_by_hand() -> None:
    """Two states: one task (absorbed at rate 0.6, left at rate 1), no task (filled at rate 0.6)."""
    matrix = np.array([[-0.6, 1.0], [0.6, -1.6]])
    values, vectors = np.linalg.eig(matrix)
    alive = (vectors * np.exp(values)) @ np.linalg.solve(vectors, [0.0, 1.0])
    assert abs(absorbed_by(1, 0.6, 1.0) - (1 - alive.sum())) < 1e-12


@pytest.mark.full
def test_the_probability_vanishes_as_pools_grow() -> None:
    chances = [absorbed_by(pools, 2.5, 5.0) for pools in (10, 20, 30, 60, 90)]
    assert all(later < 0.9 * earlier for earlier, later in pairwise(chances))
    # The total is at most Poisson with mean 2500. By Chernoff's bound, a task finds 3000 with probability at most
    # exp(500 - 3000 log 1.2), so the expected number of such tasks in 5 task times is below 1e-16.
    assert 12_500 * math.exp(500 - 3000 * math.log(1.2)) < 1e-16
    assert random_routing_probability(pools=1000, load=2.5, horizon=5.0, replications=200) == (0.0, 0.0)


def test_tasks_count_if_they_find_no_pool_below_the_capacity() -> None:
    """`without_token` of every replication against the reference on the same random numbers."""
    scenario = Scenario(pools=5, load=1.8, initial_tasks=1.8, horizon=2.0)
    result = simulate(scenario, replications=40, seed=3)
    counts = []
    for replication in range(40):
        path = reference_path(scenario, first_seed(3, replication))
        counts.append(
            sum(later.arrivals > earlier.arrivals and min(earlier.tasks) >= 2 for earlier, later in pairwise(path))
        )
    assert [sample.without_token for sample in result.windows] == counts
    share = sum(count > 0 for count in counts) / 40
    assert 0 < share < 1
    assert random_routing_probability(pools=5, load=1.8, horizon=2.0, replications=40, seed=3)[0] == share
