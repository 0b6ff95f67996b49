"""The kernel for pools of different sizes: exact simulation on the level counts of each class of pools.

Pools of one class with the same number of tasks are interchangeable, so that cost and memory do not grow with the
number of pools. Weighted round robin tells pools apart, and also stores the pool of every task.
"""

from __future__ import annotations

import math

from evenly.sim.kernels.classes import (
    IN_TURN,
    ClassTable,
    add_to_class,
    choose,
    class_of,
    is_full,
    learn,
    level_of_rank,
    pool_in_turn,
    remove_from_class,
    task_of_rank,
)
from evenly.sim.kernels.integrals import part_of
from evenly.sim.kernels.jit import kernel
from evenly.sim.kernels.ledger import Book, Record, add_task, remove_task
from evenly.sim.kernels.proposals import ARRIVAL, draw_next, peak_rate, take_event
from evenly.sim.kernels.rng import Streams, next_choice


@kernel
def advance(
    rules: Record, state: Record, book: Book, streams: Streams, table: ClassTable, until: float, budget: int
) -> None:
    """Simulate up to the time `until`, for at most `budget` events and while the arrays have room."""
    peak, mean_service = peak_rate(rules), 1.0 / rules.service_rate
    in_turn = rules.policy == IN_TURN
    at_least, full, area, max_time = book.at_least, book.full, book.area, book.max_time
    last_event = state.events + budget
    edge, part = math.floor(rules.load) + 1, part_of(rules.pools, rules.load)
    while state.next_time <= until and state.events < last_event:
        event = take_event(rules, state, book, streams, peak, mean_service, edge, part)
        if event >= 0:  # a departure
            if in_turn:
                pool = table.owner[event]
                table.owner[event] = table.owner[state.total - 1]
                c, level = class_of(table, pool), table.tasks[pool]
                table.tasks[pool] = level - 1
            else:
                c, level = task_of_rank(table, event)
            remove_from_class(rules, state, table, c, level)
            remove_task(state, at_least, full, area, max_time, level)
        elif event == ARRIVAL:
            state.arrivals += 1
            step = 0
            if in_turn:
                c, pool = pool_in_turn(table)
                level = table.tasks[pool] + 1
                table.tasks[pool] = level
                table.owner[state.total] = pool
            else:
                c, rank, guided, step = choose(rules, state, table, next_choice(state, streams, streams.choices))
                level = level_of_rank(table, c, rank) + 1
                state.green += int(guided and level < table.lower[c])  # the pool replaces the token just used
            add_to_class(state, table, c, level)
            add_task(state, at_least, full, area, max_time, level)
            if step != 0:
                learn(state, book, table, step)
            if is_full(state, book, table, level, step) or (in_turn and state.total >= table.owner.size):
                last_event = state.events
        draw_next(rules, state, streams, peak)
    if state.next_time > until and state.events < last_event:
        state.time = until
