"""The session kernel for pools of different sizes: every open session, for any service law and arrival process.

The pools of each class are kept in the order of their tasks, the fullest first, class by class: see
`evenly.sim.kernels.sessions`.
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
    pool_in_turn,
    remove_from_class,
)
from evenly.sim.kernels.clock import pace
from evenly.sim.kernels.draws import Drawn, draw
from evenly.sim.kernels.heap import POOL_BITS, POOL_MASK, push
from evenly.sim.kernels.integrals import part_of, pass_time
from evenly.sim.kernels.jit import inlined, kernel
from evenly.sim.kernels.ledger import Book, Record, add_task, remove_task
from evenly.sim.kernels.rng import Streams, next_choice
from evenly.sim.kernels.session_events import NONE, next_arrival, take_session
from evenly.sim.kernels.sessions import Open, exchange
from evenly.sim.kernels.wave import load_at


@inlined
def _depart(rules: Record, state: Record, book: Book, open_: Open, table: ClassTable, pool: int) -> None:
    """End a session of the pool."""
    c, level = class_of(table, pool), table.tasks[pool]
    table.tasks[pool] = level - 1
    exchange(open_.order, open_.place, pool, table.first[c] + table.at_least[c, level] - 1)
    remove_from_class(rules, state, table, c, level)
    remove_task(state, book.at_least, book.full, book.area, book.max_time, level)


@inlined
def _arrive(
    rules: Record,
    state: Record,
    book: Book,
    streams: Streams,
    open_: Open,
    table: ClassTable,
    serial: int,
    service: float,
) -> bool:
    """Place a task that takes this long. Return True if the arrays lack room for another event."""
    state.arrivals += 1
    step = 0
    if rules.policy == IN_TURN:
        c, pool = pool_in_turn(table)
        level = table.tasks[pool] + 1
    else:
        c, rank, guided, step = choose(rules, state, table, next_choice(state, streams, streams.choices))
        pool = int(open_.order[table.first[c] + table.pools[c] - 1 - rank])
        level = table.tasks[pool] + 1
        state.green += int(guided and level < table.lower[c])  # the pool replaces the token just used
    table.tasks[pool] = level
    push(open_.due, open_.sessions, state.total, state.time + service, (serial << POOL_BITS) | pool)
    exchange(open_.order, open_.place, pool, table.first[c] + table.at_least[c, level])
    add_to_class(state, table, c, level)
    add_task(state, book.at_least, book.full, book.area, book.max_time, level)
    if step != 0:
        learn(state, book, table, step)
    return is_full(state, book, table, level, step) or state.total >= open_.due.size


@kernel
def advance(
    rules: Record,
    state: Record,
    book: Book,
    streams: Streams,
    open_: Open,
    drawn: Drawn,
    table: ClassTable,
    clock: Record,
    until: float,
    budget: int,
) -> None:
    """Simulate up to the time `until`, for at most `budget` events and while the arrays have room."""
    mean_service, rate = 1.0 / rules.service_rate, pace(rules)
    last_event = state.events + budget
    edge, part = math.floor(rules.load) + 1, part_of(rules.pools, rules.load)
    while state.events < last_event:
        event = take_session(rules, state, streams, clock, open_.due, open_.sessions, state.total, until)
        if event == NONE:
            state.time = until
        if event <= NONE:
            break
        pass_time(rules, state, book, edge, part, load_at(rules, state.time))
        state.events += 1
        if event >= 0:
            _depart(rules, state, book, open_, table, event & POOL_MASK)
        else:
            clock.serial += 1
            service = draw(drawn.service) * mean_service
            if _arrive(rules, state, book, streams, open_, table, clock.serial, service):
                last_event = state.events
            next_arrival(rules, state, clock, drawn.gaps, rate)
