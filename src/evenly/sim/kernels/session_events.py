"""The next event of a system of sessions: the end of one, or an arrival, by the heap and the arrivals' clock."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from evenly.sim.kernels.clock import start_clock, switch
from evenly.sim.kernels.draws import Draws, draw
from evenly.sim.kernels.heap import pop
from evenly.sim.kernels.jit import inlined
from evenly.sim.kernels.ledger import Record
from evenly.sim.kernels.rng import Streams

ARRIVAL, NONE, PAUSE = -1, -2, -3
_SWITCHES = 1000  # of bursts and calms at a time, so that a run can be stopped soon


@inlined
def take_session(
    rules: Record,
    state: Record,
    streams: Streams,
    clock: Record,
    due: NDArray[np.float64],
    sessions: NDArray[np.int64],
    size: int,
    until: float,
) -> int:
    """Move to the next event up to a time. Return the session that ends, which leaves its heap, or ARRIVAL.

    If there is none up to then, return NONE. PAUSE means: ask again.
    """
    ends = due[0] if size > 0 else math.inf
    left = _SWITCHES
    while left > 0 and clock.next_switch <= min(ends, state.next_time, until):
        switch(rules, state, streams, clock)
        left -= 1
    event = PAUSE
    if left > 0:
        time = min(ends, state.next_time)
        event = NONE
        if time <= until:
            state.time = time
            event = ARRIVAL
            if ends <= state.next_time:
                event = sessions[0]
                pop(due, sessions, size)
    return event


@inlined
def next_arrival(rules: Record, state: Record, clock: Record, gaps: Draws, rate: float) -> None:
    """Draw the gap that follows an arrival right now, and set the time of the next. `rate` is the `pace`."""
    clock.left = draw(gaps)
    clock.since = state.time
    if rules.amplitude == 0.0 and rate > 0.0:
        state.next_time = state.time + clock.left / (clock.factor * rate)
    else:
        start_clock(rules, state, clock)
