"""Random numbers for the simulators: three independent streams, the same for kernels and reference.

One stream each for the holding times, the events (arrival, or which task departs) and the choices (which
pool an arrival gets). Apart from each other they give common random numbers for free: two policies that
draw different numbers of choices still see the very same arrivals and departures.

The generator is xoshiro256++ (Blackman and Vigna, 2021); exponentials come from a 256-strip ziggurat
(Marsaglia and Tsang, 2000) with 53-bit mantissas. Both run inside the kernels, into small buffers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenly.sim.jit import kernel

BUFFER = 512
_TWO_53 = 2.0**53
_STRIPS = 256
_TAIL = 7.69711747013104972  # where the base strip's tail begins
_STRIP_AREA = 3.949659822581572e-3  # area of each strip; both constants are Marsaglia and Tsang's


class Streams(NamedTuple):
    """Generator states and the buffers they fill."""

    holding_state: NDArray[np.uint64]
    event_state: NDArray[np.uint64]
    choice_state: NDArray[np.uint64]
    holding: NDArray[np.float64]  # standard exponentials, or ones when holding times are replaced by means
    events: NDArray[np.float64]  # uniforms on [0, 1)
    choices: NDArray[np.float64]  # uniforms on [0, 1)


def new_streams(seed: np.random.SeedSequence, *, mean_holding: bool = False) -> Streams:
    """Streams of one replication, with the first buffers filled."""
    states = [np.asarray(child.generate_state(4, np.uint64), np.uint64) for child in seed.spawn(3)]
    streams = Streams(states[0], states[1], states[2], np.ones(BUFFER), np.ones(BUFFER), np.ones(BUFFER))
    refill_events(streams, mean_holding)
    refill_choices(streams)
    return streams


def _ziggurat_tables() -> tuple[NDArray[np.uint64], NDArray[np.float64], NDArray[np.float64]]:
    """Acceptance bounds, widths and heights of the strips under exp(-x)."""
    accept = np.zeros(_STRIPS, np.uint64)
    width = np.zeros(_STRIPS)
    height = np.zeros(_STRIPS)
    edge = _TAIL
    base = _STRIP_AREA / math.exp(-edge)
    accept[0] = int(edge / base * _TWO_53)
    width[0] = base / _TWO_53
    width[-1] = edge / _TWO_53
    height[0] = 1.0
    height[-1] = math.exp(-edge)
    for strip in range(_STRIPS - 2, 0, -1):
        previous, edge = edge, -math.log(_STRIP_AREA / edge + math.exp(-edge))
        accept[strip + 1] = int(edge / previous * _TWO_53)
        width[strip] = edge / _TWO_53
        height[strip] = math.exp(-edge)
    return accept, width, height


_ACCEPT, _WIDTH, _HEIGHT = _ziggurat_tables()


@kernel
def _rotate(x: np.uint64, k: int) -> np.uint64:
    return (x << np.uint64(k)) | (x >> np.uint64(64 - k))


@kernel
def _next(
    a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64, np.uint64]:
    """One step of xoshiro256++: the output and the new state."""
    out = _rotate(a + d, 23) + a
    t = b << np.uint64(17)
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= t
    d = _rotate(d, 45)
    return out, a, b, c, d


@kernel
def _unit(bits: np.uint64) -> np.float64:
    return np.float64(bits >> np.uint64(11)) * (1.0 / _TWO_53)


@kernel
def _fill_uniform(state: NDArray[np.uint64], out: NDArray[np.float64]) -> None:
    a, b, c, d = state[0], state[1], state[2], state[3]
    for m in range(out.size):
        bits, a, b, c, d = _next(a, b, c, d)
        out[m] = _unit(bits)
    state[0], state[1], state[2], state[3] = a, b, c, d


@kernel
def _fill_exponential(state: NDArray[np.uint64], out: NDArray[np.float64]) -> None:
    a, b, c, d = state[0], state[1], state[2], state[3]
    for m in range(out.size):
        while True:
            bits, a, b, c, d = _next(a, b, c, d)
            strip = bits & np.uint64(_STRIPS - 1)
            mantissa = bits >> np.uint64(11)
            x = np.float64(mantissa) * _WIDTH[strip]
            if mantissa < _ACCEPT[strip]:  # inside the strip: 99 % of the draws
                break
            bits, a, b, c, d = _next(a, b, c, d)
            if strip == np.uint64(0):  # the tail is exponential again
                x = _TAIL - math.log1p(-_unit(bits))
                break
            low, high = _HEIGHT[strip], _HEIGHT[strip - np.uint64(1)]
            if low + _unit(bits) * (high - low) < math.exp(-x):
                break
        out[m] = x
    state[0], state[1], state[2], state[3] = a, b, c, d


@kernel
def refill_events(streams: Streams, mean_holding: bool) -> None:
    """Draw the next holding times and event uniforms."""
    if not mean_holding:
        _fill_exponential(streams.holding_state, streams.holding)
    _fill_uniform(streams.event_state, streams.events)


@kernel
def refill_choices(streams: Streams) -> None:
    """Draw the next choice uniforms."""
    _fill_uniform(streams.choice_state, streams.choices)
