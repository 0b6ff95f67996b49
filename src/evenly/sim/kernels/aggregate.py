"""The aggregate kernel: exact simulation on level counts, with cost and memory that do not grow with n.

Pools with the same number of tasks are interchangeable, so the counts `at_least` are a Markov chain by
themselves. A second implementation of the dispatching and learning rules, next to `evenly.core`: tests drive both
with the same random numbers and compare them event by event.

Paper: Sec. 2 and Sec. 4.1; the choice of a level from one uniform follows App. B.1.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from evenly.sim.kernels.integrals import distance, part_of, spread
from evenly.sim.kernels.jit import kernel
from evenly.sim.kernels.ledger import OMIT_IMBALANCE, OMIT_SPREAD, Book, PolicyCode, Record
from evenly.sim.kernels.levels import at, level_of_rank, level_of_task, update_tree
from evenly.sim.kernels.rng import BUFFER, FEW, Streams, distinct_rank, lowest_rank, refill_choices, refill_events
from evenly.sim.kernels.wave import load_at, swing

_THRESHOLD = int(PolicyCode.THRESHOLD)
_JSQ = int(PolicyCode.JSQ)
_POWER_OF_D = int(PolicyCode.POWER_OF_D)


@kernel
def lowest_of_sample(uniforms: NDArray[np.float64], ranks: NDArray[np.int64], pools: int) -> int:
    """Return the lowest of ranks.size distinct ranks, drawn uniformly; `ranks` is scratch space."""
    for drawn in range(ranks.size):
        distinct_rank(uniforms[drawn], ranks, drawn, pools)
    return int(ranks[0])


@kernel
def step(
    rules: Record,
    state: Record,
    book: Book,
    streams: Streams,
    ranks: NDArray[np.int64],
    until: float,
    budget: int,
) -> bool:
    """Simulate up to the time `until`, for at most `budget` events; return False if the book is full.

    One long loop over local variables, on purpose: everything that an event touches stays in registers.
    """
    policy, pools, capacity = rules.policy, rules.pools, rules.capacity
    learning, fall_at, highest = rules.learning != 0, rules.fall_at, rules.highest
    mean_holding, service_rate = rules.mean_holding != 0, rules.service_rate
    peak = pools * service_rate * (rules.load + rules.amplitude)
    wave, steepest = rules.amplitude != 0.0, rules.amplitude * rules.frequency
    mean_service = 1.0 / service_rate
    returning, margin, load = rules.returning, rules.margin, rules.load
    with_spread, with_gap = rules.omit & OMIT_SPREAD == 0, rules.omit & OMIT_IMBALANCE == 0

    at_least, tree, full, area = book.at_least, book.tree, book.full, book.area
    max_time, threshold_time = book.max_time, book.threshold_time
    path_time, path_value = book.path_time, book.path_value
    top_level = at_least.size - 3
    holding, events, choices = streams.holding, streams.events, streams.choices

    time, next_time, rate = state.time, state.next_time, state.rate
    total, max_level, threshold = state.total, state.max_level, state.threshold
    position, choice_position = state.position, state.choice_position
    green_sent, yellow_sent = state.green, state.yellow
    squares, since = state.squares, state.since
    gap, gap_area, spread_area = state.gap, state.gap_area, state.spread_area
    edge, part = math.floor(rules.load) + 1, part_of(pools, rules.load)
    arrivals = departures = 0

    while next_time <= until and arrivals + departures < budget:
        time = next_time
        mark = events[at(position)] * rate
        rejected = False  # a proposed arrival, while the load is below its peak
        if wave:
            # The load rises no faster than its steepest: that decides most rejections without a sine.
            bound = (state.load + steepest * (time - since)) * (1.0 + 1e-6)
            rejected = mark < peak and mark >= pools * service_rate * bound
            if not rejected:
                load = load_at(rules, time)
                rejected = mark < peak and mark >= pools * service_rate * load
            if not rejected:
                state.gap, state.since = gap, since
                gap_area += swing(rules, state, at_least, full, time, load)
                gap = state.gap
        elif with_gap:
            gap_area += distance(gap, at_least[at(edge)], part) * (time - since)
        if not rejected:
            if with_spread:
                spread_area += spread(total, squares, pools) * (time - since)
            since = time
        if mark >= peak:  # a departure
            departures += 1
            task = min(int((mark - peak) * mean_service), total - 1)
            level = level_of_task(at_least, tree, total, task, max_level)
            count = at_least[at(level)]
            gap += 1.0 - 2.0 * (count - full[at(level)])
            at_least[at(level)] = count - 1
            update_tree(tree, level, -1)
            area[at(level)] += time
            total -= 1
            squares -= 2 * level - 1
            green_sent += int(level == threshold)
            yellow_sent += int(level == threshold + 1)
            if count == 1 and level == max_level:
                max_time[at(max_level)] += time - state.max_since
                state.max_since = time
                max_level -= 1
        elif not rejected:  # an arrival
            arrivals += 1
            rise = fall = kept = False
            # An arrival's mark is uniform below the rate of arrivals: it can also tell who returns.
            if returning > 0.0 and mark < returning * (pools * service_rate * load if wave else peak):
                if choice_position == BUFFER:
                    refill_choices(streams)
                    choice_position = 0
                level = level_of_rank(at_least, tree, pools, int(choices[at(choice_position)] * pools), max_level)
                choice_position += 1
                limit = threshold if policy == _THRESHOLD else total // pools
                kept = level <= limit + margin and level < capacity
                state.returned += 1
                state.kept += int(kept)
            if kept:
                green_sent += int(level + 1 < threshold)  # the pool replaces the token that the task used
            elif policy == _POWER_OF_D and ranks.size <= FEW:
                if choice_position + ranks.size > BUFFER:
                    refill_choices(streams)
                    choice_position = 0
                rank = lowest_of_sample(choices[choice_position:], ranks, pools)
                choice_position += ranks.size
                level = level_of_rank(at_least, tree, pools, rank, max_level)
            else:
                if choice_position == BUFFER:
                    refill_choices(streams)
                    choice_position = 0
                uniform = choices[at(choice_position)]
                choice_position += 1
                if policy == _THRESHOLD:
                    green = pools - at_least[at(threshold)]
                    yellow = pools - at_least[at(threshold + 1)]
                    if yellow > 0:
                        # Without green tokens the rank is 0, and the level the threshold itself.
                        top = min(threshold - int(green > 0), max_level)
                        level = level_of_rank(at_least, tree, pools, int(uniform * green), top)
                        green_sent += int(level + 1 < threshold)  # the pool replaces the token just used
                    else:
                        level = level_of_rank(at_least, tree, pools, int(uniform * pools), max_level)
                        state.without_token += 1
                    # Learning looks at the counts right before the arrival; it acts right after the dispatch.
                    rise = learning and yellow <= 1
                    fall = learning and pools - green <= fall_at
                elif policy == _POWER_OF_D:
                    rank = lowest_rank(uniform, ranks.size, pools)
                    level = level_of_rank(at_least, tree, pools, rank, max_level)
                elif policy == _JSQ:
                    level = level_of_rank(at_least, tree, pools, 0, max_level)
                else:
                    level = level_of_rank(at_least, tree, pools, int(uniform * pools), max_level)
            if level == capacity:
                state.lost += 1
            else:
                level += 1
                count = at_least[at(level)]
                gap += 1.0 + 2.0 * (count - full[at(level)])
                at_least[at(level)] = count + 1
                update_tree(tree, level, 1)
                area[at(level)] -= time
                total += 1
                squares += 2 * level - 1
                if level > max_level:
                    max_time[at(max_level)] += time - state.max_since
                    state.max_since = time
                    max_level = level
                    if max_level >= top_level:
                        budget = 0
            if rise != fall and (fall or threshold < highest):
                threshold_time[at(threshold)] += time - state.threshold_since
                state.threshold_since = state.last_change = time
                state.changes += 1
                if rise:
                    threshold += 1
                    state.resync += at_least[at(threshold)] - at_least[at(threshold + 1)]
                    if threshold >= top_level:
                        budget = 0
                else:
                    threshold -= 1
                    state.resync += pools - at_least[at(threshold)]
                if path_time.size > 0:
                    path_time[state.path_length] = time
                    path_value[state.path_length] = threshold
                    state.path_length += 1
                    if state.path_length == path_time.size:
                        budget = 0
        position = (position + 1) & (BUFFER - 1)
        if position == 0:
            refill_events(streams, mean_holding)
        rate = peak + total * service_rate
        next_time = time + holding[at(position)] / rate

    state.time, state.next_time, state.rate = time, next_time, rate
    state.total, state.max_level, state.threshold = total, max_level, threshold
    state.position, state.choice_position = position, choice_position
    state.green, state.yellow = green_sent, yellow_sent
    state.squares, state.since = squares, since
    state.gap, state.gap_area, state.spread_area = gap, gap_area, spread_area
    state.arrivals += arrivals
    state.events += arrivals + departures
    return budget > 0


def advance(
    rules: Record,
    state: Record,
    book: Book,
    streams: Streams,
    ranks: NDArray[np.int64],
    until: float,
    budget: int,
) -> None:
    """Simulate up to the time `until`, for at most `budget` events and while the book has room.

    It is not compiled: a kernel that calls another one is compiled with it once more, which takes a second.
    """
    before = state["events"]
    room = step(rules, state, book, streams, ranks, until, budget)
    if room and state["next_time"] > until and state["events"] - before < budget:
        state["time"] = until
