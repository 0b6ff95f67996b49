"""Queues for the sessions of a simulation: the kernel's heap, a heap with two children, and a calendar queue.

The "hold" model: the session that ends next is taken out, and another one with a new duration put in, over and
over. All three do the same with the same durations.
"""

from __future__ import annotations

import math
import time

import numpy as np
from numpy.typing import NDArray

from evenly.sim.kernels import heap
from evenly.sim.kernels.draws import draw_many
from evenly.sim.kernels.jit import kernel
from evenly.sim.scenario import Scenario
from evenly.sim.sessions import service_draws

Floats = NDArray[np.float64]
IntArray = NDArray[np.int64]


@kernel
def hold_four(due: Floats, sessions: IntArray, durations: Floats) -> float:
    """Hold with the kernel's heap."""
    size = due.size
    now = 0.0
    for place in range(durations.size):
        now = due[0]
        heap.pop(due, sessions, size)
        heap.push(due, sessions, size - 1, now + durations[place], size + place)
    return now


@kernel
def hold_two(due: Floats, sessions: IntArray, durations: Floats) -> float:
    """Hold with a heap with two children, which replaces its root at once."""
    size = due.size
    now = 0.0
    for number in range(durations.size):
        now = due[0]
        ends, session = now + durations[number], size + number
        place, child = 0, 1
        while child < size:
            other = child + 1
            if other < size and (
                due[other] < due[child] or (due[other] == due[child] and sessions[other] < sessions[child])
            ):
                child = other
            if ends <= due[child]:
                break
            due[place] = due[child]
            sessions[place] = sessions[child]
            place = child
            child = 2 * place + 1
        due[place] = ends
        sessions[place] = session
    return now


@kernel
def hold_calendar(
    due: Floats, sessions: IntArray, durations: Floats, heads: IntArray, following: IntArray, width: float
) -> float:
    """Hold with a calendar queue (R. Brown, 1988): days of this width, one unsorted list per day of a year."""
    size, days = due.size, heads.size
    heads[:] = -1
    for entry in range(size):
        day = int(due[entry] / width) & (days - 1)
        following[entry] = heads[day]
        heads[day] = entry
    now = 0.0
    today = 0
    for number in range(durations.size):
        best = previous = -1
        for _ in range(days):
            day = today & (days - 1)
            before, entry = -1, heads[day]
            while entry >= 0:
                if int(due[entry] / width) <= today and (
                    best < 0
                    or due[entry] < due[best]
                    or (due[entry] == due[best] and sessions[entry] < sessions[best])
                ):
                    best, previous = entry, before
                before, entry = entry, following[entry]
            if best >= 0:
                break
            today += 1
        if best < 0:  # nothing within a year
            earliest = math.inf
            for entry in range(size):
                earliest = min(earliest, due[entry])
            today = int(earliest / width)
            continue
        day = today & (days - 1)
        if previous < 0:
            heads[day] = following[best]
        else:
            following[previous] = following[best]
        now = due[best]
        due[best] = now + durations[number]
        sessions[best] = size + number
        day = int(due[best] / width) & (days - 1)
        following[best] = heads[day]
        heads[day] = best
    return now


def nanoseconds(queue: str, law: str, size: int, steps: int) -> float:
    """Return the time of one step."""
    draws = service_draws(Scenario(pools=1, load=1.0, service=law), np.random.SeedSequence(1))
    durations = np.zeros(size + steps)
    draw_many(draws, durations)
    due, sessions = np.sort(durations[:size]), np.arange(size)
    for place in range(2):  # first to reach the stationary residual times, then for the clock
        new = durations[size:] if place else np.random.default_rng(1).permutation(durations[size:])
        started = time.perf_counter()
        if queue == "calendar":
            days = 1 << (2 * size - 1).bit_length()
            hold_calendar(due, sessions, new, np.zeros(days, np.int64), np.zeros(size, np.int64), 1.0 / size)
        else:
            (hold_four if queue == "four" else hold_two)(due, sessions, new)
        seconds = time.perf_counter() - started
    assert math.isfinite(due.max())
    return 1e9 * seconds / steps
