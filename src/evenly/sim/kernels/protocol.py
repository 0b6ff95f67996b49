"""The protocol of `evenly.core.protocol`, compiled: when a pool reports, and what the dispatcher makes of it."""

from __future__ import annotations

from evenly.sim.kernels.flight import NOTICE, REPORT, Flight, delay, send
from evenly.sim.kernels.jit import inlined, kernel
from evenly.sim.kernels.ledger import Book, Record
from evenly.sim.kernels.parties import Parties, sort_token
from evenly.sim.kernels.rng import Streams, next_choice


@inlined
def report(state: Record, net: Record, flight: Flight, parties: Parties, pool: int) -> None:
    """Let a pool report to the dispatcher."""
    parties.sequence[pool] += 1
    due = state.time + delay(net, flight.signal)
    send(
        net,
        flight,
        due,
        REPORT,
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
        sort_token(net, parties, state.threshold, pool)
        due = state.time + delay(net, flight.signal)
        send(net, flight, due, NOTICE, pool, state.threshold, net.epoch, 0, 0)


@kernel
def adopt(
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
    report(state, net, flight, parties, pool)


@inlined
def hear(
    state: Record, net: Record, parties: Parties, pool: int, tasks: int, arrived: int, sequence: int, epoch: int
) -> None:
    """Let the dispatcher take in a report."""
    if sequence <= parties.heard[pool]:
        return
    parties.heard[pool] = sequence
    parties.estimate[pool] = tasks + parties.picks[pool] - arrived
    sort_token(net, parties, state.threshold, pool)
    if epoch == net.epoch and parties.answered[pool] < epoch:
        parties.answered[pool] = epoch
        net.unsettled -= 1


@inlined
def dispatch(
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
    sort_token(net, parties, state.threshold, pool)
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
