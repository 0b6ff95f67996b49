"""Join-the-shortest-queue and the threshold policy, side by side on the same arrivals and potential departures.

If tasks are discarded while every pool has floor(load) + 1 tasks or more, both systems agree at every event in
the number of tasks up to the threshold and in the number of pools above it, though not in the rest of their
states. Without the discarding they agree until the first task that finds all pools so full, and the probability
that there is one in a given time vanishes as the number of pools grows.

Paper: Sec. 3.4, Props. 2 and 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenly.errors import InputError
from evenly.sim.kernels.common import exponential, generator, level_of_rank, uniform
from evenly.sim.kernels.jit import kernel
from evenly.sim.kernels.rng import Bits, Floats
from evenly.sim.run import simulate
from evenly.sim.scenario import Scenario, whole_number

MAX_EVENTS = 10**6
MAX_WORK = 10**9  # events times levels
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class CoupledRun:
    """Both systems after each event, an arrival or a potential departure; row 0 is the start.

    Columns of `jsq` and `threshold`: tasks up to the threshold, sum of Q(i) for 1 <= i <= floor(load), and pools
    above it, Q(floor(load) + 1). The final states are whole: the number of pools with at least i tasks.
    """

    times: Floats
    jsq: Counts
    threshold: Counts
    final_jsq: Counts
    final_threshold: Counts


class _Streams(NamedTuple):
    """Generators, each for one purpose."""

    holding: Bits
    kind: Bits
    departure: Bits
    selection: Bits


@kernel
def _pair(at_least: Counts, threshold: int, out: Counts) -> None:
    out[0] = at_least[1 : threshold + 1].sum()
    out[1] = at_least[threshold + 1]


@kernel
def _join_shortest(at_least: Counts, threshold: int) -> None:
    level = level_of_rank(at_least, at_least[0], 0, 0)
    if level <= threshold:
        at_least[level + 1] += 1


@kernel
def _join_by_threshold(at_least: Counts, threshold: int, selection: float) -> None:
    pools = at_least[0]
    green = pools - at_least[threshold]
    if green > 0:
        at_least[level_of_rank(at_least, pools, int(selection * green), 0) + 1] += 1
    elif at_least[threshold + 1] < pools:
        at_least[threshold + 1] += 1


@kernel
def _depart(at_least: Counts, task: int) -> None:
    """Remove the task of this number, if there are so many: tasks are numbered from the fullest pools down."""
    for level in range(at_least.size - 2, 0, -1):
        here = level * (at_least[level] - at_least[level + 1])
        if task < here:
            at_least[level] -= 1
            return
        task -= here


@kernel
def _run(
    shortest: Counts,
    guided: Counts,
    threshold: int,
    load: float,
    most: int,
    streams: _Streams,
    times: Floats,
    pairs: Counts,
) -> None:
    """Fill `times` and `pairs`; `most` is the largest number of tasks that there can be."""
    arrival_rate = shortest[0] * load
    rate = arrival_rate + most
    for event in range(times.size):
        if event > 0:
            times[event] = times[event - 1] + exponential(streams.holding) / rate
            if uniform(streams.kind) * rate < arrival_rate:
                _join_shortest(shortest, threshold)
                _join_by_threshold(guided, threshold, uniform(streams.selection))
            else:
                task = int(uniform(streams.departure) * most)
                _depart(shortest, task)
                _depart(guided, task)
        _pair(shortest, threshold, pairs[0, event])
        _pair(guided, threshold, pairs[1, event])


def coupled_blocking(
    *, pools: int, load: float, seed: int = 1, events: int = 10_000, initial: Sequence[int] | None = None
) -> CoupledRun:
    """Run both blocking systems for a number of events, from empty or from these tasks of each pool.

    At a potential departure one uniform picks a task in each system, or none, from all the places there are:
    first come the tasks of the fullest pools, then those of the others, as far as there are any.

    Paper: Sec. 3.4, Prop. 2. Departs: a departure below floor(load) + 1 tasks is that of a task picked uniformly,
    so that a pool loses one in proportion to its tasks; a pool picked uniformly may be empty, and tasks would not
    leave at equal rates. Pools may have more tasks at the start, and then there are more places.
    """
    whole_number("seed", seed, 0, 2**64 - 1)
    whole_number("events", events, 1, MAX_EVENTS)
    scenario = Scenario(pools=pools, load=load, initial_tasks=0 if initial is None else initial)
    threshold = scenario.initial_threshold
    start = scenario.at_least_at_start()
    start = np.pad(start, (0, max(0, threshold + 2 - start.size) + 1))
    if events * start.size > MAX_WORK:
        raise InputError(f"{events} events on {start.size} levels are too many: reduce events, load or initial.")
    # No pool gets a task beyond floor(load) + 1, but one that starts with more can keep them.
    most = scenario.pools * (threshold + 1) + int(start[threshold + 2 :].sum())
    shortest, guided = start.copy(), start.copy()
    times, pairs = np.zeros(events + 1), np.zeros((2, events + 1, 2), np.int64)
    streams = _Streams(*(generator(seed, part) for part in range(len(_Streams._fields))))
    _run(shortest, guided, threshold, scenario.load_at_start, most, streams, times, pairs)
    return CoupledRun(times, pairs[0], pairs[1], shortest[:-1], guided[:-1])


def random_routing_probability(
    *, pools: int, load: float, horizon: float, replications: int = 1000, seed: int = 1
) -> tuple[float, float]:
    """Probability that a task goes to a pool with floor(load) + 1 tasks or more by the horizon, and its error.

    Threshold policy at floor(load), started balanced, without discarding. The error is a standard error.

    Paper: Prop. 3.
    """
    scenario = Scenario(pools=pools, load=load, initial_tasks=load, horizon=horizon)
    result = simulate(scenario, replications=replications, seed=seed, batches=0)
    estimate = sum(sample.unguided > 0 for sample in result.samples) / replications
    return estimate, math.sqrt(estimate * (1 - estimate) / replications)
