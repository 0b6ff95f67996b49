"""The kernel for pools of different sizes: exact simulation on the level counts of each class of pools.

Pools of one class with the same number of tasks are interchangeable, so that cost and memory do not grow with the
number of pools. Weighted round robin tells pools apart, and also stores the pool of every task.

A policy is a table of priorities: `priority[c, x]` is that of the next task of a pool of class c with x tasks, and
falls with x. It is the marginal utility, the negative number of tasks, or that number per size. The threshold
policies cut through the sorted priorities, as `evenly.core.cut` does: tests compare the two event by event.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenly.sim.kernels.integrals import part_of, pass_time
from evenly.sim.kernels.jit import inlined, kernel
from evenly.sim.kernels.ledger import Book, Record, add_task, remove_task
from evenly.sim.kernels.rng import BUFFER, Streams, next_choice, refill_events
from evenly.sim.kernels.wave import load_at

CUT, HIGHEST, ANY, IN_TURN = range(4)  # ways to dispatch: by tokens, by priority, at random, in turn

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


class ClassTable(NamedTuple):
    """The classes: one entry or one row each, by number of tasks."""

    pools: IntArray  # number of them
    first: IntArray  # number of the first pool, where pools are told apart
    size: FloatArray
    priority: FloatArray
    at_least: IntArray
    area: FloatArray  # see `evenly.sim.kernels.ledger`
    total: IntArray  # tasks
    lowest: IntArray  # fewest tasks of a pool
    highest: IntArray  # most tasks of a pool
    lower: IntArray  # green below this number of tasks
    upper: IntArray  # yellow below this number of tasks
    turn: FloatArray  # the next turn, in turns since the start
    served: IntArray  # the pool whose turn it is, by its number in the class
    tasks: IntArray  # of each pool, where pools are told apart; else empty
    owner: NDArray[np.int32]  # the pool of each task, likewise
    told: IntArray  # one entry: pools that were told of changes of their thresholds


@inlined
def _level_of_rank(row: IntArray, count: int, rank: int, lowest: int) -> int:
    """Return the tasks of the pool with this rank in its class, counted from the emptiest."""
    level = lowest
    while count - row[level + 1] <= rank:
        level += 1
    return level


@kernel
def _most(values: IntArray) -> int:
    most = 0
    for value in values:
        most = max(most, int(value))
    return most


@kernel
def tokens(table: ClassTable, bounds: IntArray) -> int:
    """Return the number of pools with fewer tasks than their class's bound."""
    held = 0
    for c in range(table.pools.size):
        held += table.pools[c] - table.at_least[c, bounds[c]]
    return held


@kernel
def _pool_below(table: ClassTable, bounds: IntArray, rank: int) -> tuple[int, int]:
    """Return class and tasks of a pool below its bound, by its rank among these: by class, then by tasks."""
    c = 0
    held = table.pools[0] - table.at_least[0, bounds[0]]
    while rank >= held:
        rank -= held
        c += 1
        held = table.pools[c] - table.at_least[c, bounds[c]]
    return c, _level_of_rank(table.at_least[c], table.pools[c], rank, table.lowest[c])


@kernel
def _pool_of_rank(table: ClassTable, rank: int) -> tuple[int, int]:
    """Return class and tasks of a pool by its rank among all: by class, then by tasks."""
    c = 0
    while rank >= table.pools[c]:
        rank -= table.pools[c]
        c += 1
    return c, _level_of_rank(table.at_least[c], table.pools[c], rank, table.lowest[c])


@kernel
def _pool_of_highest_priority(table: ClassTable, uniform: float) -> tuple[int, int]:
    best, held = -math.inf, 0
    for c in range(table.pools.size):
        level = table.lowest[c]
        priority = table.priority[c, level]
        if priority > best:
            best, held = priority, 0
        if priority == best:
            held += table.pools[c] - table.at_least[c, level + 1]
    rank, c = int(uniform * held), -1
    while rank >= 0:
        c += 1
        level = table.lowest[c]
        if table.priority[c, level] == best:
            rank -= table.pools[c] - table.at_least[c, level + 1]
    return c, table.lowest[c]


@kernel
def _pool_in_turn(table: ClassTable) -> tuple[int, int]:
    """Return the class whose turn is due first, and the number of the pool."""
    due, soonest = 0, math.inf
    for c in range(table.pools.size):
        time = table.turn[c] / (table.size[c] * table.pools[c])
        if time < soonest:
            due, soonest = c, time
    pool = table.first[due] + table.served[due]
    table.turn[due] += 1.0
    table.served[due] = (table.served[due] + 1) % table.pools[due]
    return due, pool


@kernel
def _task_of_rank(table: ClassTable, task: int) -> tuple[int, int]:
    """Return class and tasks of the pool of a task, counted by class, and from the fullest pools down."""
    c = 0
    while task >= table.total[c]:
        task -= table.total[c]
        c += 1
    level = table.highest[c]
    here = level * table.at_least[c, level]
    while task >= here:
        task -= here
        level -= 1
        here = level * (table.at_least[c, level] - table.at_least[c, level + 1])
    return c, level


@kernel
def move_cut(state: Record, table: ClassTable, step: int) -> None:
    """Move the cut to the next place in the order of priorities or to the one before, and count the answers."""
    value = math.inf * -step
    for c in range(table.pools.size):
        if step > 0:
            value = max(value, table.priority[c, table.upper[c]])
        elif table.lower[c] > 0:
            value = min(value, table.priority[c, table.lower[c] - 1])
    for c in range(table.pools.size):
        lower, upper = table.lower[c], table.upper[c]
        row, count = table.at_least[c], table.pools[c]
        if step > 0:
            table.lower[c] = upper
            table.upper[c] = upper + int(table.priority[c, upper] == value)
            state.resync += row[upper] - row[table.upper[c]]
        else:
            table.upper[c] = lower
            table.lower[c] = lower - int(lower > 0 and table.priority[c, max(lower - 1, 0)] == value)
            if table.lower[c] < lower:
                state.resync += count - row[table.lower[c]]
        if table.lower[c] != lower or table.upper[c] != upper:
            table.told[0] += count


@kernel
def advance(
    rules: Record, state: Record, book: Book, streams: Streams, table: ClassTable, until: float, budget: int
) -> None:
    """Simulate up to the time `until`, for at most `budget` events and while the arrays have room."""
    way, pools, service_rate = rules.policy, rules.pools, rules.service_rate
    peak = pools * service_rate * (rules.load + rules.amplitude)
    wave = rules.amplitude != 0.0
    mean_service = 1.0 / service_rate
    at_least, full, area, max_time = book.at_least, book.full, book.area, book.max_time
    holding, events, choices = streams.holding, streams.events, streams.choices
    path_time, path_value = book.path_time, book.path_value
    counts, areas = table.at_least, table.area
    top_level = counts.shape[1] - 4
    last_event = state.events + budget
    edge, part = math.floor(rules.load) + 1, part_of(pools, rules.load)

    while state.next_time <= until and state.events < last_event and state.max_level + 3 < at_least.size:
        state.time = state.next_time
        mark = events[state.position] * state.rate
        load = load_at(rules, state.time)
        # Under a wave, arrivals are proposed at the peak rate, and some of them rejected.
        rejected = wave and mark < peak and mark >= pools * service_rate * load
        if not rejected:
            pass_time(rules, state, book, edge, part, load)
        if mark >= peak:  # a departure
            state.events += 1
            task = min(int((mark - peak) * mean_service), state.total - 1)
            if way == IN_TURN:
                pool = table.owner[task]
                table.owner[task] = table.owner[state.total - 1]
                c = 0
                while c + 1 < table.first.size and table.first[c + 1] <= pool:
                    c += 1
                level = table.tasks[pool]
                table.tasks[pool] = level - 1
            else:
                c, level = _task_of_rank(table, task)
            counts[c, level] -= 1
            areas[c, level] += state.time
            table.total[c] -= 1
            table.lowest[c] = min(table.lowest[c], level - 1)
            if level == table.highest[c] and counts[c, level] == 0:
                table.highest[c] -= 1
            remove_task(state, at_least, full, area, max_time, level)
            if way == CUT:
                state.green += int(level == table.lower[c])
                state.yellow += int(level == table.upper[c] and level > table.lower[c])
        elif not rejected:  # an arrival
            state.events += 1
            state.arrivals += 1
            step = 0
            if way == IN_TURN:
                c, pool = _pool_in_turn(table)
                level = table.tasks[pool]
                table.tasks[pool] = level + 1
                table.owner[state.total] = pool
            elif way == HIGHEST:
                c, level = _pool_of_highest_priority(table, next_choice(state, streams, choices))
            elif way == ANY:
                c, level = _pool_of_rank(table, int(next_choice(state, streams, choices) * pools))
            else:
                uniform = next_choice(state, streams, choices)
                green, yellow = tokens(table, table.lower), tokens(table, table.upper)
                if green > 0:
                    c, level = _pool_below(table, table.lower, int(uniform * green))
                    state.green += int(level + 1 < table.lower[c])  # the pool replaces the token just used
                elif yellow > 0:
                    c, level = _pool_below(table, table.upper, int(uniform * yellow))
                else:
                    c, level = _pool_of_rank(table, int(uniform * pools))
                    state.without_token += 1
                # Learning looks at the counts right before the arrival; it acts right after the dispatch.
                if rules.learning != 0:
                    step = int(yellow <= 1) - int(pools - green <= rules.fall_at)
            level += 1
            counts[c, level] += 1
            areas[c, level] -= state.time
            table.total[c] += 1
            if level > table.highest[c]:
                table.highest[c] = level
                if level >= top_level:
                    last_event = state.events
            if level == table.lowest[c] + 1 and counts[c, level] == table.pools[c]:
                table.lowest[c] = level
            add_task(state, at_least, full, area, max_time, level)
            if way == IN_TURN and state.total >= table.owner.size:
                last_event = state.events
            if step != 0:
                book.threshold_time[state.threshold] += state.time - state.threshold_since
                state.threshold_since = state.last_change = state.time
                state.changes += 1
                state.threshold += step
                move_cut(state, table, step)
                if _most(table.upper) >= top_level or state.threshold + 3 >= book.threshold_time.size:
                    last_event = state.events
                if path_time.size > 0:
                    path_time[state.path_length] = state.time
                    path_value[state.path_length] = state.threshold
                    state.path_length += 1
                    if state.path_length == path_time.size:
                        last_event = state.events
        state.position += 1
        if state.position == BUFFER:
            refill_events(streams, rules.mean_holding != 0)
            state.position = 0
        state.rate = peak + state.total * service_rate
        state.next_time = state.time + holding[state.position] / state.rate
    if state.next_time > until and state.events < last_event:
        state.time = until
