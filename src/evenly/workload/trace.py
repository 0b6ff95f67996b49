"""Sessions drawn ahead of time, so that several balancers get the same ones and a run can be repeated."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from evenly.errors import InputError
from evenly.workload.demand import Phase, check_schedule


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
    _check(pools, mean_stay)
    if not (math.isfinite(horizon) and horizon >= 0):
        raise InputError(f"The horizon must be a number of seconds, not {horizon:g}.")
    rng = random.Random(seed)
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
    """Draw sessions at a constant load, without an end."""
    phase = Phase(0.0, load)
    _check(pools, mean_stay)
    if load == 0:
        raise InputError("The load of endless visits must be positive, not 0.")
    return _arrivals(random.Random(seed), phase, pools, mean_stay)


def _arrivals(rng: random.Random, phase: Phase, pools: int, mean_stay: float) -> Iterator[Visit]:
    """Yield arrivals from the phase's start on, without an end.

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


def _check(pools: int, mean_stay: float) -> None:
    if pools < 1:
        raise InputError(f"There must be at least 1 pool, not {pools}.")
    if not (math.isfinite(mean_stay) and mean_stay > 0):
        raise InputError(f"The mean stay must be a positive number of seconds, not {mean_stay:g}.")
