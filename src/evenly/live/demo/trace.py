"""Visits drawn ahead of time, so that every balancer gets the same ones and a run can be repeated."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evenly.errors import InputError


@dataclass(frozen=True, slots=True)
class Visit:
    """A session as it is wanted: when it begins, in seconds since the beginning, and for how long."""

    start: float
    stay: float


@dataclass(frozen=True, slots=True)
class Phase:
    """So many seconds of a constant load: the mean number of sessions per pool that it leads to."""

    load: float
    seconds: float


def trace(*, pools: int, phases: Sequence[Phase], mean_stay: float, seed: int) -> tuple[Visit, ...]:
    """Poisson arrivals at the rate pools * load / mean_stay of each phase in turn, with exponential stays."""
    _check(pools, phases, mean_stay)
    draw = random.Random(seed)
    visits: list[Visit] = []
    begin = 0.0
    for phase in phases:
        end = begin + phase.seconds
        for visit in _arrivals(draw, pools * phase.load / mean_stay, mean_stay, begin):
            if visit.start >= end:
                break  # the law of the next arrival has no memory, so the next phase draws its own
            visits.append(visit)
        begin = end
    return tuple(visits)


def endless(*, pools: int, load: float, mean_stay: float, seed: int) -> Iterator[Visit]:
    """The same law at one load, without an end."""
    _check(pools, [Phase(load, 0)], mean_stay)
    return _arrivals(random.Random(seed), pools * load / mean_stay, mean_stay, 0.0)


def _arrivals(draw: random.Random, rate: float, mean_stay: float, begin: float) -> Iterator[Visit]:
    time = begin
    while True:
        time += draw.expovariate(rate)
        yield Visit(time, draw.expovariate(1 / mean_stay))


def _check(pools: int, phases: Sequence[Phase], mean_stay: float) -> None:
    if pools < 1:
        raise InputError(f"There must be at least 1 pool, not {pools}.")
    if not (math.isfinite(mean_stay) and mean_stay > 0):
        raise InputError(f"The mean stay must be a positive number of seconds, not {mean_stay:g}.")
    for phase in phases:
        if not (math.isfinite(phase.load) and phase.load > 0):
            raise InputError(f"The load of a phase must be a positive number, not {phase.load:g}.")
        if not (math.isfinite(phase.seconds) and phase.seconds >= 0):
            raise InputError(f"The length of a phase must be a number of seconds, not {phase.seconds:g}.")
