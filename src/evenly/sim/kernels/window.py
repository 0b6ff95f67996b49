"""The threshold policy while its threshold stays: a short loop for the three levels where nearly all happens.

A green token belongs to a pool below the threshold, and most of these lack one task. So tasks arrive at pools
with threshold - 2 to threshold tasks, as a rule, and depart from pools with threshold - 1 to threshold + 1. These
change three counts, which the loop keeps in registers. It decides without branches: whether a task arrives or
departs cannot be predicted, and a processor that guesses wrong loses more time than both cases take.

It stops before an event that needs more: another level, a change of the threshold or of the fullest pool, or an
arrival without a token. `evenly.sim.kernels.aggregate` then makes a plain step. The loop writes no records but the
counts of messages: it logs the three counts and the time of each event, and `evenly.sim.kernels.writeup` makes
the records from that.

Paper: Sec. 2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenly.sim.kernels.aggregate import step
from evenly.sim.kernels.jit import inlined, kernel
from evenly.sim.kernels.ledger import Book, Record
from evenly.sim.kernels.levels import at
from evenly.sim.kernels.rng import BUFFER, Streams, refill_choices, refill_events
from evenly.sim.kernels.writeup import EXACT, RATES, SEGMENT, Log, write_up

_WORTHWHILE = 8  # events; a window with fewer costs more than it saves
_LONGEST_PAUSE = 256


@kernel
def advance(
    rules: Record,
    state: Record,
    book: Book,
    streams: Streams,
    ranks: NDArray[np.int64],
    log: Log,
    until: float,
    budget: int,
) -> None:
    """Simulate up to the time `until`, for at most `budget` events and while the book has room.

    The same as `evenly.sim.kernels.aggregate.advance`, for the threshold policy under a constant load.
    """
    pools, service_rate, learning = rules.pools, rules.service_rate, rules.learning != 0
    peak, mean_service = pools * service_rate * (rules.load + rules.amplitude), 1.0 / service_rate
    at_least = book.at_least
    holding, events, choices = streams.holding, streams.events, streams.choices
    rates, times = log.rates, log.times
    log_low, log_mid, log_high = log.low, log.mid, log.high
    first = _prepared(log, peak, service_rate, state.total)
    pause = 1  # plain steps until the window is tried again: more and more while it does not help
    while state.next_time <= until and budget > 0:
        threshold = state.threshold
        if first > max(state.total - SEGMENT, 0) or state.total + SEGMENT >= first + RATES:
            first = _prepared(log, peak, service_rate, state.total)
        # An arrival changes the threshold, or has no token, unless the counts are within these.
        least_mid, most_high = (rules.fall_at + 1, pools - 2) if learning else (1, pools - 1)
        above = 0  # sum of the counts above the three
        for level in range(threshold + 2, state.max_level + 1):
            above += at_least[at(level)]
        tasks_above = above + (threshold + 1) * at_least[at(threshold + 2)]
        empty = pools - at_least[at(max(threshold - 2, 0))]  # pools below the three levels
        low, mid, high = at_least[at(max(threshold - 1, 0))], at_least[at(threshold)], at_least[at(threshold + 1)]

        place = 0
        begin, choice, tasks = state.position, state.choice_position, state.total - first
        time, next_time, rate = state.time, state.next_time, state.rate
        end = min(SEGMENT, BUFFER - begin, budget)
        if threshold < 1 or threshold >= rules.capacity or state.gap >= EXACT or state.squares >= EXACT:
            end = 0
        from_mid = from_high = 0  # departures from pools with at least `threshold` tasks, or one more
        times[0] = state.since
        while place < end and next_time <= until and choice < BUFFER:
            log_low[at(place)], log_mid[at(place)], log_high[at(place)] = low, mid, high
            mark = events[at(begin + place)] * rate
            arrives = int(mark < peak)
            departs = 1 - arrives
            green = pools - mid
            task = int((mark - peak) * mean_service)  # that departs, counted from the fullest pools down
            fuller = above + high
            to_high = arrives - (arrives & int(green > 0))
            departs_high = departs & int(task < (threshold + 1) * high + above)
            # Each of these is negative if the event needs more than the loop can do.
            arrival = (mid - least_mid) | (most_high - high)
            departure = ((threshold - 1) * low + mid + fuller - 1 - task) | (task - tasks_above) | (mid - 2)
            fullest = high - to_high - 2 * departs_high
            if ((departure if arrives == 0 else arrival) | fullest) < 0:
                break
            to_low = 0
            if low < pools:  # rarely, so this is a branch: the next event would have to wait for the rank
                rank = int(choices[at(choice)] * green)  # of the pool whose green token is used
                if arrives & int(rank < empty):
                    break
                to_low = arrives & int(low + rank < pools)
            departs_mid = departs & int(task < threshold * mid + fuller)
            high += to_high - departs_high
            mid += arrives - to_low - to_high - (departs_mid - departs_high)
            low += to_low - (departs - departs_mid)
            from_mid += departs_mid
            from_high += departs_high
            choice += arrives
            tasks += arrives - departs
            time = next_time
            place += 1
            times[at(place)] = time
            rate = rates[at(tasks)]
            # Behind the end of the buffer, `_refill` corrects it.
            next_time = time + holding[at((begin + place) & (BUFFER - 1))] / rate
        if place > 0:
            log_low[at(place)], log_mid[at(place)], log_high[at(place)] = low, mid, high
            write_up(rules, state, book, log, place)
            state.time, state.next_time, state.rate, state.since = time, next_time, rate, time
            state.position, state.choice_position = begin + place, choice
            _count(state, first + tasks, place, low - at_least[at(threshold - 1)], from_mid, from_high)
            _move(state, book, low, mid, high)
            _refill(rules, state, streams)
            budget -= place
        if place == 0 or (place < end and state.choice_position > 0 and state.next_time <= until):
            pause = 1 if place >= _WORTHWHILE else min(2 * pause, _LONGEST_PAUSE)
            before = state.events
            if not step(rules, state, book, streams, ranks, until, min(pause, budget)):
                return
            budget -= state.events - before
    if budget > 0:
        state.time = until


@inlined
def _refill(rules: Record, state: Record, streams: Streams) -> None:
    """Draw new random numbers where all have been used, so that the loop can go on."""
    if state.choice_position == BUFFER:
        refill_choices(streams)
        state.choice_position = 0
    if state.position == BUFFER:
        refill_events(streams, rules.mean_holding != 0)
        state.position = 0
        state.next_time = state.time + streams.holding[0] / state.rate


@kernel
def _prepared(log: Log, peak: float, service_rate: float, total: int) -> int:
    """Fill the table of rates, unless it has them; return the number of tasks at which it begins.

    A rate is one look into the table, which is faster than the two operations that make it.
    """
    first, last, rates = log.first[0], log.first[0] + RATES - 1, log.rates
    if (
        not (first <= max(total - SEGMENT, 0) and total + SEGMENT <= last)
        or rates[0] != peak + first * service_rate
        or rates[RATES - 1] != peak + last * service_rate
    ):
        first = max(total - RATES // 2, 0)
        log.first[0] = first
        for place in range(RATES):
            rates[at(place)] = peak + (first + place) * service_rate
    return int(first)


@inlined
def _count(state: Record, total: int, done: int, gained: int, from_mid: int, from_high: int) -> None:
    """Add the events to the counters; `gained` is the change of the lowest count.

    Departures are the events that an increase of the total leaves over. A pool that is two tasks below the
    threshold replaces the green token that its arrival used.
    """
    arrivals = (done + total - state.total) // 2
    state.green += from_mid - from_high + gained + (done - arrivals - from_mid)
    state.yellow += from_high
    state.arrivals += arrivals
    state.events += done
    state.total = total


@inlined
def _move(state: Record, book: Book, low: int, mid: int, high: int) -> None:
    """Take the new counts, and keep what depends on them."""
    level = state.threshold - 1
    for count in (low, mid, high):
        before, full = book.at_least[at(level)], book.full[at(level)]
        change = count - before
        state.squares += (2 * level - 1) * change
        state.gap += (np.float64(count) - full) ** 2 - (np.float64(before) - full) ** 2
        book.at_least[at(level)] = count
        level += 1
