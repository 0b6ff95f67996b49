"""Records of what a policy in Python has decided.

Python writes down what changed at each event. This brings levels and integrals up to date, in the same order and
by the same sums as the other kernels.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenly.sim.kernels.given import watch_change, watch_time
from evenly.sim.kernels.integrals import part_of, pass_time
from evenly.sim.kernels.jit import inlined, kernel
from evenly.sim.kernels.ledger import Book, Record, add_task, remove_task
from evenly.sim.kernels.wave import load_at

IntArray = NDArray[np.int64]
Floats = NDArray[np.float64]
NOTHING = np.iinfo(np.int64).min  # happens: a task that would end now was lost when it came


class Changes(NamedTuple):
    """What happened, in order."""

    times: Floats
    steps: IntArray  # pool + 1 where a task arrives, -(pool + 1) where one departs, 0 if it is lost, or NOTHING
    thresholds: IntArray  # the policy's threshold after the event; empty if it has none


@kernel
def record(
    rules: Record,
    state: Record,
    book: Book,
    tasks: IntArray,
    changes: Changes,
    first: int,
    watch: Record,
    replayed: bool,
) -> int:
    """Record the changes from `first` on. Return the number done: fewer than all if the book is full.

    If sessions are given, the watch measures them.
    """
    times, steps, thresholds = changes
    watched = thresholds.size > 0
    at_least, full, area, max_time = book.at_least, book.full, book.area, book.max_time
    edge, part = math.floor(rules.load) + 1, part_of(rules.pools, rules.load)
    for index in range(first, times.size):
        step = steps[index]
        if step == NOTHING:
            continue
        top = max(state.max_level, thresholds[index]) if watched else state.max_level
        if top + 3 >= at_least.size or (book.path_time.size > 0 and state.path_length == book.path_time.size):
            return index
        state.time = times[index]
        pass_time(rules, state, book, edge, part, load_at(rules, state.time))
        if replayed:
            watch_time(watch, state, rules.pools)
        state.events += 1
        level = 0
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
        if replayed:
            watch_change(watch, at_least, state.total, rules.pools, level, -1 if step < 0 else 1)
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
