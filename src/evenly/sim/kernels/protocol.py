"""The protocol of `evenly.core.protocol`, compiled: when a pool reports, and what the dispatcher makes of it."""

from __future__ import annotations

from evenly.sim.kernels.flight import REPORT, Flight, delay, send
from evenly.sim.kernels.jit import inlined
from evenly.sim.kernels.ledger import Book, Record
from evenly.sim.kernels.parties import Parties, rank, rank_up
from evenly.sim.kernels.rng import Streams, next_choice


@inlined
def report(state: Record, net: Record, flight: Flight, parties: Parties, pool: int) -> None:
    """Let a pool report to the dispatcher."""
    parties.sequence[pool] += 1
    due = state.time + delay(net, flight.signal)
    tasks, arrived, sequence = parties.tasks[pool], parties.arrived[pool], parties.sequence[pool]
    send(net, flight, due, REPORT, pool, tasks, arrived, sequence)


@inlined
def hear(net: Record, parties: Parties, pool: int, tasks: int, arrived: int, sequence: int) -> None:
    """Let the dispatcher take in a report."""
    if sequence > parties.heard[pool]:
        parties.heard[pool] = sequence
        rank(net, parties, pool, tasks + parties.picks[pool] - arrived)


@inlined
def dispatch(rules: Record, state: Record, book: Book, streams: Streams, net: Record, parties: Parties) -> int:
    """Pick a pool with the smallest estimate, and adjust the threshold. Return -1 if no pool can take a task."""
    first, threshold = parties.first, state.threshold
    pools = first[min(rules.capacity, first.size - 1)]  # with room for a task, and the same for tokens
    if pools == 0:
        return -1
    green, yellow = min(first[threshold], pools), min(first[threshold + 1], pools)
    uniform = next_choice(state, streams, streams.choices)
    pool = parties.order[int(uniform * first[net.lowest + 1])]
    if yellow == 0:
        state.without_token += 1
    parties.picks[pool] += 1
    rank_up(net, parties, pool)
    if rules.learning != 0:
        step = int(yellow <= 1) - int(pools - green <= parties.fall_at[rules.pools - pools])
        threshold += step
        if step != 0 and 0 <= threshold <= rules.highest:
            book.threshold_time[state.threshold] += state.time - state.threshold_since
            state.threshold_since = state.time
            state.last_change = state.time
            state.threshold = threshold
            net.highest = max(net.highest, threshold)
            state.changes += 1
            if book.path_time.size > 0:
                book.path_time[state.path_length] = state.time
                book.path_value[state.path_length] = threshold
                state.path_length += 1
    return int(pool)
