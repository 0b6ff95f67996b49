"""The next event of a system with exponential times: what happens, and when.

Under a wave, arrivals are proposed at the peak rate, and some of them rejected.
"""

from __future__ import annotations

from evenly.sim.kernels.integrals import pass_time
from evenly.sim.kernels.jit import inlined
from evenly.sim.kernels.ledger import Book, Record
from evenly.sim.kernels.rng import BUFFER, Streams, refill_events
from evenly.sim.kernels.wave import load_at

ARRIVAL, REJECTED = -1, -2


@inlined
def peak_rate(rules: Record) -> float:
    """Return the rate at which arrivals are proposed."""
    return float(rules.pools * rules.service_rate * (rules.load + rules.amplitude))


@inlined
def take_event(
    rules: Record,
    state: Record,
    book: Book,
    streams: Streams,
    peak: float,
    mean_service: float,
    edge: int,
    part: float,
) -> int:
    """Move to the next event, and count it. Return the rank of the task that departs, ARRIVAL or REJECTED."""
    state.time = state.next_time
    mark = streams.events[state.position] * state.rate
    load = load_at(rules, state.time)
    event = ARRIVAL
    if mark >= peak:
        event = min(int((mark - peak) * mean_service), state.total - 1)
    elif rules.amplitude != 0.0 and mark >= rules.pools * rules.service_rate * load:
        event = REJECTED
    if event != REJECTED:
        pass_time(rules, state, book, edge, part, load)
        state.events += 1
    return event


@inlined
def draw_next(rules: Record, state: Record, streams: Streams, peak: float) -> None:
    """Draw the time of the next event."""
    state.position += 1
    if state.position == BUFFER:
        refill_events(streams, rules.mean_holding != 0)
        state.position = 0
    state.rate = peak + state.total * rules.service_rate
    state.next_time = state.time + streams.holding[state.position] / state.rate
