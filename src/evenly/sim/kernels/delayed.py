"""The delayed kernel: every pool and every message, where tasks and messages take time to arrive.

A second implementation of the protocol in `evenly.core.protocol`, without its losses and restarts: tests drive
both with the same random numbers and compare them event by event.

Service times are exponential, so that the next departure is drawn; or sessions are given, and the open ones are
in a heap by the time at which they end.
"""

from __future__ import annotations

import math

from evenly.sim.kernels.flight import (
    ANSWER,
    COUNT,
    DEPARTURE,
    POLL,
    REPORT,
    TASK,
    Flight,
    delay,
    send,
    take,
)
from evenly.sim.kernels.given import Given, next_start, watch_change, watch_time
from evenly.sim.kernels.heap import POOL_BITS, POOL_MASK, pop, push
from evenly.sim.kernels.integrals import part_of, pass_time
from evenly.sim.kernels.jit import inlined, kernel
from evenly.sim.kernels.ledger import Book, PolicyCode, Record, add_task, remove_task
from evenly.sim.kernels.parties import IntArray, Parties, rank, rank_down, rank_up
from evenly.sim.kernels.protocol import dispatch, hear, report
from evenly.sim.kernels.rng import (
    BUFFER,
    Floats,
    Streams,
    distinct_rank,
    next_choice,
    refill_choices,
    refill_events,
)
from evenly.sim.kernels.wave import load_at

_THRESHOLD = int(PolicyCode.THRESHOLD)
_JSQ = int(PolicyCode.JSQ)
_POWER_OF_D = int(PolicyCode.POWER_OF_D)
_STALE = int(PolicyCode.STALE_REPORTS)

_CLOCK, _MESSAGE, _TASK_ARRIVES, _REGULAR = 0, 1, 2, 3  # what happens next


@kernel
def _poll(
    rules: Record,
    state: Record,
    streams: Streams,
    net: Record,
    flight: Flight,
    parties: Parties,
    ranks: IntArray,
    number: int,
) -> None:
    """Ask distinct random pools for their tasks, for the task of this number."""
    if state.choice_position + ranks.size > BUFFER:
        refill_choices(streams)
        state.choice_position = 0
    row = parties.poll_free[parties.poll_free.size - net.polls - 1]
    net.polls += 1
    parties.polls[row, 0] = ranks.size
    parties.poll_task[row] = number
    for drawn in range(ranks.size):
        sampled = distinct_rank(streams.choices[state.choice_position], ranks, drawn, rules.pools)
        state.choice_position += 1
        parties.polls[row, 3 + drawn] = sampled
        due = state.time + delay(net, flight.signal)
        send(net, flight, due, POLL, sampled, row, drawn, 0)


@inlined
def _polled(
    state: Record, net: Record, flight: Flight, parties: Parties, row: int, which: int, tasks: int
) -> None:
    """Take in an answer, and send the task once all have come: to the least loaded, on a tie the first sampled."""
    poll = parties.polls[row]
    first = poll[0] == poll.size - 3
    if first or tasks < poll[1] or (tasks == poll[1] and which < poll[2]):
        poll[1] = tasks
        poll[2] = which
    poll[0] -= 1
    if poll[0] == 0:
        net.polls -= 1
        parties.poll_free[parties.poll_free.size - net.polls - 1] = row
        due = state.time + delay(net, flight.travel)
        send(net, flight, due, TASK, poll[3 + poll[2]], parties.poll_task[row], 0, 0)


@inlined
def _begin(
    rules: Record,
    state: Record,
    book: Book,
    net: Record,
    flight: Flight,
    parties: Parties,
    due: Floats,
    sessions: IntArray,
    given: Given,
) -> int:
    """Let the next task arrive at its pool, and return how many that has then; 0 if the task is lost."""
    row = take(net, flight)
    pool, number = flight.message[row, 1], flight.message[row, 2]
    threshold, version = flight.message[row, 3], flight.message[row, 4]
    if version > parties.version[pool]:
        parties.version[pool] = version
        parties.threshold[pool] = threshold
    level = parties.tasks[pool] + 1
    parties.arrived[pool] += 1
    lost = level > rules.capacity
    if given.pools.size > 0:
        given.pools[number] = -1 if lost else pool
    if lost:
        state.lost += 1
        net.refusals += 1
        if rules.policy == _THRESHOLD:
            report(state, net, flight, parties, pool)
        elif rules.policy == _JSQ:
            send(net, flight, state.time + delay(net, flight.signal), DEPARTURE, pool, 0, 0, 0)
    else:
        parties.tasks[pool] = level
        if given.starts.size > 0:
            session = (net.begun << POOL_BITS) | pool
            net.begun += 1
            push(due, sessions, state.total, state.time + given.durations[number], session)
        else:
            parties.owner[state.total] = pool
        net.highest = max(net.highest, level)
        add_task(state, book.at_least, book.full, book.area, book.max_time, level)
    return 0 if lost else int(level)


@inlined
def _deliver(state: Record, net: Record, flight: Flight, parties: Parties) -> None:
    """Let the next message arrive."""
    slot = take(net, flight)
    message = flight.message
    kind, pool = message[slot, 0], message[slot, 1]
    a, b, c = message[slot, 2], message[slot, 3], message[slot, 4]
    if kind == REPORT:
        hear(net, parties, pool, a, b, c)
    elif kind == DEPARTURE:
        rank_down(net, parties, pool)
    elif kind == COUNT:
        if b > parties.heard[pool]:
            parties.heard[pool] = b
            rank(net, parties, pool, a)
    elif kind == POLL:
        due = state.time + delay(net, flight.signal)
        send(net, flight, due, ANSWER, pool, a, b, parties.tasks[pool])
    else:
        _polled(state, net, flight, parties, a, b, c)


@inlined
def _owner_of(state: Record, parties: Parties, task: int) -> int:
    """Take a task out of the list, and return its pool."""
    owner = parties.owner
    pool = owner[task]
    owner[task] = owner[state.total - 1]
    return int(pool)


@inlined
def _depart(
    rules: Record, state: Record, book: Book, net: Record, flight: Flight, parties: Parties, pool: int
) -> int:
    """Finish a task of the pool, which reports that if the policy wants it. Return how many it had."""
    level = parties.tasks[pool]
    parties.tasks[pool] = level - 1
    remove_task(state, book.at_least, book.full, book.area, book.max_time, level)
    if rules.policy == _THRESHOLD:
        below = parties.threshold[pool] - level + 1
        if below == 0:
            state.yellow += 1
            report(state, net, flight, parties, pool)
        elif below > 0:
            state.green += 1
            report(state, net, flight, parties, pool)
    elif rules.policy == _JSQ:
        send(net, flight, state.time + delay(net, flight.signal), DEPARTURE, pool, 0, 0, 0)
    return int(level)


@inlined
def _arrive(
    rules: Record,
    state: Record,
    book: Book,
    streams: Streams,
    net: Record,
    flight: Flight,
    parties: Parties,
    ranks: IntArray,
    given: Given,
    number: int,
) -> None:
    """Send the task of this number on its way. It is lost if the dispatcher knows that all pools are full."""
    threshold = version = 0
    if rules.policy == _POWER_OF_D:
        _poll(rules, state, streams, net, flight, parties, ranks, number)
        return
    if rules.policy == _THRESHOLD:
        pool = dispatch(rules, state, book, streams, net, parties)
        if pool < 0:
            state.lost += 1
            if given.pools.size > 0:
                given.pools[number] = -1
            return
        threshold, version = state.threshold, parties.picks[pool]
    else:
        uniform = next_choice(state, streams, streams.choices)
        if rules.policy in (_JSQ, _STALE):
            pool = parties.order[int(uniform * parties.first[net.lowest + 1])]
            if rules.policy == _JSQ:
                rank_up(net, parties, pool)
        else:
            pool = int(uniform * rules.pools)
    send(net, flight, state.time + delay(net, flight.travel), TASK, pool, number, threshold, version)


@kernel
def _count(state: Record, net: Record, flight: Flight, parties: Parties, pool: int) -> None:
    """Let a pool report its tasks, as it does at regular intervals."""
    net.reports += 1
    parties.sequence[pool] += 1
    due = state.time + delay(net, flight.signal)
    send(net, flight, due, COUNT, pool, parties.tasks[pool], parties.sequence[pool], 0)


@kernel
def advance(
    rules: Record,
    state: Record,
    book: Book,
    streams: Streams,
    net: Record,
    flight: Flight,
    parties: Parties,
    ranks: IntArray,
    due: Floats,
    sessions: IntArray,
    given: Given,
    watch: Record,
    until: float,
    budget: int,
) -> None:
    """Simulate up to the time `until`, for at most `budget` events and while the arrays have room."""
    replayed = given.starts.size > 0
    room_for_tasks = due.size if replayed else parties.owner.size
    pools, service_rate = rules.pools, rules.service_rate
    peak = pools * service_rate * (rules.load + rules.amplitude)
    wave = rules.amplitude != 0.0
    mean_service = 1.0 / service_rate
    last_event = state.events + budget
    deliveries = 4 * budget
    edge, part = math.floor(rules.load) + 1, part_of(pools, rules.load)
    room = flight.due.size - pools - ranks.size - 4
    top, top_rank = book.at_least.size - 3, parties.first.size - 3

    while True:
        time = state.next_time
        kind = _CLOCK
        if net.flying > 0 and flight.due[net.head] <= time:
            time = flight.due[net.head]
            kind = _TASK_ARRIVES if flight.message[flight.slot[net.head], 0] == TASK else _MESSAGE
        if net.next_report < time:
            time = net.next_report
            kind = _REGULAR
        full = (
            net.flying >= room
            or max(state.max_level, state.threshold) >= top
            or net.highest >= top_rank
            or state.total >= room_for_tasks
            or (ranks.size > 0 and net.polls >= parties.poll_free.size)
            or (book.path_time.size > 0 and state.path_length >= book.path_time.size)
        )
        if time > until or full or state.events >= last_event or deliveries <= 0:
            break
        state.time = time
        if kind == _MESSAGE:
            deliveries -= 1
            _deliver(state, net, flight, parties)
            continue
        if kind == _REGULAR:
            deliveries -= 1
            _count(state, net, flight, parties, net.reports % pools)
            net.next_report = (net.reports + 1) * (net.interval / pools)
            continue
        load = load_at(rules, time)
        mark = streams.events[state.position] * state.rate
        # Under a wave, arrivals are proposed at the peak rate, and some of them rejected.
        rejected = not replayed and wave and kind == _CLOCK and mark < peak and mark >= pools * service_rate * load
        if not rejected:
            pass_time(rules, state, book, edge, part, load)
        if replayed:
            watch_time(watch, state, pools)
        if kind == _TASK_ARRIVES:
            deliveries -= 1
            level = _begin(rules, state, book, net, flight, parties, due, sessions, given)
            if replayed:
                watch_change(watch, book.at_least, state.total, pools, level, 1)
                state.next_time = min(due[0] if state.total > 0 else math.inf, next_start(given, net.dispatched))
                continue
            # Carry the rest of the unit exponential over to the new rate.
            left = streams.holding[state.position]
            if state.rate > 0.0:
                left = (state.next_time - time) * state.rate
            state.rate = peak + state.total * service_rate
            state.next_time = time + left / state.rate
            continue
        if replayed:
            state.events += 1
            if state.total > 0 and due[0] == time:
                pool = sessions[0] & POOL_MASK
                pop(due, sessions, state.total)
                level = _depart(rules, state, book, net, flight, parties, pool)
                watch_change(watch, book.at_least, state.total, pools, level, -1)
            else:
                state.arrivals += 1
                _arrive(rules, state, book, streams, net, flight, parties, ranks, given, net.dispatched)
                net.dispatched += 1
            state.next_time = min(due[0] if state.total > 0 else math.inf, next_start(given, net.dispatched))
            continue
        if mark >= peak:
            state.events += 1
            task = min(int((mark - peak) * mean_service), state.total - 1)
            _depart(rules, state, book, net, flight, parties, _owner_of(state, parties, task))
        elif not rejected:
            state.events += 1
            state.arrivals += 1
            _arrive(rules, state, book, streams, net, flight, parties, ranks, given, 0)
        state.position += 1
        if state.position == BUFFER:
            refill_events(streams, False)
            state.position = 0
        state.rate = peak + state.total * service_rate
        state.next_time = time + streams.holding[state.position] / state.rate
    if time > until and not full and state.events < last_event:
        state.time = until
