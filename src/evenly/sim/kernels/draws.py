"""Draws from a law with mean 1, a buffer at a time: service times, and gaps between arrivals.

A law is a method with numbers or values, see `evenly.workload.service.Recipe`. Each law has random numbers of its
own, and the m-th draw does not depend on who takes it: all policies get the same tasks.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenly.sim.kernels.jit import inlined, kernel
from evenly.sim.kernels.normal import normal_quantile
from evenly.sim.kernels.rng import BUFFER, Bits, Floats, fill_exponential, fill_uniform, generator


class Method(IntEnum):
    """The methods as numbers, for the kernels."""

    EXPONENTIAL = 0
    SHIFTED = 1
    STAGES = 2
    MIXTURE = 3
    COXIAN = 4
    LOGNORMAL = 5
    POWER = 6
    PARETO = 7
    SAMPLE = 8
    REPLAY = 9


_SHIFTED, _STAGES, _MIXTURE = int(Method.SHIFTED), int(Method.STAGES), int(Method.MIXTURE)
_COXIAN = int(Method.COXIAN)
_LOGNORMAL, _POWER, _PARETO = int(Method.LOGNORMAL), int(Method.POWER), int(Method.PARETO)
_SAMPLE, _REPLAY = int(Method.SAMPLE), int(Method.REPLAY)
_HALF_STEP = 2.0**-54  # makes a uniform on [0, 1) with 53 bits one on (0, 1)


class Draws(NamedTuple):
    """A law, its generators, its buffer, and how much of that is used."""

    method: NDArray[np.int64]  # a single number
    numbers: Floats
    values: Floats
    exponential_state: Bits
    uniform_state: Bits
    spare: Bits
    buffer: Floats
    exponentials: Floats
    uniforms: Floats
    scratch: Bits
    rejected: NDArray[np.int64]
    position: NDArray[np.int64]  # in the buffer, and of a replay in its values


class Drawn(NamedTuple):
    """What is drawn of each task: its service time, and the gap to the next arrival."""

    service: Draws
    gaps: Draws


def new_draws(seed: np.random.SeedSequence, key: int, method: Method, numbers: Floats, values: Floats) -> Draws:
    """Return the draws of a law, which depend on the seed and the key alone, with the first buffer filled."""
    spawned = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, key))
    words = np.asarray(spawned.generate_state(3, np.uint64), np.uint64)
    draws = Draws(
        method=np.array([int(method)], np.int64),
        numbers=numbers,
        values=values,
        exponential_state=generator(words[0]),
        uniform_state=generator(words[1]),
        spare=generator(words[2], lanes=1),
        buffer=np.ones(BUFFER),
        exponentials=np.ones(BUFFER),
        uniforms=np.ones(BUFFER),
        scratch=np.zeros(BUFFER, np.uint64),
        rejected=np.zeros(BUFFER + 1, np.int64),
        position=np.zeros(2, np.int64),
    )
    refill(draws)
    return draws


@inlined
def draw(draws: Draws) -> float:
    """Return the next draw."""
    position = draws.position
    if position[0] == BUFFER:
        refill(draws)
        position[0] = 0
    position[0] += 1
    return float(draws.buffer[position[0] - 1])


@kernel
def draw_many(draws: Draws, out: Floats) -> None:
    """Fill an array with the next draws."""
    for place in range(out.size):
        out[place] = draw(draws)


@kernel
def refill(draws: Draws) -> None:
    """Draw the next buffer."""
    method = draws.method[0]
    if method == _REPLAY:
        for place in range(draws.buffer.size):
            draws.buffer[place] = draws.values[draws.position[1]]
            draws.position[1] = (draws.position[1] + 1) % draws.values.size
    elif method in (_SAMPLE, _LOGNORMAL, _PARETO):
        _by_uniforms(draws, method)
    elif method == _STAGES:
        _stages(draws, int(draws.numbers[0]))
    elif method == _COXIAN:
        _coxian(draws)
    else:
        _by_exponentials(draws, method)


@kernel
def _by_uniforms(draws: Draws, method: int) -> None:
    """Draw by inversion."""
    numbers, values, uniforms, out = draws.numbers, draws.values, draws.uniforms, draws.buffer
    _fill_uniforms(draws)
    if method == _SAMPLE:
        for place in range(out.size):
            out[place] = values[int(uniforms[place] * values.size)]
    elif method == _LOGNORMAL:
        for place in range(out.size):
            out[place] = math.exp(numbers[0] + numbers[1] * normal_quantile(uniforms[place] + _HALF_STEP))
    else:
        for place in range(out.size):
            out[place] = numbers[2] * (1.0 - numbers[1] * uniforms[place]) ** numbers[0]


@kernel
def _by_exponentials(draws: Draws, method: int) -> None:
    """Draw a function of an exponential."""
    numbers, out = draws.numbers, draws.buffer
    _fill_exponentials(draws, out)
    if method == _SHIFTED:
        for place in range(out.size):
            out[place] = 1.0 - numbers[0] + numbers[0] * out[place]
    elif method == _POWER:
        for place in range(out.size):
            out[place] = numbers[1] * out[place] ** numbers[0]
    elif method == _MIXTURE:
        _fill_uniforms(draws)
        for place in range(out.size):
            out[place] *= numbers[1] if draws.uniforms[place] < numbers[0] else numbers[2]


@kernel
def _stages(draws: Draws, stages: int) -> None:
    """Draw the mean of this many exponentials."""
    out = draws.buffer
    out[:] = 0.0
    for _ in range(stages):
        _fill_exponentials(draws, draws.exponentials)
        for place in range(out.size):
            out[place] += draws.exponentials[place] / stages


@kernel
def _coxian(draws: Draws) -> None:
    """Go through the stages, all draws side by side."""
    numbers, out = draws.numbers, draws.buffer
    stages = numbers.size // 2
    _fill_exponentials(draws, out)
    for place in range(out.size):
        out[place] *= numbers[0]
    # A draw that has ended is marked by its sign.
    for stage in range(1, stages):
        _fill_exponentials(draws, draws.exponentials)
        _fill_uniforms(draws)
        for place in range(out.size):
            if out[place] >= 0.0:
                if draws.uniforms[place] < numbers[stages + stage - 1]:
                    out[place] += numbers[stage] * draws.exponentials[place]
                else:
                    out[place] = -out[place]
    for place in range(out.size):
        out[place] = abs(out[place])


@inlined
def _fill_uniforms(draws: Draws) -> None:
    fill_uniform(draws.uniform_state, draws.scratch, draws.uniforms)


@inlined
def _fill_exponentials(draws: Draws, out: Floats) -> None:
    fill_exponential(draws.exponential_state, draws.scratch, draws.rejected, draws.spare, out)
