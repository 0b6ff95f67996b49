"""The random numbers: the published generator, the laws they should have, and streams that stay apart.

That the numbers are the published ones is tested in `make test`; most of their statistics, in `make full`.
Every statistical bound has a false-alarm rate of 1e-9; there are a few dozen of them.
"""

import math
from bisect import bisect_left
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, cycle

import numpy as np
import pytest
from numpy.typing import NDArray

from evenly.sim.kernels import rng as module
from evenly.sim.kernels.rng import BUFFER, LANES, Streams, lowest_rank, new_streams, refill_choices, refill_events
from tests.sim.support import FALSE_ALARM, assert_chi_square

DRAWS = 2**23
BINS = 4096
TAIL = 7.69711747013104972
MASK = 2**64 - 1
Z = 6.1094102  # a normal number is farther from its mean, in deviations, with the probability FALSE_ALARM


def large_streams(seed: np.random.SeedSequence, size: int = DRAWS) -> Streams:
    """Return streams with large buffers, filled by the functions that fill the small ones."""
    streams = new_streams(seed)._replace(
        holding=np.empty(size),
        events=np.empty(size),
        choices=np.empty(size),
        scratch=np.empty(size, np.uint64),
        rejected=np.empty(size + 1, np.int64),
    )
    refill_events(streams, False)
    refill_choices(streams)
    return streams


@pytest.fixture(scope="module")
def drawn() -> Streams:
    return large_streams(np.random.SeedSequence(20))


def rotated(word: int, by: int) -> int:
    return ((word << by) | (word >> (64 - by))) & MASK


class Xoshiro:
    """xoshiro256++ 1.0 as Blackman and Vigna publish it, on Python's integers."""

    def __init__(self, state: list[int]) -> None:
        self.s = state

    def next(self) -> int:
        s = self.s
        result = (rotated((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
        shifted = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= shifted
        s[3] = rotated(s[3], 45)
        return result

    def uniform(self) -> float:
        return (self.next() >> 11) / 2**53


def ziggurat_edges() -> list[float]:
    """Return the right edges of the strips, from the tail inwards: strips of equal area under exp(-x)."""
    area = TAIL * math.exp(-TAIL) + math.exp(-TAIL)
    edges = [area / math.exp(-TAIL), TAIL]
    while len(edges) < 256:
        edges.append(-math.log(area / edges[-1] + math.exp(-edges[-1])))
    return [*edges, 0.0]


def exponential(word: int, spare: Xoshiro, edges: list[float]) -> float:
    """Draw by Marsaglia and Tsang's method in real arithmetic, one strip per byte, numbered as in their tables."""
    while True:
        number = word & 255
        place = 0 if number == 0 else 256 - number  # their strip 255 lies on the base strip
        x = (word >> 11) / 2**53 * edges[place]
        if x < edges[place + 1]:
            return x
        second = spare.uniform()
        if place == 0:
            return TAIL - math.log(1 - second)
        low, high = math.exp(-edges[place]), math.exp(-edges[place + 1])
        if low + second * (high - low) < math.exp(-x):
            return x
        word = spare.next()


def split_mix(word: int, count: int) -> list[int]:
    """Run SplitMix64 as Vigna publishes it, on Python's integers."""
    words = []
    for _ in range(count):
        word = (word + 0x9E3779B97F4A7C15) & MASK
        mixed = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
        words.append(mixed ^ (mixed >> 31))
    return words


def seed_words(seed: int, which: int, count: int) -> list[int]:
    """Return the words that seed a stream (0 holding times, 1 events, 2 choices, 3 spare)."""
    word = int(np.random.SeedSequence(seed).generate_state(4, np.uint64)[which])
    return split_mix(word, count)


def lanes(seed: int, which: int) -> Iterator[Xoshiro]:
    """Yield from the generators of a stream, in turn, endlessly; the words of their states are contiguous."""
    words = seed_words(seed, which, 4 * LANES)
    return cycle([Xoshiro(words[lane::LANES]) for lane in range(LANES)])


def test_the_published_state_gives_the_published_numbers() -> None:
    # First outputs of the reference implementation for the state 1, 2, 3, 4, also in rand_xoshiro's tests.
    words = Xoshiro([1, 2, 3, 4])
    assert [words.next() for _ in range(4)] == [41943041, 58720359, 3588806011781223, 3591011842654386]


def test_the_published_seeding_gives_the_published_numbers() -> None:
    # The first outputs for the seed 1234567, as in the examples of Rosetta Code and of several libraries.
    assert split_mix(1234567, 3) == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@pytest.mark.parametrize("seed", [7, 2**64 - 1])
def test_uniforms_are_those_of_xoshiro_and_a_refill_continues_them(seed: int) -> None:
    streams = new_streams(np.random.SeedSequence(seed))
    events, choices = lanes(seed, 1), lanes(seed, 2)
    for _ in range(4):
        assert streams.events.tolist() == [next(events).uniform() for _ in range(BUFFER)]
        assert streams.choices.tolist() == [next(choices).uniform() for _ in range(BUFFER)]
        refill_events(streams, False)
        refill_choices(streams)


def test_exponentials_are_those_of_the_ziggurat_and_a_refill_continues_them() -> None:
    streams = new_streams(np.random.SeedSequence(5))
    words, spare, edges = lanes(5, 0), Xoshiro(seed_words(5, 3, 4)), ziggurat_edges()
    for _ in range(60):
        expected = [exponential(next(words).next(), spare, edges) for _ in range(BUFFER)]
        np.testing.assert_allclose(streams.holding, expected, rtol=1e-9)
        refill_events(streams, False)


def test_the_strips_have_equal_areas_and_fill_the_density() -> None:
    edges = ziggurat_edges()
    area = edges[0] * math.exp(-TAIL)
    heights = [math.exp(-edge) for edge in edges]
    areas = [edges[place] * (heights[place + 1] - heights[place]) for place in range(1, 256)]
    np.testing.assert_allclose(areas, area, rtol=1e-6)
    np.testing.assert_allclose(module._WIDTH[1:][::-1] * 2**53, edges[1:256], rtol=1e-9)


@pytest.mark.full
def test_uniforms_fill_the_unit_interval_evenly(drawn: Streams) -> None:
    for values in (drawn.events, drawn.choices):
        assert 0 <= values.min() < values.max() < 1
        assert_chi_square(np.bincount((values * BINS).astype(int), minlength=BINS), np.full(BINS, DRAWS / BINS))


@pytest.mark.full
def test_the_lowest_bits_of_uniforms_are_even_too(drawn: Streams) -> None:
    for values in (drawn.events, drawn.choices):
        low = (values * 2**53).astype(np.int64) % BINS
        assert_chi_square(np.bincount(low, minlength=BINS), np.full(BINS, DRAWS / BINS))


@pytest.mark.full
def test_exponentials_fill_bins_of_equal_probability_evenly(drawn: Streams) -> None:
    places = np.minimum((np.exp(-drawn.holding) * BINS).astype(int), BINS - 1)
    assert_chi_square(np.bincount(places, minlength=BINS), np.full(BINS, DRAWS / BINS))


def test_exponentials_pass_kolmogorov_and_smirnov(drawn: Streams) -> None:
    from scipy.special import kolmogi

    values = np.sort(drawn.holding[: 2**21])
    ranks = np.arange(values.size + 1) / values.size
    law = -np.expm1(-values)
    distance = max(float((ranks[1:] - law).max()), float((law - ranks[:-1]).max()))
    assert distance * math.sqrt(values.size) < float(kolmogi(FALSE_ALARM))


@pytest.mark.full
def test_exponentials_have_the_right_moments(drawn: Streams) -> None:
    for power in (1, 2, 3, 4):  # E X^k = k!, Var X^k = (2k)! - k!^2
        spread = math.sqrt(math.factorial(2 * power) - math.factorial(power) ** 2)
        error = abs(float((drawn.holding**power).mean()) - math.factorial(power))
        assert error < 1.5 * Z * spread / math.sqrt(DRAWS)  # half as much again: high powers are skewed


@pytest.mark.full
def test_the_tail_beyond_the_last_strip_is_exponential_again(drawn: Streams) -> None:
    from scipy.stats import binom

    beyond = drawn.holding[drawn.holding > TAIL] - TAIL
    law = binom(DRAWS, math.exp(-TAIL))
    assert law.ppf(FALSE_ALARM / 2) <= beyond.size <= law.isf(FALSE_ALARM / 2)
    counts = np.bincount((np.exp(-beyond) * 32).astype(int).clip(0, 31), minlength=32)
    assert_chi_square(counts, np.full(32, beyond.size / 32))


@pytest.mark.full
def test_neighbours_in_a_stream_and_in_a_lane_are_independent(drawn: Streams) -> None:
    for values in (drawn.events, drawn.choices, np.exp(-drawn.holding)):
        digits = (values * 64).astype(int).clip(0, 63).reshape(-1, 2, LANES)  # two turns of all lanes
        for pairs in (digits[:, 0] * 64 + digits[:, 1], digits[:, :, ::2] * 64 + digits[:, :, 1::2]):
            assert_chi_square(np.bincount(pairs.ravel(), minlength=BINS), np.full(BINS, DRAWS / 2 / BINS))


def correlation(one: NDArray[np.float64], two: NDArray[np.float64]) -> float:
    return float(np.corrcoef(one, two)[0, 1])


@pytest.mark.full
def test_the_three_streams_are_different_and_uncorrelated(drawn: Streams) -> None:
    for one, two in combinations((drawn.events, drawn.choices, np.exp(-drawn.holding)), 2):
        assert not np.isin(one[:BUFFER], two[:BUFFER]).any()
        assert abs(correlation(one, two)) < Z / math.sqrt(DRAWS)


def test_replications_are_different_and_uncorrelated() -> None:
    size = 2**20
    seeds = [np.random.SeedSequence(1, spawn_key=(index,)) for index in range(3)]
    for first, second in combinations([large_streams(seed, size) for seed in seeds], 2):
        assert not np.isin(first.events[:BUFFER], second.events[:BUFFER]).any()
        assert abs(correlation(first.events, second.events)) < Z / math.sqrt(size)


def test_mean_holding_times_are_ones_and_leave_the_other_streams_alone() -> None:
    usual = new_streams(np.random.SeedSequence(3))
    means = new_streams(np.random.SeedSequence(3), mean_holding=True)
    for _ in range(2):
        assert means.holding.tolist() == [1.0] * BUFFER
        assert means.events.tolist() == usual.events.tolist()
        assert means.choices.tolist() == usual.choices.tolist()
        for streams, mean_holding in ((usual, False), (means, True)):
            refill_events(streams, mean_holding)
            refill_choices(streams)


@pytest.mark.parametrize("pools", [1, 12, 300])
def test_the_lowest_of_distinct_ranks_has_its_exact_law(pools: int) -> None:
    """It grows with the uniform, and steps up at its distribution function, known in whole numbers."""
    for sampled in {1, 2, 5, pools // 3, pools // 2, pools - 1, pools} - {0}:
        if sampled > pools:
            continue
        assert lowest_rank(0.0, sampled, pools) == 0
        for rank in range(min(pools - sampled, 30)):
            at_most = 1 - Fraction(math.comb(pools - rank - 1, sampled), math.comb(pools, sampled))
            step = bisect_left(range(2**53), rank + 1, key=lambda u: lowest_rank(u / 2**53, sampled, pools))
            assert abs(Fraction(step, 2**53) - at_most) < 1e-15
        assert lowest_rank(1 - 2**-53, sampled, pools) <= pools - sampled


@pytest.mark.parametrize(("sampled", "pools"), [(5, 10**9), (512, 10**9), (512, 1000)])
def test_the_lowest_of_distinct_ranks_has_its_law_at_any_size(sampled: int, pools: int) -> None:
    """Between the chances of the rank and of the next, which products of `sampled` factors give independently."""

    def chance_above(rank: int) -> float:
        return math.exp(np.log1p(-rank / (pools - np.arange(float(sampled)))).sum())

    for uniform in np.random.default_rng(2).random(300).tolist():
        rank = lowest_rank(uniform, sampled, pools)
        assert chance_above(rank + 1) * (1 - 1e-12) <= 1 - uniform <= chance_above(rank) * (1 + 1e-12)
