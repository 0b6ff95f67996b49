"""The per-pool kernel: exact simulation of every pool, task and token, with a cost per event independent of n.

For policies that need identities: round-robin, join-below-threshold (join-idle-queue is threshold 1), pull.
Tokens are kept in an array in exactly the order of `evenly.core.PoolSet` (append; discard moves the last one into
the gap), so that kernel and core pick the same pool from the same random number.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenly.sim.kernels.integrals import part_of
from evenly.sim.kernels.jit import inlined, kernel
from evenly.sim.kernels.ledger import Book, PolicyCode, Record, add_task, remove_task
from evenly.sim.kernels.proposals import ARRIVAL, draw_next, peak_rate, take_event
from evenly.sim.kernels.rng import Streams, next_choice

_ROUND_ROBIN = int(PolicyCode.ROUND_ROBIN)
_JBT = int(PolicyCode.JBT)
_PULL = int(PolicyCode.PULL)

IntArray = NDArray[np.int64]
ShortArray = NDArray[np.int32]  # enough for ten million pools or slots, at half the memory


class PoolTable(NamedTuple):
    """Pools, tasks and tokens. A token is a pool; under pull, a slot of a pool (pool * capacity + slot)."""

    tasks: IntArray  # of each pool
    owner: ShortArray  # the pool of each task
    tokens: ShortArray
    place: ShortArray  # of a token in `tokens`; -1 when the dispatcher does not have it
    busy: ShortArray  # under pull, the taken slots of each pool as a stack


def new_pool_table(tasks: IntArray, policy: PolicyCode, *, threshold: int, capacity: int) -> tuple[PoolTable, int]:
    """Return pools that joined one after the other, with these tasks, and the number of tokens they sent."""
    slots = capacity if policy == PolicyCode.PULL else 0
    held = np.zeros(0, np.int64)
    if policy == PolicyCode.PULL:
        held = np.flatnonzero(np.arange(slots) >= tasks[:, np.newaxis])
    elif policy == PolicyCode.JBT:
        held = np.flatnonzero(tasks < threshold)
    universe = tasks.size * max(slots, 1)
    tokens = np.zeros(universe, np.int32)
    place = np.full(universe, -1, np.int32)
    tokens[: held.size] = held
    place[held] = np.arange(held.size)
    busy = np.tile(np.arange(slots, dtype=np.int32), tasks.size)
    return PoolTable(tasks.astype(np.int64), owners(tasks), tokens, place, busy), held.size


def owners(tasks: IntArray) -> ShortArray:
    """Return the pool of each task, with room for more. Works in place: there can be a hundred million tasks."""
    ends = np.cumsum(tasks)
    total = int(ends[-1])
    owners = np.zeros(total + max(1024, total // 8), np.int32)
    np.add.at(owners[:total], ends[ends < total], 1)
    np.cumsum(owners[:total], out=owners[:total])
    return owners


def grown_pool_table(table: PoolTable) -> PoolTable:
    """Return the same table with room for twice the tasks."""
    return table._replace(owner=np.concatenate([table.owner, np.zeros_like(table.owner)]))


@inlined
def put_token(state: Record, tokens: ShortArray, place: ShortArray, token: int) -> None:
    """Let the dispatcher hold a token."""
    place[token] = state.tokens
    tokens[state.tokens] = token
    state.tokens += 1


@inlined
def discard_token(state: Record, tokens: ShortArray, place: ShortArray, token: int) -> None:
    """Let the dispatcher use up a token; the last one moves into its place."""
    state.tokens -= 1
    last = tokens[state.tokens]
    gap = place[token]
    tokens[gap] = last
    place[last] = gap
    place[token] = -1


@kernel
def advance(
    rules: Record, state: Record, book: Book, streams: Streams, table: PoolTable, until: float, budget: int
) -> None:
    """Simulate up to the time `until`, for at most `budget` events and while the arrays have room."""
    policy, pools, capacity = rules.policy, rules.pools, rules.capacity
    peak, mean_service = peak_rate(rules), 1.0 / rules.service_rate
    at_least, full, area, max_time = book.at_least, book.full, book.area, book.max_time
    tasks, owner, tokens, place, busy = table.tasks, table.owner, table.tokens, table.place, table.busy
    last_event = state.events + budget
    edge, part = math.floor(rules.load) + 1, part_of(pools, rules.load)

    while (
        state.next_time <= until
        and state.events < last_event
        and state.max_level + 3 < at_least.size
        and state.total < owner.size
    ):
        event = take_event(rules, state, book, streams, peak, mean_service, edge, part)
        if event >= 0:  # a departure
            pool = owner[event]
            owner[event] = owner[state.total - 1]
            level = tasks[pool]
            tasks[pool] = level - 1
            remove_task(state, at_least, full, area, max_time, level)
            if policy == _JBT and level == rules.below:
                state.green += 1
                put_token(state, tokens, place, pool)
            elif policy == _PULL:
                state.green += 1
                put_token(state, tokens, place, pool * capacity + busy[pool * capacity + level - 1])
        elif event == ARRIVAL:
            state.arrivals += 1
            slot = -1
            if policy == _ROUND_ROBIN:
                pool = state.turn
                state.turn = (state.turn + 1) % pools
            elif state.tokens > 0:
                token = tokens[int(next_choice(state, streams, streams.choices) * state.tokens)]
                discard_token(state, tokens, place, token)
                pool = token // capacity if policy == _PULL else token
                slot = token % capacity
            elif policy == _PULL:
                pool = -1
            else:
                pool = int(next_choice(state, streams, streams.choices) * pools)
                state.without_token += 1
            if pool < 0 or tasks[pool] == capacity:
                state.lost += 1
            else:
                level = tasks[pool] + 1
                tasks[pool] = level
                owner[state.total] = pool
                add_task(state, at_least, full, area, max_time, level)
                if policy == _PULL:
                    busy[pool * capacity + level - 1] = slot
                elif policy == _JBT and slot >= 0 and level < rules.below:
                    state.green += 1
                    put_token(state, tokens, place, pool)
        draw_next(rules, state, streams, peak)
    if state.next_time > until and state.events < last_event:
        state.time = until
