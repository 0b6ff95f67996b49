"""The session kernel: every open session and the time at which it ends, for any service law and arrival process.

Next-event simulation with a priority queue. For policies that look at numbers of tasks, the pools are kept in one
array in the order of their tasks, the fullest first: those with at least i tasks are the first at_least[i], so
that a uniform choice among the pools of some levels is one access. A pool that gains or loses a task changes
places with a pool at the edge of its level.

Another implementation of the rules, next to `evenly.core` and the kernels for exponential times: tests drive it
and the objects of `evenly.core` with the same random numbers and compare them event by event.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenly.sim.kernels.clock import pace
from evenly.sim.kernels.draws import Drawn, draw
from evenly.sim.kernels.given import Given, next_start, watch_change, watch_time
from evenly.sim.kernels.heap import POOL_BITS, POOL_MASK, push
from evenly.sim.kernels.integrals import part_of, pass_time
from evenly.sim.kernels.jit import inlined, kernel
from evenly.sim.kernels.ledger import Book, PolicyCode, Record, add_task, remove_task
from evenly.sim.kernels.levels import at
from evenly.sim.kernels.per_pool import PoolTable, discard_token, put_token
from evenly.sim.kernels.rng import Streams, distinct_rank, next_choice
from evenly.sim.kernels.session_events import NONE, next_arrival, take_session
from evenly.sim.kernels.wave import load_at

_THRESHOLD = int(PolicyCode.THRESHOLD)
_JSQ = int(PolicyCode.JSQ)
_POWER_OF_D = int(PolicyCode.POWER_OF_D)
_RANDOM = int(PolicyCode.RANDOM)
_ROUND_ROBIN = int(PolicyCode.ROUND_ROBIN)
_JBT = int(PolicyCode.JBT)
_PULL = int(PolicyCode.PULL)
_OBSERVED = int(PolicyCode.OBSERVED)

Floats = NDArray[np.float64]
IntArray = NDArray[np.int64]
ShortArray = NDArray[np.int32]


class Open(NamedTuple):
    """The open sessions, as a heap, and the pools in the order of their tasks."""

    due: Floats
    sessions: IntArray
    order: ShortArray
    place: ShortArray  # of a pool in `order`
    ranks: IntArray  # scratch space for power-of-d


@inlined
def exchange(order: ShortArray, place: ShortArray, pool: int, edge: int) -> None:
    """Swap the pool with the one at this place."""
    gap, other = place[at(pool)], order[at(edge)]
    order[at(gap)] = other
    place[at(other)] = gap
    order[at(edge)] = pool
    place[at(pool)] = edge


@inlined
def _sampled(state: Record, streams: Streams, open_: Open, tasks: IntArray, pools: int) -> int:
    """Return the least loaded of distinct random pools, on a tie the first sampled."""
    ranks = open_.ranks
    pool = -1
    for drawn in range(ranks.size):
        rank = distinct_rank(next_choice(state, streams, streams.choices), ranks, drawn, pools)
        other = open_.order[pools - 1 - rank]
        if pool < 0 or tasks[other] < tasks[pool]:
            pool = other
    return pool


@kernel
def _learn(rules: Record, state: Record, book: Book, step: int) -> None:
    """Change the threshold, and count the tokens that the pools send."""
    at_least = book.at_least
    book.threshold_time[state.threshold] += state.time - state.threshold_since
    state.threshold_since = state.last_change = state.time
    state.changes += 1
    state.threshold += step
    if step > 0:
        state.resync += at_least[state.threshold] - at_least[state.threshold + 1]
    else:
        state.resync += rules.pools - at_least[state.threshold]
    if book.path_time.size > 0:
        book.path_time[state.path_length] = state.time
        book.path_value[state.path_length] = state.threshold
        state.path_length += 1


@inlined
def _pick_by_tasks(
    rules: Record, state: Record, book: Book, streams: Streams, open_: Open, tasks: IntArray
) -> int:
    """Return the pool of a task, for policies that look at numbers of tasks."""
    pools, at_least = rules.pools, book.at_least
    if rules.policy == _POWER_OF_D:
        return _sampled(state, streams, open_, tasks, pools)
    candidates = pools
    if rules.policy == _THRESHOLD:
        green = pools - at_least[state.threshold]
        yellow = pools - at_least[state.threshold + 1]
        if green > 0:
            candidates = green
        elif yellow > 0:
            candidates = yellow
        else:
            state.without_token += 1
    elif rules.policy == _JSQ:
        candidates = pools - at_least[tasks[open_.order[pools - 1]] + 1]
    rank = int(next_choice(state, streams, streams.choices) * candidates)
    return int(open_.order[at(pools - 1 - rank)])


@inlined
def _take_token(rules: Record, state: Record, streams: Streams, table: PoolTable) -> int:
    """Return a random token, which is used up; -1 if there is none, or if the policy has none."""
    if rules.policy == _ROUND_ROBIN or state.tokens == 0:
        return -1
    token = table.tokens[int(next_choice(state, streams, streams.choices) * state.tokens)]
    discard_token(state, table.tokens, table.place, token)
    return int(token)


@inlined
def _pool_of(rules: Record, state: Record, streams: Streams, given: Given, number: int, token: int) -> int:
    """Return the pool of a task with this token, or without one; -1 if it is lost."""
    pool = token
    if rules.policy == _OBSERVED:
        pool = given.pools[number]
    elif rules.policy == _ROUND_ROBIN:
        pool = state.turn
        state.turn = (state.turn + 1) % rules.pools
    elif rules.policy == _PULL:
        pool = token // rules.capacity if token >= 0 else -1
    elif token < 0:
        pool = int(next_choice(state, streams, streams.choices) * rules.pools)
        state.without_token += 1
    return int(pool)


@inlined
def _depart(rules: Record, state: Record, book: Book, open_: Open, table: PoolTable, pool: int) -> int:
    """End a session of the pool, and return how many it had."""
    policy, capacity, tasks = rules.policy, rules.capacity, table.tasks
    level = tasks[at(pool)]
    tasks[at(pool)] = level - 1
    if policy <= _RANDOM:
        exchange(open_.order, open_.place, pool, book.at_least[at(level)] - 1)
    remove_task(state, book.at_least, book.full, book.area, book.max_time, level)
    if policy == _THRESHOLD:
        state.green += int(level == state.threshold)
        state.yellow += int(level == state.threshold + 1)
    elif policy == _JBT and level == rules.below:
        state.green += 1
        put_token(state, table.tokens, table.place, pool)
    elif policy == _PULL:
        state.green += 1
        put_token(state, table.tokens, table.place, pool * capacity + table.busy[pool * capacity + level - 1])
    return int(level)


@inlined
def _arrive(
    rules: Record,
    state: Record,
    book: Book,
    streams: Streams,
    open_: Open,
    table: PoolTable,
    clock: Record,
    given: Given,
    service: float,
) -> int:
    """Place a task that takes this long, and return how many its pool has then; 0 if it is lost."""
    policy, pools, capacity, tasks = rules.policy, rules.pools, rules.capacity, table.tasks
    at_least = book.at_least
    state.arrivals += 1
    step = 0
    token = -1
    level = 0
    if policy <= _RANDOM:
        if policy == _THRESHOLD and rules.learning != 0:
            # Learning looks at the counts right before the arrival; it acts right after the dispatch.
            step = int(pools - at_least[at(state.threshold + 1)] <= 1) - int(
                at_least[at(state.threshold)] <= rules.fall_at
            )
        guided = policy == _THRESHOLD and at_least[at(state.threshold)] < pools
        pool = _pick_by_tasks(rules, state, book, streams, open_, tasks)
        # A pool that stays below the threshold replaces the token just used.
        state.green += int(guided and tasks[at(pool)] + 1 < state.threshold)
    else:
        token = _take_token(rules, state, streams, table)
        pool = _pool_of(rules, state, streams, given, clock.serial - 1, token)
    lost = pool < 0 or tasks[at(pool)] == capacity
    if given.pools.size > 0:
        given.pools[clock.serial - 1] = -1 if lost else pool
    if lost:
        state.lost += 1
    else:
        level = tasks[at(pool)] + 1
        tasks[at(pool)] = level
        push(open_.due, open_.sessions, state.total, state.time + service, (clock.serial << POOL_BITS) | pool)
        if policy <= _RANDOM:
            exchange(open_.order, open_.place, pool, at_least[at(level)])
        add_task(state, at_least, book.full, book.area, book.max_time, level)
        if policy == _PULL:
            table.busy[pool * capacity + level - 1] = token % capacity
        elif policy == _JBT and token >= 0 and level < rules.below:
            state.green += 1
            put_token(state, table.tokens, table.place, pool)
    if step < 0 or (step > 0 and state.threshold < rules.highest):
        _learn(rules, state, book, step)
    return int(level)


@kernel
def advance(
    rules: Record,
    state: Record,
    book: Book,
    streams: Streams,
    open_: Open,
    drawn: Drawn,
    table: PoolTable,
    clock: Record,
    given: Given,
    watch: Record,
    until: float,
    budget: int,
) -> None:
    """Simulate up to the time `until`, for at most `budget` events and while the arrays have room."""
    mean_service, rate = 1.0 / rules.service_rate, pace(rules)
    replayed = given.starts.size > 0
    last_event = state.events + budget
    edge, part = math.floor(rules.load) + 1, part_of(rules.pools, rules.load)
    due, sessions = open_.due, open_.sessions
    top, room, path = book.at_least.size - 3, due.size, book.path_time.size
    while (
        state.events < last_event
        and max(state.max_level, state.threshold) < top
        and state.total < room
        and (path == 0 or state.path_length < path)
    ):
        event = take_session(rules, state, streams, clock, due, sessions, state.total, until)
        if event == NONE:
            state.time = until
        if event <= NONE:
            break
        pass_time(rules, state, book, edge, part, load_at(rules, state.time))
        if replayed:
            watch_time(watch, state, rules.pools)
        state.events += 1
        if event >= 0:
            level = _depart(rules, state, book, open_, table, event & POOL_MASK)
            step = -1
        else:
            service = given.durations[clock.serial] if replayed else draw(drawn.service) * mean_service
            clock.serial += 1
            level = _arrive(rules, state, book, streams, open_, table, clock, given, service)
            step = 1
            if replayed:
                state.next_time = next_start(given, clock.serial)
            else:
                next_arrival(rules, state, clock, drawn.gaps, rate)
        if replayed:
            watch_change(watch, book.at_least, state.total, rules.pools, level, step)
