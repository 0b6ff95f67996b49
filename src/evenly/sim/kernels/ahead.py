"""Events drawn ahead, for a policy in Python to decide about: arrivals and departures, in the order of time.

Each task has a number while it is in the system, and the caller remembers the pool of each number.

With exponential times, arrivals and departures depend on the policy only by its losses. A lost task invalidates
what was drawn after it: `back_to` returns to it, and the next draw takes the same random numbers again. With other
service laws or arrivals, every task has its own end. Those of lost tasks are drawn too, and the caller ignores
them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenly.sim.kernels.clock import pace, switch
from evenly.sim.kernels.draws import Drawn, draw
from evenly.sim.kernels.given import Given, next_start
from evenly.sim.kernels.heap import push
from evenly.sim.kernels.jit import inlined, kernel
from evenly.sim.kernels.ledger import Record
from evenly.sim.kernels.rng import BUFFER, Streams, refill_events
from evenly.sim.kernels.session_events import ARRIVAL, NONE, next_arrival, take_session
from evenly.sim.kernels.wave import load_at

IntArray = NDArray[np.int64]
Floats = NDArray[np.float64]

NUMBER_BITS = 26  # of a task in a heap; its serial number, which breaks ties, has the other 37
_NUMBER_MASK = (1 << NUMBER_BITS) - 1


class Events(NamedTuple):
    """The events to come."""

    times: Floats
    tasks: IntArray  # the number of the task that departs, or -1 - the number of one that arrives
    positions: IntArray  # of the event in the buffers of random numbers
    ranks: IntArray  # of the task that departs, among all


class Tasks(NamedTuple):
    """The numbers of the tasks, up to the last event drawn; `numbers` lists those in use first, then the others.

    `due` is the time at which each ends, as a heap with `sessions`; empty if times are exponential.
    """

    total: IntArray  # one entry: numbers in use
    numbers: IntArray
    due: Floats
    sessions: IntArray


def new_events() -> Events:
    """Return room for as many events as the buffers of random numbers hold."""
    zeros = np.zeros(BUFFER, np.int64)
    return Events(np.zeros(BUFFER), zeros, zeros.copy(), zeros.copy())


@inlined
def _set_next(state: Record, streams: Streams) -> None:
    """Set the time of the next event; it is not known, and not before now, if the buffers are used up."""
    state.next_time = state.time
    if state.position < BUFFER:
        state.next_time += streams.holding[state.position] / state.rate


@inlined
def _renew(rules: Record, state: Record, streams: Streams) -> None:
    """Refill the buffers if they are used up, and find the time of the next event."""
    if state.position == BUFFER:
        refill_events(streams, rules.mean_holding != 0)
        state.position = 0
        state.next_time += streams.holding[0] / state.rate


@kernel
def draw_memoryless(
    rules: Record, state: Record, streams: Streams, tasks: Tasks, events: Events, until: float, most: int
) -> int:
    """Draw up to `most` events up to the time `until`, or to the end of the buffers. Return their number.

    The state moves past these events. Buffers that are used up are refilled by the next draw: until then, one can
    go back.
    """
    _renew(rules, state, streams)
    service_rate, numbers, total = rules.service_rate, tasks.numbers, tasks.total[0]
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
            rank = min(int((mark - peak) * mean_service), total - 1)
            total -= 1
            numbers[rank], numbers[total] = numbers[total], numbers[rank]
            events.tasks[count], events.ranks[count] = numbers[total], rank
            count += 1
        elif not wave or mark < rules.pools * service_rate * load_at(rules, state.time):  # an arrival
            events.tasks[count] = -1 - numbers[total]
            total += 1
            count += 1
        state.position += 1
        state.rate = peak + total * service_rate
        _set_next(state, streams)
    tasks.total[0] = total
    return count


@kernel
def back_to(
    rules: Record, state: Record, streams: Streams, tasks: Tasks, events: Events, lost: int, drawn: int
) -> None:
    """Go back to an event of the last draw, an arrival that was lost. `drawn` events were drawn."""
    numbers, total = tasks.numbers, tasks.total[0]
    for index in range(drawn - 1, lost, -1):
        if events.tasks[index] < 0:
            total -= 1
        else:
            rank = events.ranks[index]
            numbers[rank], numbers[total] = numbers[total], numbers[rank]
            total += 1
    total -= 1
    tasks.total[0] = total
    state.time = events.times[lost]
    state.position = events.positions[lost] + 1
    peak = rules.pools * rules.service_rate * (rules.load + rules.amplitude)
    state.rate = peak + total * rules.service_rate
    _set_next(state, streams)


@kernel
def draw_sessions(
    rules: Record,
    state: Record,
    streams: Streams,
    tasks: Tasks,
    drawn: Drawn,
    clock: Record,
    given: Given,
    events: Events,
    until: float,
    most: int,
) -> tuple[int, bool]:
    """Draw up to `most` events up to the time `until`. Return their number, and whether there are no more.

    If sessions are given, their times are taken instead of drawn.
    """
    replayed = given.starts.size > 0
    numbers, due, sessions, total = tasks.numbers, tasks.due, tasks.sessions, tasks.total[0]
    mean_service, rate = 1.0 / rules.service_rate, pace(rules)
    count, event = 0, ARRIVAL
    while count < most:
        event = take_session(rules, state, streams, clock, due, sessions, total, until)
        if event <= NONE:
            break
        if event >= 0:
            number = event & _NUMBER_MASK
            total -= 1
            numbers[total] = number
            events.tasks[count] = number
        else:
            service = given.durations[clock.serial] if replayed else draw(drawn.service) * mean_service
            clock.serial += 1
            number = numbers[total]
            push(due, sessions, total, state.time + service, (clock.serial << NUMBER_BITS) | number)
            total += 1
            events.tasks[count] = -1 - number
            if replayed:
                state.next_time = next_start(given, clock.serial)
            else:
                next_arrival(rules, state, clock, drawn.gaps, rate)
        events.times[count] = state.time
        count += 1
    tasks.total[0] = total
    return count, event == NONE


@kernel
def list_sessions(
    rules: Record, state: Record, streams: Streams, drawn: Drawn, clock: Record, given: Given, until: float
) -> bool:
    """Write down the sessions that begin up to the time `until`. Return False if room runs out before."""
    mean_service = 1.0 / rules.service_rate
    rate = pace(rules)
    while clock.serial < given.starts.size:
        while clock.next_switch <= min(state.next_time, until):
            switch(rules, state, streams, clock)
        if state.next_time > until:
            state.time = until
            return True
        state.time = state.next_time
        given.starts[clock.serial] = state.time
        given.durations[clock.serial] = draw(drawn.service) * mean_service
        clock.serial += 1
        next_arrival(rules, state, clock, drawn.gaps, rate)
    return False
