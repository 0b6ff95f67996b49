"""Random numbers for the simulators: three independent streams, the same for kernels and reference.

One stream each for the holding times, the events (arrival, or which task departs) and the choices (which
pool an arrival gets). Separate streams give common random numbers for free: two policies that draw different
numbers of choices still get exactly the same arrivals and departures.

The generator is xoshiro256++ (Blackman and Vigna, 2021), sixty-four of them side by side and taken in turn, which
vector instructions do at once; exponentials come from a 256-strip ziggurat (Marsaglia and Tsang, 2000) with
53-bit mantissas. Both run inside the kernels and fill small buffers.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenly.sim.kernels.jit import inlined, kernel

BUFFER = 512
FEW = 4  # distinct ranks: up to this many are drawn one by one, which is faster than two logarithms
LANES = 64
_TWO_53 = 2.0**53
_STRIPS = 256
_TAIL = 7.69711747013104972  # where the base strip's tail begins
_STRIP_AREA = 3.949659822581572e-3  # area of each strip; both constants are Marsaglia and Tsang's

Bits = NDArray[np.uint64]
Floats = NDArray[np.float64]


class Streams(NamedTuple):
    """Generator states (four words per lane) and the buffers they fill."""

    holding_state: Bits
    event_state: Bits
    choice_state: Bits
    spare_state: Bits  # one more generator, for the rare exponentials that the ziggurat rejects at first
    holding: Floats  # standard exponentials, or ones when holding times are replaced by means
    events: Floats  # uniforms on [0, 1)
    choices: Floats  # uniforms on [0, 1)
    scratch: Bits
    rejected: NDArray[np.int64]


def new_streams(seed: np.random.SeedSequence, *, mean_holding: bool = False) -> Streams:
    """Return the streams of one replication, with the first buffers filled."""
    words = np.asarray(seed.generate_state(4, np.uint64), np.uint64)
    streams = Streams(
        holding_state=generator(words[0]),
        event_state=generator(words[1]),
        choice_state=generator(words[2]),
        spare_state=generator(words[3], lanes=1),
        holding=np.ones(BUFFER),
        events=np.ones(BUFFER),
        choices=np.ones(BUFFER),
        scratch=np.zeros(BUFFER, np.uint64),
        rejected=np.zeros(BUFFER + 1, np.int64),
    )
    refill_events(streams, mean_holding)
    refill_choices(streams)
    return streams


def generator(word: np.uint64, lanes: int = LANES) -> Bits:
    """Return the state of a generator that a word seeds."""
    state = np.zeros((4, lanes), np.uint64)
    _seed_lanes(word, state)
    return state


def _ziggurat_tables() -> tuple[Bits, Floats, Floats]:
    """Return the acceptance bounds, widths and heights of the strips under exp(-x)."""
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
def _seed_lanes(word: np.uint64, state: Bits) -> None:
    """Spread one word over all the words of the state by SplitMix64, as the generator's authors advise."""
    for row in range(state.shape[0]):
        for lane in range(state.shape[1]):
            word += np.uint64(0x9E3779B97F4A7C15)
            mixed = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state[row, lane] = mixed ^ (mixed >> np.uint64(31))


@kernel
def _fill_bits(state: Bits, out: Bits) -> None:
    """Run xoshiro256++ in every lane; compilers turn the inner loop into vector instructions."""
    lanes_a, lanes_b, lanes_c, lanes_d = state[0], state[1], state[2], state[3]
    for first in range(0, out.size, LANES):
        part = out[first : first + LANES]
        for lane in range(LANES):
            a, b, c, d = lanes_a[lane], lanes_b[lane], lanes_c[lane], lanes_d[lane]
            part[lane] = _rotate(a + d, 23) + a
            t = b << np.uint64(17)
            c ^= a
            d ^= b
            b ^= c
            a ^= d
            c ^= t
            lanes_a[lane], lanes_b[lane], lanes_c[lane], lanes_d[lane] = a, b, c, _rotate(d, 45)


@kernel
def unit(bits: np.uint64) -> np.float64:
    """Return a uniform on [0, 1) from the upper 53 bits."""
    return np.float64(bits >> np.uint64(11)) * (1.0 / _TWO_53)


@kernel
def fill_uniform(state: Bits, scratch: Bits, out: Floats) -> None:
    """Draw uniforms on [0, 1)."""
    _fill_bits(state, scratch)
    for m in range(out.size):
        out[m] = unit(scratch[m])


@kernel
def fill_exponential(state: Bits, scratch: Bits, rejected: NDArray[np.int64], spare: Bits, out: Floats) -> None:
    """Run the ziggurat without branches; the one draw in a hundred that it rejects is redone afterwards."""
    _fill_bits(state, scratch)
    count = 0
    for m in range(out.size):
        bits = scratch[m]
        strip = bits & np.uint64(_STRIPS - 1)
        mantissa = bits >> np.uint64(11)
        out[m] = np.float64(mantissa) * _WIDTH[strip]
        rejected[count] = m
        count += int(mantissa >= _ACCEPT[strip])
    for index in range(count):
        m = rejected[index]
        out[m] = _mended(scratch[m], spare)


@kernel
def _mended(bits: np.uint64, spare: Bits) -> float:
    """Return the exponential of a draw that may be outside its strip; new draws come from the spare."""
    while True:
        strip = bits & np.uint64(_STRIPS - 1)
        mantissa = bits >> np.uint64(11)
        x = np.float64(mantissa) * _WIDTH[strip]
        if mantissa < _ACCEPT[strip]:
            return float(x)
        uniform = unit(next_bits(spare))
        if strip == np.uint64(0):  # the tail is exponential again
            return _TAIL - math.log1p(-uniform)
        low, high = _HEIGHT[strip], _HEIGHT[strip - np.uint64(1)]
        if low + uniform * (high - low) < math.exp(-x):
            return float(x)
        bits = next_bits(spare)


@kernel
def next_bits(state: Bits) -> np.uint64:
    """Return the next number of xoshiro256++ with one lane."""
    a, b, c, d = state[0, 0], state[1, 0], state[2, 0], state[3, 0]
    out: np.uint64 = _rotate(a + d, 23) + a
    c ^= a
    d ^= b
    state[0, 0], state[1, 0] = a ^ d, b ^ c
    state[2, 0] = c ^ (b << np.uint64(17))
    state[3, 0] = _rotate(d, 45)
    return out


@kernel
def refill_events(streams: Streams, mean_holding: bool) -> None:
    """Draw the next holding times and event uniforms."""
    if not mean_holding:
        fill_exponential(
            streams.holding_state, streams.scratch, streams.rejected, streams.spare_state, streams.holding
        )
    fill_uniform(streams.event_state, streams.scratch, streams.events)


@kernel
def refill_choices(streams: Streams) -> None:
    """Draw the next choice uniforms."""
    fill_uniform(streams.choice_state, streams.scratch, streams.choices)


@inlined
def next_choice(state: Any, streams: Streams, choices: NDArray[np.float64]) -> float:  # noqa: ANN401  (a record)
    """Return the next choice uniform; `state` says where we are in the buffer."""
    if state.choice_position == BUFFER:
        refill_choices(streams)
        state.choice_position = 0
    uniform = choices[state.choice_position]
    state.choice_position += 1
    return float(uniform)


@inlined
def distinct_rank(uniform: float, ranks: NDArray[np.int64], drawn: int, pools: int) -> int:
    """Return a rank below `pools` that is not among the first `drawn` ranks, which are sorted, and insert it."""
    rank = int(uniform * (pools - drawn))
    index = 0
    while index < drawn and ranks[index] <= rank:  # a draw among the ranks that are left skips those taken
        rank += 1
        index += 1
    for place in range(drawn, index, -1):
        ranks[place] = ranks[place - 1]
    ranks[index] = rank
    return rank


@kernel
def lowest_rank(uniform: float, sampled: int, pools: int) -> int:
    """Return the lowest of `sampled` distinct ranks below `pools`, drawn uniformly, from a single uniform.

    The lowest is at least r with the chance f(r), the product of 1 - r / (pools - j) over all j below `sampled`.
    Hence the largest r with f(r) >= 1 - uniform has its law. The logarithm of the factor is concave in j, so the
    mean over j is at most its value in the middle, and at least the mean of its values at both ends. Both bounds
    give r in closed form. They have the same whole part as a rule; if not, the product decides.
    """
    left = 1.0 - uniform
    gone = -math.expm1(math.log(left) / sampled)
    last = pools - sampled + 1.0
    center = 0.5 * (pools + last)
    share = pools * last * gone * (2.0 - gone)
    rank = int(share / (center + math.sqrt(max(center * center - share, 0.0))))
    rank = min(rank, pools - sampled)
    highest = min(int(center * gone), pools - sampled)
    if rank < highest:
        chance = chance_above(rank + 1, sampled, pools)
        while rank < highest and chance >= left:
            rank += 1
            chance *= (pools - sampled - rank) / (pools - rank)
    return rank


@kernel
def chance_above(rank: int, sampled: int, pools: int) -> float:
    """Return the chance that `sampled` distinct ranks below `pools` are all at least `rank`."""
    chance = 1.0
    few, many = min(rank, sampled), max(rank, sampled)  # the chance is the same if the two are exchanged
    for drawn in range(few):
        chance *= (pools - many - drawn) / (pools - drawn)
    return chance
