"""Classes of pools of different sizes: their level counts, and the choice of a pool by a table of priorities.

A policy is a table of priorities: `priority[c, x]` is that of the next task of a pool of class c with x tasks, and
falls with x. It is the marginal utility, the negative number of tasks, or that number per size. The threshold
policies cut through the sorted priorities, as `evenly.core.cut` does: tests compare the two event by event.

Pools of a class are ranked by their tasks, from the emptiest. A choice is a class and a rank in it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenly.sim.kernels.jit import inlined, kernel
from evenly.sim.kernels.ledger import Book, Record

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


class Choice(NamedTuple):
    """Class and rank of a task's pool; whether a green token led there; and the step that the cut then takes."""

    c: int
    rank: int
    guided: bool
    step: int


@inlined
def level_of_rank(table: ClassTable, c: int, rank: int) -> int:
    """Return the tasks of the pool with this rank in its class."""
    row, count = table.at_least[c], table.pools[c]
    level = table.lowest[c]
    while count - row[level + 1] <= rank:
        level += 1
    return int(level)


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
    """Return class and rank of a pool below its bound, by its rank among these: by class, then by tasks."""
    c = 0
    held = table.pools[0] - table.at_least[0, bounds[0]]
    while rank >= held:
        rank -= held
        c += 1
        held = table.pools[c] - table.at_least[c, bounds[c]]
    return c, rank


@kernel
def _pool_of_rank(table: ClassTable, rank: int) -> tuple[int, int]:
    """Return class and rank of a pool by its rank among all: by class, then by tasks."""
    c = 0
    while rank >= table.pools[c]:
        rank -= table.pools[c]
        c += 1
    return c, rank


@kernel
def _pool_of_highest_priority(table: ClassTable, uniform: float) -> tuple[int, int]:
    """Return class and rank of a pool whose next task has the highest priority."""
    best, held = -math.inf, 0
    for c in range(table.pools.size):
        level = table.lowest[c]
        priority = table.priority[c, level]
        if priority > best:
            best, held = priority, 0
        if priority == best:
            held += table.pools[c] - table.at_least[c, level + 1]
    rank, c = int(uniform * held), 0
    while True:
        level = table.lowest[c]
        held = table.pools[c] - table.at_least[c, level + 1] if table.priority[c, level] == best else 0
        if rank < held:
            return c, rank
        rank -= held
        c += 1


@kernel
def pool_in_turn(table: ClassTable) -> tuple[int, int]:
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
def class_of(table: ClassTable, pool: int) -> int:
    """Return the class of a pool by its number."""
    c = 0
    while c + 1 < table.first.size and table.first[c + 1] <= pool:
        c += 1
    return c


@inlined
def choose(rules: Record, state: Record, table: ClassTable, uniform: float) -> Choice:
    """Choose the pool of a task by a uniform, unless pools are taken in turn."""
    guided, step = False, 0
    if rules.policy == HIGHEST:
        c, rank = _pool_of_highest_priority(table, uniform)
    elif rules.policy == ANY:
        c, rank = _pool_of_rank(table, int(uniform * rules.pools))
    else:
        green, yellow = tokens(table, table.lower), tokens(table, table.upper)
        if green > 0:
            c, rank = _pool_below(table, table.lower, int(uniform * green))
        elif yellow > 0:
            c, rank = _pool_below(table, table.upper, int(uniform * yellow))
        else:
            c, rank = _pool_of_rank(table, int(uniform * rules.pools))
            state.without_token += 1
        guided = green > 0
        # Learning looks at the counts right before the arrival; it acts right after the dispatch.
        if rules.learning != 0:
            step = int(yellow <= 1) - int(rules.pools - green <= rules.fall_at)
    return Choice(c, rank, guided, step)


@inlined
def add_to_class(state: Record, table: ClassTable, c: int, level: int) -> None:
    """Record that a pool of a class with `level - 1` tasks gets one more."""
    table.at_least[c, level] += 1
    table.area[c, level] -= state.time
    table.total[c] += 1
    table.highest[c] = max(table.highest[c], level)
    if level == table.lowest[c] + 1 and table.at_least[c, level] == table.pools[c]:
        table.lowest[c] = level


@inlined
def remove_from_class(rules: Record, state: Record, table: ClassTable, c: int, level: int) -> None:
    """Record that a pool of a class with `level` tasks loses one, and count the token that it sends."""
    table.at_least[c, level] -= 1
    table.area[c, level] += state.time
    table.total[c] -= 1
    table.lowest[c] = min(table.lowest[c], level - 1)
    if level == table.highest[c] and table.at_least[c, level] == 0:
        table.highest[c] -= 1
    if rules.policy == CUT:
        state.green += int(level == table.lower[c])
        state.yellow += int(level == table.upper[c] and level > table.lower[c])


@inlined
def is_full(state: Record, book: Book, table: ClassTable, level: int, step: int) -> bool:
    """Return whether the arrays lack room for another event, after a task made it `level` tasks in a pool."""
    top = table.at_least.shape[1] - 4
    full = level >= top or state.max_level + 3 >= book.at_least.size
    if step != 0:
        full = full or _most(table.upper) >= top or state.threshold + 3 >= book.threshold_time.size
        full = full or (book.path_time.size > 0 and state.path_length == book.path_time.size)
    return bool(full)


@kernel
def learn(state: Record, book: Book, table: ClassTable, step: int) -> None:
    """Move the cut, and record it."""
    book.threshold_time[state.threshold] += state.time - state.threshold_since
    state.threshold_since = state.last_change = state.time
    state.changes += 1
    state.threshold += step
    move_cut(state, table, step)
    if book.path_time.size > 0:
        book.path_time[state.path_length] = state.time
        book.path_value[state.path_length] = state.threshold
        state.path_length += 1


@kernel
def task_of_rank(table: ClassTable, task: int) -> tuple[int, int]:
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
