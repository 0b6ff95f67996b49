"""Visits drawn ahead of time: their law, their repeatability, and bad input."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice, pairwise
from statistics import NormalDist, fmean
from typing import Any

import pytest
from scipy.integrate import quad

from evenly.errors import InputError
from evenly.workload.demand import Phase
from evenly.workload.trace import Visit, draw_visits, endless_visits

FALSE_ALARM = 1e-7  # of each comparison with a law
Z = -NormalDist().inv_cdf(FALSE_ALARM / 2)


def test_the_visits_have_the_law_of_their_phases() -> None:
    schedule = [Phase(0, 3), Phase(400, 8)]
    visits = draw_visits(pools=20, schedule=schedule, horizon=700, mean_stay=2.0, seed=5)
    starts = [visit.start for visit in visits]
    assert starts == sorted(starts)
    for phase, seconds in zip(schedule, (400, 300), strict=True):
        times = [start for start in starts if phase.start <= start < phase.start + seconds]
        rate = 20 * phase.load / 2.0
        assert abs(len(times) - rate * seconds) < Z * math.sqrt(rate * seconds)
        check_exponential([later - earlier for earlier, later in pairwise(times)], 1 / rate)
    assert starts[-1] < 700
    check_exponential([visit.stay for visit in visits], 2.0)


def check_exponential(sample: list[float], mean: float) -> None:
    """Check the mean, and the shares beyond three points, which are binomial."""
    root = math.sqrt(len(sample))
    assert abs(fmean(sample) - mean) < Z * mean / root
    for point in (0.2, 1.0, 2.5):
        share = fmean(value > point * mean for value in sample)
        expected = math.exp(-point)
        assert abs(share - expected) < Z * math.sqrt(expected * (1 - expected)) / root


@pytest.mark.parametrize("amplitude", [2.0, 8.0], ids=["a ripple", "down to nothing"])
def test_a_wave_has_the_rate_of_its_time(amplitude: float) -> None:
    """The number of arrivals in each twelfth of the wave is Poisson, with the integral of the rate as its mean."""
    wave = Phase(100, 8, amplitude, 60)
    waves, pools, mean_stay = 40, 20, 2.0
    visits = draw_visits(
        pools=pools,
        schedule=[Phase(0, 3), wave],
        horizon=wave.start + waves * wave.period,
        mean_stay=mean_stay,
        seed=6,
    )
    places = [(visit.start - wave.start) % wave.period for visit in visits if visit.start >= wave.start]
    edges = [wave.period * part / 12 for part in range(13)]
    for begin, end in pairwise(edges):
        area, _ = quad(wave.load_at, wave.start + begin, wave.start + end)
        mean = waves * pools * area / mean_stay
        count = sum(begin <= place < end for place in places)
        assert abs(count - mean) < Z * math.sqrt(mean) + Z**2 / 2  # the second term: few arrivals are not normal
    check_exponential([visit.stay for visit in visits], mean_stay)


def test_nothing_arrives_in_a_phase_without_load_or_after_the_horizon() -> None:
    schedule = [Phase(0, 2), Phase(50, 0), Phase(100, 2), Phase(200, 1000)]
    visits = draw_visits(pools=10, schedule=schedule, horizon=150, mean_stay=1, seed=1)
    begins = [sum(begin <= visit.start < begin + 50 for visit in visits) for begin in (0, 50, 100)]
    assert begins[1] == 0
    assert min(begins[0], begins[2]) > 0  # by chance: exp(-1000)
    assert sum(begins) == len(visits)
    assert draw_visits(pools=10, schedule=schedule, horizon=0, mean_stay=1, seed=1) == ()


def test_a_seed_gives_its_visits_again_and_another_seed_others() -> None:
    first, again, other = (
        draw_visits(pools=2, schedule=[Phase(0, 1)], horizon=50, mean_stay=1, seed=seed) for seed in (1, 1, 2)
    )
    assert first == again != other


def test_the_visits_of_a_seed_stay_the_same_from_version_to_version() -> None:
    """Published figures name a seed. Python keeps the sequence of `random.Random` for a seed."""
    schedule = [Phase(0, 5.5), Phase(18, 10.5), Phase(36, 2.5)]
    visits = draw_visits(pools=20, schedule=schedule, horizon=54, mean_stay=2.0, seed=1)
    assert len(visits) == 3252
    times = [math.fsum(visit.start for visit in visits), math.fsum(visit.stay for visit in visits)]
    times += [visits[1000].start, visits[1000].stay, visits[-1].start, visits[-1].stay]
    expected = [78583.49985071708, 6401.7160179449065, 18.13519859071059, 0.3811668678733084]
    expected += [53.966242796851255, 0.6272252558631118]
    assert times == pytest.approx(expected, rel=1e-12)


def test_endless_visits_have_the_same_law() -> None:
    visits = list(islice(endless_visits(pools=20, load=5.5, mean_stay=2.0, seed=1), 20_000))
    assert abs(visits[-1].start - 20_000 / 55) < Z * math.sqrt(20_000) / 55


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda: some_visits(pools=0), "pools must be a whole number from 1 .*, not 0"),
        (lambda: some_visits(mean_stay=0), "mean_stay must be a number from 1e-09 .*, not 0"),
        (lambda: some_visits(horizon=-1), "horizon must be zero or a positive number, not -1"),
        (lambda: some_visits(horizon=1e300), "visits are too many"),
        (lambda: some_visits(start=1), "must begin at time 0"),
        (
            lambda: list(islice(endless_visits(pools=1, load=0, mean_stay=1, seed=1), 1)),
            "positive .*, not 0",
        ),
        (lambda: list(islice(endless_visits(pools=0, load=1, mean_stay=1, seed=1), 1)), "pools must be"),
    ],
)
def test_bad_input_is_rejected(draw: Callable[[], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        draw()


def some_visits(
    *,
    pools: int = 1,
    start: float = 0,
    horizon: float = 1,
    mean_stay: Any = 1,  # noqa: ANN401
) -> tuple[Visit, ...]:
    return draw_visits(pools=pools, schedule=[Phase(start, 1)], horizon=horizon, mean_stay=mean_stay, seed=1)
