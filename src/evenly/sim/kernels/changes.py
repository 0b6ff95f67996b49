"""The compiled side of a run whose decisions are made in Python: events to come, and records of what was decided.

Without losses, arrivals and departures do not depend on the policy, so a batch of them is drawn ahead. Python then
decides about them one by one and writes down what changed. A second pass brings levels and integrals up to date,
in the same order and by the same sums as the other kernels.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenly.sim.kernels.integrals import part_of, pass_time
from evenly.sim.kernels.jit import inlined, kernel
from evenly.sim.kernels.ledger import Book, Record, add_task, remove_task
from evenly.sim.kernels.rng import BUFFER, Streams, refill_events
from evenly.sim.kernels.wave import load_at

IntArray = NDArray[np.int64]
Floats = NDArray[np.float64]


class Events(NamedTuple):
    """The events to come, if no task is lost."""

    times: Floats
    tasks: IntArray  # which task departs; -1 for an arrival
    positions: IntArray  # of the event in the buffers of random numbers


class Changes(NamedTuple):
    """What happened, in order."""

    times: Floats
    steps: IntArray  # pool + 1 where a task arrives, -(pool + 1) where one departs, 0 if it is lost
    thresholds: IntArray  # the policy's threshold after the event; empty if it has none


def new_events() -> Events:
    """Return room for as many events as the buffers hold."""
    return Events(np.zeros(BUFFER), np.zeros(BUFFER, np.int64), np.zeros(BUFFER, np.int64))


@kernel
def draw(
    rules: Record, state: Record, streams: Streams, events: Events, total: int, until: float, most: int, back: int
) -> int:
    """Draw the events up to the time `until`, or to the end of the buffers, and return their number.

    `total` is the number of tasks now; `back` is as in `resume`. The state moves past these events. Buffers that
    are used up are refilled by the next call, or by `resume`: until then, one can go back.
    """
    resume(rules, state, streams, events, total, back)
    service_rate = rules.service_rate
    peak = rules.pools * service_rate * (rules.load + rules.amplitude)
    wave = rules.amplitude != 0.0
    mean_service = 1.0 / service_rate
    count = 0
    while state.next_time <= until and count < most and state.position < BUFFER:
        state.time = state.next_time
        mark = streams.events[state.position] * state.rate
        events.times[count] = state.time
        events.positions[count] = state.position
        if mark >= peak:  # a departure
            events.tasks[count] = min(int((mark - peak) * mean_service), total - 1)
            total -= 1
            count += 1
        elif not wave or mark < rules.pools * service_rate * load_at(rules, state.time):  # an arrival
            events.tasks[count] = -1
            total += 1
            count += 1
        state.position += 1
        state.rate = peak + total * service_rate
        if state.position < BUFFER:
            state.next_time = state.time + streams.holding[state.position] / state.rate
    return count


@kernel
def resume(rules: Record, state: Record, streams: Streams, events: Events, total: int, back: int) -> None:
    """Find the time of the next event, where the last call of `draw` did not or was wrong.

    Buffers that are used up are refilled. If `back` is not negative, the event there lost its task, and the next
    one follows it with `total` tasks.
    """
    if back >= 0:
        state.time = events.times[back]
        state.position = events.positions[back] + 1
        peak = rules.pools * rules.service_rate * (rules.load + rules.amplitude)
        state.rate = peak + total * rules.service_rate
    if state.position == BUFFER:
        refill_events(streams, rules.mean_holding != 0)
        state.position = 0
    elif back < 0:
        return
    state.next_time = state.time + streams.holding[state.position] / state.rate


@kernel
def record(rules: Record, state: Record, book: Book, tasks: IntArray, changes: Changes, first: int) -> int:
    """Record the changes from `first` on. Return the number done: fewer than all if the book is full."""
    times, steps, thresholds = changes
    watched = thresholds.size > 0
    at_least, full, area, max_time = book.at_least, book.full, book.area, book.max_time
    edge, part = math.floor(rules.load) + 1, part_of(rules.pools, rules.load)
    for index in range(first, times.size):
        top = max(state.max_level, thresholds[index]) if watched else state.max_level
        if top + 3 >= at_least.size or (book.path_time.size > 0 and state.path_length == book.path_time.size):
            return index
        state.time = times[index]
        pass_time(rules, state, book, edge, part, load_at(rules, state.time))
        state.events += 1
        step = steps[index]
        if step < 0:
            level = tasks[-step - 1]
            tasks[-step - 1] = level - 1
            remove_task(state, at_least, full, area, max_time, level)
        else:
            state.arrivals += 1
            if step == 0:
                state.lost += 1
            else:
                level = tasks[step - 1] + 1
                tasks[step - 1] = level
                add_task(state, at_least, full, area, max_time, level)
        if watched and thresholds[index] != state.threshold:
            _change_threshold(state, book, thresholds[index])
    return times.size


@inlined
def _change_threshold(state: Record, book: Book, threshold: int) -> None:
    book.threshold_time[state.threshold] += state.time - state.threshold_since
    state.threshold_since = state.last_change = state.time
    state.changes += 1
    state.threshold = threshold
    if book.path_time.size > 0:
        book.path_time[state.path_length] = state.time
        book.path_value[state.path_length] = threshold
        state.path_length += 1
