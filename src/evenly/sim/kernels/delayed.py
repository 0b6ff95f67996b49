"""The delayed kernel: every pool and every message, where tasks and messages take time to arrive.

A second implementation of the protocol in `evenly.core.protocol`, without its losses and restarts: tests drive
both with the same random numbers and compare them event by event. Tokens are kept in the order of
`evenly.core.PoolSet`. The other policies rank the pools by what the dispatcher knows about them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenly.sim.kernels.flight import Flight, push, refill_delays, take
from evenly.sim.kernels.jit import inlined, kernel
from evenly.sim.kernels.ledger import (
    Book,
    PolicyCode,
    Record,
    add_task,
    distance,
    load_at,
    part_of,
    remove_task,
    settle,
    spread,
    wave_area,
)
from evenly.sim.kernels.rng import BUFFER, Streams, next_choice, refill_choices, refill_events

_THRESHOLD = int(PolicyCode.THRESHOLD)
_JSQ = int(PolicyCode.JSQ)
_POWER_OF_D = int(PolicyCode.POWER_OF_D)
_STALE = int(PolicyCode.STALE_REPORTS)

# The kinds of what is on the way, and the numbers that each brings.
_TASK = 0
_REPORT = 1  # tasks, arrivals, sequence number, epoch
_NOTICE = 2  # threshold, epoch
_DEPARTURE = 3
_COUNT = 4  # tasks, sequence number
_POLL = 5  # which poll, which of its pools
_ANSWER = 6  # which poll, which of its pools, tasks

_CLOCK, _MESSAGE, _TASK_ARRIVES, _REGULAR = 0, 1, 2, 3  # what happens next

IntArray = NDArray[np.int64]
ShortArray = NDArray[np.int32]

NETWORK = np.dtype(
    [
        ("delay", np.float64),
        ("exponential", np.int64),
        ("interval", np.float64),  # between two reports of a pool
        ("next_report", np.float64),  # when the next pool reports
        ("flying", np.int64),  # messages and tasks on the way
        ("head", np.int64),  # place of the next one
        ("serial", np.int64),
        ("travel_position", np.int64),
        ("signal_position", np.int64),
        ("green", np.int64),  # tokens
        ("yellow", np.int64),
        ("epoch", np.int64),
        ("unsettled", np.int64),  # pools that have not answered the last threshold change
        ("lowest", np.int64),  # estimate of any pool
        ("highest", np.int64),  # estimate or number of tasks of any pool so far
        ("polls", np.int64),  # under way
        # counters
        ("reports", np.int64),
        ("acknowledgements", np.int64),
    ]
)


class Parties(NamedTuple):
    """What each pool knows, and what the dispatcher knows about it."""

    tasks: IntArray
    owner: ShortArray  # the pool of each task
    arrived: IntArray  # tasks that have reached the pool
    sequence: IntArray  # reports sent
    threshold: IntArray  # the last that reached the pool
    epoch: IntArray
    estimate: IntArray  # the dispatcher's
    picks: IntArray
    heard: IntArray  # sequence number of the newest report
    answered: IntArray  # the last epoch that the pool has answered
    green: ShortArray  # tokens, and the place of a pool among them, -1 without
    green_place: ShortArray
    yellow: ShortArray
    yellow_place: ShortArray
    order: ShortArray  # pools by estimate, and the place of a pool among them
    place: ShortArray
    first: IntArray  # place of the first pool with this estimate or more
    polls: IntArray  # answers to come, best so far, which one, and the sampled pools; a row for each poll
    poll_free: IntArray  # rows that are not in use, as a stack


def new_parties(tasks: IntArray, owner: ShortArray, *, threshold: int, sampled: int, levels: int) -> Parties:
    """Return pools that have joined one after the other, with these tasks, all of them known to the dispatcher."""
    pools = tasks.size
    numbers = np.arange(pools, dtype=np.int32)
    green, yellow = np.flatnonzero(tasks < threshold), np.flatnonzero(tasks <= threshold)
    parties = Parties(
        tasks=tasks.astype(np.int64),
        owner=owner,
        arrived=np.zeros(pools, np.int64),
        sequence=np.zeros(pools, np.int64),
        threshold=np.full(pools, threshold, np.int64),
        epoch=np.zeros(pools, np.int64),
        estimate=tasks.astype(np.int64),
        picks=np.zeros(pools, np.int64),
        heard=np.zeros(pools, np.int64),
        answered=np.zeros(pools, np.int64),
        green=np.zeros(pools, np.int32),
        green_place=np.full(pools, -1, np.int32),
        yellow=np.zeros(pools, np.int32),
        yellow_place=np.full(pools, -1, np.int32),
        order=np.argsort(tasks, kind="stable").astype(np.int32),
        place=numbers.copy(),
        first=np.searchsorted(np.sort(tasks), np.arange(levels)).astype(np.int64),
        polls=np.zeros((64 if sampled else 0, 3 + sampled), np.int64),
        poll_free=np.arange(64 if sampled else 0, dtype=np.int64)[::-1].copy(),
    )
    for members, tokens, place in (
        (green, parties.green, parties.green_place),
        (yellow, parties.yellow, parties.yellow_place),
    ):
        tokens[: members.size] = members
        place[members] = np.arange(members.size)
    parties.place[parties.order] = numbers
    return parties


def grown_parties(parties: Parties, *, levels: int, tasks: int, polls: int, used: int) -> Parties:
    """Return the same parties with room for this many levels, tasks and polls, of which some are used."""
    rows = parties.polls.shape[0]
    more = max(polls - rows, 0)
    free = [np.arange(rows, rows + more)[::-1], parties.poll_free[: rows - used], np.zeros(used, np.int64)]
    return parties._replace(
        owner=np.concatenate([parties.owner, np.zeros(max(tasks - parties.owner.size, 0), np.int32)]),
        first=np.concatenate(
            [parties.first, np.full(max(levels - parties.first.size, 0), parties.tasks.size, np.int64)]
        ),
        polls=np.concatenate([parties.polls, np.zeros((more, parties.polls.shape[1]), np.int64)]),
        poll_free=np.concatenate(free),
    )


@inlined
def _put(tokens: ShortArray, place: ShortArray, held: int, pool: int) -> int:
    """Hold a token of the pool, and return how many are held."""
    if place[pool] < 0:
        place[pool] = held
        tokens[held] = pool
        held += 1
    return held


@inlined
def _drop(tokens: ShortArray, place: ShortArray, held: int, pool: int) -> int:
    """Discard the token of the pool, if there is one, and return how many are held."""
    gap = place[pool]
    if gap >= 0:
        held -= 1
        last = tokens[held]
        tokens[gap] = last
        place[last] = gap
        place[pool] = -1
    return held


@inlined
def _sort_token(net: Record, parties: Parties, threshold: int, pool: int) -> None:
    """Hold the tokens that the estimate calls for, and no others."""
    above = parties.estimate[pool] - threshold
    if above < 0:
        net.green = _put(parties.green, parties.green_place, net.green, pool)
    else:
        net.green = _drop(parties.green, parties.green_place, net.green, pool)
    if above <= 0:
        net.yellow = _put(parties.yellow, parties.yellow_place, net.yellow, pool)
    else:
        net.yellow = _drop(parties.yellow, parties.yellow_place, net.yellow, pool)


@inlined
def _rank_up(net: Record, parties: Parties, pool: int) -> None:
    """Move the pool one level up among the ranked."""
    order, place, first = parties.order, parties.place, parties.first
    level = parties.estimate[pool]
    parties.estimate[pool] = level + 1
    last = first[level + 1] - 1
    gap, other = place[pool], order[last]
    order[gap] = other
    place[other] = gap
    order[last] = pool
    place[pool] = last
    first[level + 1] = last
    if level == net.lowest and last == 0:
        net.lowest = level + 1
    net.highest = max(net.highest, level + 1)


@inlined
def _rank_down(net: Record, parties: Parties, pool: int) -> None:
    """Move the pool one level down among the ranked."""
    order, place, first = parties.order, parties.place, parties.first
    level = parties.estimate[pool]
    parties.estimate[pool] = level - 1
    start = first[level]
    gap, other = place[pool], order[start]
    order[gap] = other
    place[other] = gap
    order[start] = pool
    place[pool] = start
    first[level] = start + 1
    net.lowest = min(net.lowest, level - 1)


@inlined
def _travel(net: Record, flight: Flight) -> float:
    """Return how long the next task is on the way."""
    if net.exponential == 0:
        return float(net.delay)
    if net.travel_position == BUFFER:
        refill_delays(flight.travel)
        net.travel_position = 0
    net.travel_position += 1
    return float(net.delay * flight.travel.buffer[net.travel_position - 1])


@inlined
def _signal(net: Record, flight: Flight) -> float:
    """Return how long the next message is on the way."""
    if net.exponential == 0:
        return float(net.delay)
    if net.signal_position == BUFFER:
        refill_delays(flight.signal)
        net.signal_position = 0
    net.signal_position += 1
    return float(net.delay * flight.signal.buffer[net.signal_position - 1])


@inlined
def _send(net: Record, flight: Flight, due: float, kind: int, pool: int, a: int, b: int, c: int, d: int) -> None:
    """Send something that arrives at the time `due`."""
    slot = flight.free[flight.free.size - net.flying - 1]
    message = flight.message
    message[slot, 0] = kind
    message[slot, 1] = pool
    message[slot, 2] = a
    message[slot, 3] = b
    message[slot, 4] = c
    message[slot, 5] = d
    push(net, flight, due, slot)


@inlined
def _report(state: Record, net: Record, flight: Flight, parties: Parties, pool: int) -> None:
    """Let a pool report to the dispatcher."""
    parties.sequence[pool] += 1
    due = state.time + _signal(net, flight)
    _send(
        net,
        flight,
        due,
        _REPORT,
        pool,
        parties.tasks[pool],
        parties.arrived[pool],
        parties.sequence[pool],
        parties.epoch[pool],
    )


@kernel
def _rethreshold(state: Record, net: Record, flight: Flight, parties: Parties) -> None:
    """Rebuild the tokens for a new threshold, and send it to all pools."""
    net.epoch += 1
    net.green = 0
    net.yellow = 0
    pools = parties.tasks.size
    net.unsettled = pools
    parties.green_place[:] = -1
    parties.yellow_place[:] = -1
    for pool in range(pools):
        _sort_token(net, parties, state.threshold, pool)
        due = state.time + _signal(net, flight)
        _send(net, flight, due, _NOTICE, pool, state.threshold, net.epoch, 0, 0)


@kernel
def _adopt(
    state: Record, net: Record, flight: Flight, parties: Parties, pool: int, threshold: int, epoch: int
) -> None:
    """Let a pool take in a threshold and answer."""
    if epoch <= parties.epoch[pool]:
        return
    old, tasks = parties.threshold[pool], parties.tasks[pool]
    parties.threshold[pool] = threshold
    parties.epoch[pool] = epoch
    known = tasks <= old if threshold > old else (tasks == threshold and threshold == old - 1)
    if tasks <= threshold and not known:
        state.resync += 1
    else:
        net.acknowledgements += 1
    _report(state, net, flight, parties, pool)


@inlined
def _hear(
    state: Record, net: Record, parties: Parties, pool: int, tasks: int, arrived: int, sequence: int, epoch: int
) -> None:
    """Let the dispatcher take in a report."""
    if sequence <= parties.heard[pool]:
        return
    parties.heard[pool] = sequence
    parties.estimate[pool] = tasks + parties.picks[pool] - arrived
    _sort_token(net, parties, state.threshold, pool)
    if epoch == net.epoch and parties.answered[pool] < epoch:
        parties.answered[pool] = epoch
        net.unsettled -= 1


@inlined
def _dispatch(
    rules: Record, state: Record, book: Book, streams: Streams, net: Record, flight: Flight, parties: Parties
) -> int:
    """Pick a pool by its tokens, and adjust the threshold."""
    pools, green, yellow = rules.pools, net.green, net.yellow
    uniform = next_choice(state, streams, streams.choices)
    if green > 0:
        pool = parties.green[int(uniform * green)]
    elif yellow > 0:
        pool = parties.yellow[int(uniform * yellow)]
    else:
        pool = int(uniform * pools)
        state.without_token += 1
    parties.picks[pool] += 1
    parties.estimate[pool] += 1
    _sort_token(net, parties, state.threshold, pool)
    if rules.learning != 0 and net.unsettled == 0:
        step = int(yellow <= 1) - int(pools - green <= rules.fall_at)
        threshold = state.threshold + step
        if step != 0 and 0 <= threshold <= rules.highest:
            book.threshold_time[state.threshold] += state.time - state.threshold_since
            state.threshold_since = state.time
            state.last_change = state.time
            state.threshold = threshold
            state.changes += 1
            if book.path_time.size > 0:
                book.path_time[state.path_length] = state.time
                book.path_value[state.path_length] = threshold
                state.path_length += 1
            _rethreshold(state, net, flight, parties)
    return int(pool)


@kernel
def _poll(
    rules: Record, state: Record, streams: Streams, net: Record, flight: Flight, parties: Parties, ranks: IntArray
) -> None:
    """Ask distinct random pools for their tasks."""
    if state.choice_position + ranks.size > BUFFER:
        refill_choices(streams)
        state.choice_position = 0
    row = parties.poll_free[parties.poll_free.size - net.polls - 1]
    net.polls += 1
    parties.polls[row, 0] = ranks.size
    for drawn in range(ranks.size):
        rank = int(streams.choices[state.choice_position] * (rules.pools - drawn))
        state.choice_position += 1
        # ranks[:drawn] is sorted; a draw among the pools that are left skips those already taken.
        index = 0
        while index < drawn and ranks[index] <= rank:
            rank += 1
            index += 1
        for place in range(drawn, index, -1):
            ranks[place] = ranks[place - 1]
        ranks[index] = rank
        parties.polls[row, 3 + drawn] = rank
        due = state.time + _signal(net, flight)
        _send(net, flight, due, _POLL, rank, row, drawn, 0, 0)


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
        due = state.time + _travel(net, flight)
        _send(net, flight, due, _TASK, poll[3 + poll[2]], 0, 0, 0, 0)


@inlined
def _begin(rules: Record, state: Record, book: Book, net: Record, flight: Flight, parties: Parties) -> None:
    """Let the next task arrive at its pool."""
    pool = flight.message[take(net, flight), 1]
    level = parties.tasks[pool] + 1
    parties.tasks[pool] = level
    parties.arrived[pool] += 1
    parties.owner[state.total] = pool
    net.highest = max(net.highest, level)
    add_task(state, book.at_least, book.full, book.area, book.max_time, level)
    if rules.policy == _THRESHOLD and level < parties.threshold[pool]:
        state.green += 1
        _report(state, net, flight, parties, pool)


@inlined
def _deliver(rules: Record, state: Record, net: Record, flight: Flight, parties: Parties) -> None:
    """Let the next message arrive."""
    slot = take(net, flight)
    message = flight.message
    kind, pool = message[slot, 0], message[slot, 1]
    a, b, c, d = message[slot, 2], message[slot, 3], message[slot, 4], message[slot, 5]
    if kind == _REPORT:
        _hear(state, net, parties, pool, a, b, c, d)
    elif kind == _NOTICE:
        _adopt(state, net, flight, parties, pool, a, b)
    elif kind == _DEPARTURE:
        _rank_down(net, parties, pool)
    elif kind == _COUNT:
        if b > parties.heard[pool]:
            parties.heard[pool] = b
            while parties.estimate[pool] < a:
                _rank_up(net, parties, pool)
            while parties.estimate[pool] > a:
                _rank_down(net, parties, pool)
    elif kind == _POLL:
        due = state.time + _signal(net, flight)
        _send(net, flight, due, _ANSWER, pool, a, b, parties.tasks[pool], 0)
    else:
        _polled(state, net, flight, parties, a, b, c)


@inlined
def _depart(
    rules: Record, state: Record, book: Book, net: Record, flight: Flight, parties: Parties, task: int
) -> None:
    """Finish a task, and let its pool report that if the policy wants it."""
    owner = parties.owner
    pool = owner[task]
    owner[task] = owner[state.total - 1]
    level = parties.tasks[pool]
    parties.tasks[pool] = level - 1
    remove_task(state, book.at_least, book.full, book.area, book.max_time, level)
    if rules.policy == _THRESHOLD:
        below = parties.threshold[pool] - level + 1
        if below == 0:
            state.yellow += 1
            _report(state, net, flight, parties, pool)
        elif below > 0:
            state.green += 1
            _report(state, net, flight, parties, pool)
    elif rules.policy == _JSQ:
        _send(net, flight, state.time + _signal(net, flight), _DEPARTURE, pool, 0, 0, 0, 0)


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
) -> None:
    """Send a task on its way."""
    if rules.policy == _POWER_OF_D:
        _poll(rules, state, streams, net, flight, parties, ranks)
        return
    if rules.policy == _THRESHOLD:
        pool = _dispatch(rules, state, book, streams, net, flight, parties)
    else:
        uniform = next_choice(state, streams, streams.choices)
        if rules.policy == _JSQ:
            pool = parties.order[int(uniform * parties.first[net.lowest + 1])]
            _rank_up(net, parties, pool)
        elif rules.policy == _STALE:
            pool = parties.order[int(uniform * parties.first[net.lowest + 1])]
        else:
            pool = int(uniform * rules.pools)
    _send(net, flight, state.time + _travel(net, flight), _TASK, pool, 0, 0, 0, 0)


@kernel
def _count(state: Record, net: Record, flight: Flight, parties: Parties, pool: int) -> None:
    """Let a pool report its tasks, as it does at regular intervals, and set the time of the next report."""
    net.reports += 1
    parties.sequence[pool] += 1
    due = state.time + _signal(net, flight)
    _send(net, flight, due, _COUNT, pool, parties.tasks[pool], parties.sequence[pool], 0, 0)


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
    until: float,
    budget: int,
) -> None:
    """Simulate up to the time `until`, for at most `budget` events and while the arrays have room."""
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
            kind = _TASK_ARRIVES if flight.message[flight.slot[net.head], 0] == _TASK else _MESSAGE
        if net.next_report < time:
            time = net.next_report
            kind = _REGULAR
        full = (
            net.flying >= room
            or max(state.max_level, state.threshold) >= top
            or net.highest >= top_rank
            or state.total >= parties.owner.size
            or (ranks.size > 0 and net.polls >= parties.poll_free.size)
            or (book.path_time.size > 0 and state.path_length >= book.path_time.size)
        )
        if time > until or full or state.events >= last_event or deliveries <= 0:
            break
        state.time = time
        if kind == _MESSAGE:
            deliveries -= 1
            _deliver(rules, state, net, flight, parties)
            continue
        if kind == _REGULAR:
            deliveries -= 1
            _count(state, net, flight, parties, net.reports % pools)
            net.next_report = (net.reports + 1) * (net.interval / pools)
            continue
        if wave:
            state.gap_area += wave_area(rules, book.at_least, state.since, time)
        else:
            state.gap_area += distance(state.gap, book.at_least[edge], part) * (time - state.since)
        state.spread_area += spread(state.total, state.squares, pools) * (time - state.since)
        state.since = time
        if kind == _TASK_ARRIVES:
            deliveries -= 1
            _begin(rules, state, book, net, flight, parties)
            # Carry the rest of the unit exponential over to the new rate.
            left = streams.holding[state.position]
            if state.rate > 0.0:
                left = (state.next_time - time) * state.rate
            state.rate = peak + state.total * service_rate
            state.next_time = time + left / state.rate
            continue
        mark = streams.events[state.position] * state.rate
        if mark >= peak:
            state.events += 1
            _depart(
                rules, state, book, net, flight, parties, min(int((mark - peak) * mean_service), state.total - 1)
            )
        elif not wave or mark < pools * service_rate * load_at(rules, time):
            state.events += 1
            state.arrivals += 1
            _arrive(rules, state, book, streams, net, flight, parties, ranks)
        state.position += 1
        if state.position == BUFFER:
            refill_events(streams, False)
            state.position = 0
        state.rate = peak + state.total * service_rate
        state.next_time = time + streams.holding[state.position] / state.rate
    if time > until and not full:
        settle(rules, state, book, until)
