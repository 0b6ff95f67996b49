"""Sessions drawn ahead of time, so that several balancers get the same ones and a run can be repeated."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from evenly.errors import InputError
from evenly.inputs import number_from, positive_number, whole_number
from evenly.workload.demand import MAX_LOAD, Phase, check_schedule

MAX_POOLS = 10**9
MAX_VISITS = 10**7
_STAYS = (1e-9, 1e9)  # seconds


@dataclass(frozen=True, slots=True)
class Visit:
    """A planned session: its start in seconds since the beginning, and its duration in seconds."""

    start: float
    stay: float


def draw_visits(
    *, pools: int, schedule: Iterable[Phase], horizon: float, mean_stay: float, seed: int
) -> tuple[Visit, ...]:
    """Draw the sessions that start before `horizon`, in order of their starts.

    Arrivals are Poisson at rate pools * load / mean_stay, with the load of the schedule at that time. Durations
    are exponential. The times of the schedule and of the visits are in seconds.
    """
    phases = check_schedule(schedule)
    pools, mean_stay = _checked(pools, mean_stay)
    horizon = number_from("horizon", horizon, 0)
    expected = horizon * pools * max(phase.load + phase.amplitude for phase in phases) / mean_stay
    if expected > MAX_VISITS:
        raise InputError(f"About {expected:.0e} visits are too many (at most {MAX_VISITS}): reduce the horizon.")
    rng = random.Random(_checked_seed(seed))
    visits: list[Visit] = []
    ends = [*(phase.start for phase in phases[1:]), horizon]
    for phase, end in zip(phases, ends, strict=True):
        if phase.load == 0:  # its amplitude is 0 too: nothing arrives
            continue
        for visit in _arrivals(rng, phase, pools, mean_stay):
            if visit.start >= min(end, horizon):
                break  # interarrival times are memoryless, so the next phase draws its own
            visits.append(visit)
    return tuple(visits)


def endless_visits(*, pools: int, load: float, mean_stay: float, seed: int) -> Iterator[Visit]:
    """Draw sessions at a constant load, endlessly."""
    phase = Phase(0.0, positive_number("load", load, MAX_LOAD))
    return _arrivals(random.Random(_checked_seed(seed)), phase, *_checked(pools, mean_stay))


def _arrivals(rng: random.Random, phase: Phase, pools: int, mean_stay: float) -> Iterator[Visit]:
    """Yield arrivals from the phase's start on, endlessly.

    A wave is sampled by thinning: candidates arrive at the rate of the peak, and each is kept with the probability
    load / peak at its time.
    """
    peak = phase.load + phase.amplitude
    rate = pools * peak / mean_stay
    time = phase.start
    while True:
        time += rng.expovariate(rate)
        if phase.amplitude and rng.random() * peak >= phase.load_at(time):
            continue
        yield Visit(time, rng.expovariate(1 / mean_stay))


def _checked(pools: int, mean_stay: float) -> tuple[int, float]:
    return whole_number("pools", pools, 1, MAX_POOLS), number_from("mean_stay", mean_stay, *_STAYS)


def _checked_seed(seed: int) -> int:
    return whole_number("seed", seed, 0, 2**64 - 1)
