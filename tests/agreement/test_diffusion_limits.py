"""Simulated systems come closer to the diffusion limits as they grow.

Every sample is an independent system, from the balanced state. Distances between distribution functions are tested
by the Dvoretzky-Kiefer-Wolfowitz bound (with Massart's constant), means by Student's law. Each comparison has a
false-alarm rate of 1e-9.
"""

from dataclasses import dataclass
from functools import cache
from math import exp, floor, log, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray

from evenly.sim import Scenario
from evenly.sim.simulation import Simulation
from evenly.theory.diffusion.fractional import ornstein_uhlenbeck
from evenly.theory.diffusion.whole import ReflectedPaths, reflected
from tests.sim.support import FALSE_ALARM, assert_mean, first_seed
from tests.tiers import rest_in_full

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

SYSTEMS = 5000
LIMIT_PATHS = 100_000
LOAD, WHOLE = 2.5, 3
LEVELS = 12
TIMES = (1.0, 2.0)


@dataclass(frozen=True)
class Sample:
    """Pools with at least i tasks, `at_least[system, time, i]`."""

    pools: int
    at_least: Counts

    def level(self, tasks: int, place: int = 1) -> Counts:
        return self.at_least[:, place, tasks]

    def missing(self, tasks: int, place: int = 1) -> Counts:
        """Return the number of tasks missing in levels 1 to `tasks`."""
        return np.asarray(tasks * self.pools - self.at_least[:, place, 1 : tasks + 1].sum(axis=1))

    def total(self, place: int = 1) -> Counts:
        return np.asarray(self.at_least[:, place, 1:].sum(axis=1))


def sampled(load: float, pools: int, policy: str = "threshold") -> Sample:
    """Return systems at times 1 and 2; `simulate` would do the same, but keep more in memory."""
    return _sampled(load, pools, policy)


@cache
def _sampled(load: float, pools: int, policy: str) -> Sample:
    scenario = Scenario(policy=policy, pools=pools, load=load, initial_tasks=load, horizon=TIMES[-1])
    at_least = np.zeros((SYSTEMS, len(TIMES), LEVELS), np.int64)
    for system in range(SYSTEMS):
        simulation = Simulation(scenario, first_seed(pools, system))
        for place, time in enumerate(TIMES):
            simulation.advance(time)
            counts = simulation.at_least
            at_least[system, place, : counts.size] = counts
    return Sample(pools, at_least)


def bound(samples: int) -> float:
    """Return a bound on the distance between samples and their law, at the false-alarm rate."""
    return sqrt(log(2 / FALSE_ALARM) / (2 * samples))


def shares(counts: Counts, size: int) -> Array:
    """Return the fraction of systems with a count of at most 0, 1, 2, ..."""
    assert counts.max() < size
    return np.cumsum(np.bincount(counts, minlength=size)) / counts.size


# --- a fractional load -------------------------------------------------------------------------------------


def scaled(sample: Sample, place: int = 1) -> Array:
    """Return the paper's Z: pools with at least 3 tasks, centred and scaled."""
    return np.asarray((sample.level(3, place) - sample.pools * (LOAD - floor(LOAD))) / sqrt(sample.pools))


def smooth_distance(sample: Sample) -> float:
    """Return the distance between Z at time 2 and its limit, halfway between the values that Z can take."""
    pools = np.arange(sample.pools + 1)
    values = (pools + 0.5 - sample.pools * (LOAD - floor(LOAD))) / sqrt(sample.pools)
    law = ornstein_uhlenbeck(LOAD).cdf(values, time=TIMES[1])
    return float(np.abs(shares(sample.level(3), pools.size) - law).max())


@pytest.mark.long
@pytest.mark.parametrize(
    ("pools", "policy"),
    [
        (2500, "threshold"),
        *(pytest.param(*case, marks=pytest.mark.full) for case in [(100, "threshold"), (500, "jsq")]),
    ],
)
def test_fluctuations_have_the_normal_law_of_the_limit(pools: int, policy: str) -> None:
    # The tasks missing below 2 shift Z by 0.67 / sqrt(pools), and the skewness has about the same effect.
    assert smooth_distance(sampled(LOAD, pools, policy)) < bound(SYSTEMS) + 0.3 / sqrt(pools)


@pytest.mark.full
def test_the_variance_tends_to_that_of_the_limit() -> None:
    process = ornstein_uhlenbeck(LOAD)
    gaps = []
    for pools, allowed in ((20, np.inf), (100, 0.2), (2500, 0.02)):
        values = scaled(sampled(LOAD, pools))
        gaps.append(abs(float(values.var()) - process.variance(TIMES[1])))
        assert_mean((values - values.mean()) ** 2, process.variance(TIMES[1]), slack=allowed)
    # With twenty pools, the law is cut off at both ends. The noise of a variance is 0.3 at the false-alarm rate.
    assert gaps[0] > 0.7 > gaps[1]
    assert gaps[0] > 0.7 > gaps[2]


@pytest.mark.full
def test_two_times_have_the_covariance_of_the_limit() -> None:
    sample = sampled(LOAD, 2500)
    product = scaled(sample, 0) * scaled(sample, 1)
    assert_mean(product, exp(-1) * ornstein_uhlenbeck(LOAD).variance(TIMES[0]), slack=0.02)


@pytest.mark.full
@pytest.mark.parametrize(
    ("pools", "policy"), [(2500, "threshold"), pytest.param(500, "jsq", marks=pytest.mark.full)]
)
def test_other_levels_do_not_fluctuate_in_the_limit(pools: int, policy: str) -> None:
    sample = sampled(LOAD, pools, policy)
    # Below: gaps appear at rate 2 (n / 2) and are filled at rate 2.5 n, a queue with mean 2 / 3 for any number of
    # pools, which is negligible against sqrt(pools).
    assert_mean(sample.missing(2), 2 / 3, slack=1 / sqrt(pools))
    assert np.mean(sample.missing(2) == 0) == pytest.approx(0.6, abs=bound(SYSTEMS) + 0.3 / sqrt(pools))
    # Above: only when all pools have 3 tasks, hundreds of tasks too many.
    assert sample.level(4).max() == 0


# --- a whole load ------------------------------------------------------------------------------------------


@cache
def limit_at_the_end() -> tuple[Array, Array]:
    """Return sorted values of the limit at time 2: tasks missing below the load, pools above it."""
    paths: ReflectedPaths = reflected(WHOLE).sample_path(
        [TIMES[1]], np.random.default_rng(7), start=[0, 0], paths=LIMIT_PATHS
    )
    return np.sort(paths.below[:, 0]), np.sort(paths.above[:, 0, 0])


def chance(ordered: Array, values: Array) -> Array:
    """Return the fraction of the samples of the limit below these values."""
    return np.asarray(np.searchsorted(ordered, values) / ordered.size)


def steps(counts: Counts) -> NDArray[np.int64]:
    return np.arange(counts.max() + 2)


def plain_distance(counts: Counts, ordered: Array, pools: int) -> float:
    """Return the Kolmogorov distance between scaled counts and the limit, at both ends of every step."""
    levels = steps(counts)
    share = shares(counts, levels.size)
    before, after = (chance(ordered, (levels + side) / sqrt(pools)) for side in (0, 1))
    return float(max((share - before).max(), (after - share).max()))


def corrected_distance(counts: Counts, ordered: Array, pools: int) -> float:
    """Return the same with i standing for the interval from i to i + 1, as suits a walk reflected at 0."""
    levels = steps(counts)
    return float(np.abs(shares(counts, levels.size) - chance(ordered, (levels + 1) / sqrt(pools))).max())


@pytest.mark.long
@pytest.mark.parametrize(
    ("pools", "policy"),
    rest_in_full([(100, "threshold"), (500, "jsq"), (2500, "threshold")], 1),
)
def test_both_sides_of_a_whole_load_have_the_reflected_law(pools: int, policy: str) -> None:
    sample = sampled(WHOLE, pools, policy)
    below, above = limit_at_the_end()
    allowed = bound(SYSTEMS) + bound(LIMIT_PATHS) + 0.3 / sqrt(pools)
    assert corrected_distance(sample.missing(WHOLE), below, pools) < allowed
    assert corrected_distance(sample.level(WHOLE + 1), above, pools) < allowed
    # The joint law: the product of the two has mean 0.39.
    limit = reflected(WHOLE).sample_path([TIMES[1]], np.random.default_rng(8), start=[0, 0], paths=LIMIT_PATHS)
    product = float((limit.below[:, 0] * limit.above[:, 0, 0]).mean())
    assert_mean(sample.missing(WHOLE) * sample.level(WHOLE + 1) / pools, product, slack=0.02 + 1 / sqrt(pools))


@pytest.mark.full
def test_the_distance_to_the_reflected_law_shrinks() -> None:
    # 0.26, 0.13 and 0.03, mostly due to the first step of the lattice; the noise of each is below 0.046, and that
    # of the limit, common to all, below 0.010.
    below, _ = limit_at_the_end()
    distances = [plain_distance(sampled(WHOLE, pools).missing(WHOLE), below, pools) for pools in (20, 100, 2500)]
    noise = bound(SYSTEMS) + bound(LIMIT_PATHS)
    for pools, found in zip((20, 100, 2500), distances, strict=True):
        assert found < 1.3 / sqrt(pools) + noise
    assert distances[0] > distances[1] > distances[2]


@pytest.mark.full
def test_means_beside_a_whole_load_tend_to_the_limit() -> None:
    below, above = limit_at_the_end()
    for pools, policy in ((500, "jsq"), (2500, "threshold")):
        sample = sampled(WHOLE, pools, policy)
        assert_mean(sample.missing(WHOLE) / sqrt(pools), float(below.mean()), slack=0.02 + 0.6 / sqrt(pools))
        assert_mean(sample.level(WHOLE + 1) / sqrt(pools), float(above.mean()), slack=0.02 + 0.6 / sqrt(pools))
        # The total has mean 0 and the variance of the limit for any number of pools.
        total = (sample.total() - pools * WHOLE) / sqrt(pools)
        assert_mean(total, 0.0)
        assert_mean(total**2, reflected(WHOLE).total.variance(TIMES[1]))


@pytest.mark.full
def test_gaps_two_or_more_below_a_whole_load_vanish() -> None:
    # The paper's Y, not yet divided by sqrt(n). The sqrt(n) Z pools with 2 tasks lose one at rate 2 sqrt(n) Z. The
    # gap is filled at rate 3 n under join-the-shortest-queue, and as one among sqrt(n) Z under the threshold.
    below, _ = limit_at_the_end()
    jsq, threshold = sampled(WHOLE, 500, "jsq"), sampled(WHOLE, 2500)
    assert_mean(jsq.missing(WHOLE - 1), 2 / 3 * float(below.mean()) / sqrt(500), slack=0.005)
    assert_mean(threshold.missing(WHOLE - 1), 2 / 3 * float((below**2).mean()), slack=0.1)
    assert threshold.level(WHOLE + 2).max() == jsq.level(WHOLE + 2).max() == 0
