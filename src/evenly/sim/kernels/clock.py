"""When the next task arrives: the arrivals' own clock, which runs at the rate of the demand.

On that clock, arrivals come at rate 1 on average. `left` is what it has to run until the next arrival, read at the
time `since`. Its speed is pools * load(t) * service_rate, times a factor that switches if arrivals are bursty.
"""

from __future__ import annotations

import math

import numpy as np

from evenly.sim.kernels.jit import inlined, kernel
from evenly.sim.kernels.ledger import Record
from evenly.sim.kernels.rng import BUFFER, Streams, refill_events

CLOCK = np.dtype(
    [
        ("left", np.float64),
        ("since", np.float64),
        ("factor", np.float64),
        ("next_switch", np.float64),  # infinite unless arrivals are bursty
        ("burst", np.int64),
        ("calm_factor", np.float64),
        ("burst_factor", np.float64),
        ("calm_length", np.float64),  # mean times between two switches
        ("burst_length", np.float64),
        ("serial", np.int64),  # tasks so far
    ]
)
_STEPS = 200  # far more than the search takes


@kernel
def ran(rules: Record, begin: float, length: float) -> float:
    """Return the integral of the load over a stretch of the phase in force."""
    if rules.amplitude == 0.0:
        return float(rules.load * length)
    half = 0.5 * rules.frequency * length
    angle = _angle(rules, begin) + half
    return float(rules.load * length + 2.0 * rules.amplitude / rules.frequency * math.sin(angle) * math.sin(half))


@kernel
def _angle(rules: Record, time: float) -> float:
    turns = (time - rules.start) / rules.period
    return float(2.0 * math.pi * (turns - math.floor(turns)))


@kernel
def time_for(rules: Record, begin: float, amount: float) -> float:
    """Return how long the integral of the load takes to reach an amount, in the wave in force."""
    guess = amount / rules.load
    # Newton's method, kept between bounds: a wave gains or loses no more than what one swing has.
    swing = 2.0 * rules.amplitude / (rules.frequency * rules.load)
    low, high = max(guess - swing, 0.0), guess + swing
    guess = min(max(guess, low), high)
    for _ in range(_STEPS):
        excess = ran(rules, begin, guess) - amount
        if excess > 0.0:
            high = guess
        else:
            low = guess
        speed = rules.load + rules.amplitude * math.sin(_angle(rules, begin) + rules.frequency * guess)
        better = guess - excess / speed if speed > 0.0 else low
        if not low < better < high:
            better = 0.5 * (low + high)
        if abs(better - guess) <= 1e-16 * (begin + guess):
            break
        guess = better
    return float(guess)


@inlined
def pace(rules: Record) -> float:
    """Return the mean rate of arrivals in the phase in force."""
    return float(rules.load * rules.pools * rules.service_rate)


@kernel
def stop_clock(rules: Record, clock: Record, time: float) -> None:
    """Read the clock: before its speed changes."""
    speed = clock.factor * rules.pools * rules.service_rate
    clock.left = max(clock.left - speed * ran(rules, clock.since, time - clock.since), 0.0)
    clock.since = time


@kernel
def start_clock(rules: Record, state: Record, clock: Record) -> None:
    """Set the time of the next arrival."""
    speed = clock.factor * pace(rules)
    if rules.amplitude == 0.0:
        state.next_time = clock.since + clock.left / speed if speed > 0.0 else math.inf
    else:
        state.next_time = clock.since + time_for(rules, clock.since, clock.left / speed * rules.load)


@kernel
def switch(rules: Record, state: Record, streams: Streams, clock: Record) -> None:
    """Begin a burst, or end it."""
    time = clock.next_switch
    stop_clock(rules, clock, time)
    clock.burst = 1 - clock.burst
    set_pace(state, streams, clock)
    start_clock(rules, state, clock)


@kernel
def set_pace(state: Record, streams: Streams, clock: Record) -> None:
    """Take on the speed of the burst or of the calm that has just begun, and draw how long it lasts."""
    clock.factor = clock.burst_factor if clock.burst != 0 else clock.calm_factor
    mean = clock.burst_length if clock.burst != 0 else clock.calm_length
    clock.next_switch = clock.since + mean * streams.holding[state.position]
    state.position += 1
    if state.position == BUFFER:
        refill_events(streams, False)
        state.position = 0
