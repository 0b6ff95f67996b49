"""Join-the-shortest-queue and the threshold policy, side by side on the same arrivals and potential departures.

If tasks are discarded while every pool has floor(load) + 1 tasks or more, both systems agree at every event in
the number of tasks up to the threshold and in the number of pools above it, though not in the rest of their
states. Without the discarding they agree until the first task that finds all pools that full, and the probability
of such a task in a given time vanishes as the number of pools grows.

Paper: Sec. 3.4, Props. 2 and 3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenly.errors import InputError
from evenly.frames import Tabular
from evenly.inputs import positive_number, whole_number
from evenly.sim.kernels.common import exponential, generator, level_of_rank, uniform
from evenly.sim.kernels.jit import kernel
from evenly.sim.kernels.rng import Bits, Floats
from evenly.sim.run import simulate
from evenly.sim.scenario import Scenario
from evenly.workload.demand import MAX_LOAD

MAX_EVENTS = 10**6
MAX_WORK = 10**9  # events times levels
Counts = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CoupledRun(Tabular):
    """Both systems after each event, an arrival or a potential departure; row 0 is the start.

    pools, load, initial_tasks, seed: as given to `couple_with_jsq`.
    times: when the events happened.
    jsq, threshold: the two systems, one row per event; the columns are the tasks up to the threshold, the sum of
        Q(i) for 1 <= i <= floor(load), and the pools above it, Q(floor(load) + 1).
    final_jsq, final_threshold: the whole states at the end, the number of pools with at least i tasks.
    """

    pools: int
    load: float
    initial_tasks: float | tuple[int, ...]
    seed: int
    times: Floats
    jsq: Counts
    threshold: Counts
    final_jsq: Counts
    final_threshold: Counts

    @property
    def differences(self) -> int:
        """Number of rows in which the two systems differ; none, if the theorem and this code are right."""
        return int((self.jsq != self.threshold).any(axis=1).sum())

    def columns(self) -> Mapping[str, NDArray[Any]]:
        """Return one row per event: its time, and both columns of each system."""
        return {
            "time": self.times,
            "jsq_tasks_below": self.jsq[:, 0],
            "jsq_pools_above": self.jsq[:, 1],
            "threshold_tasks_below": self.threshold[:, 0],
            "threshold_pools_above": self.threshold[:, 1],
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the inputs, the columns as lists and the final states, ready for JSON."""
        start = self.initial_tasks
        return {
            "pools": self.pools,
            "load": self.load,
            "initial_tasks": list(start) if isinstance(start, tuple) else start,
            "seed": self.seed,
            "differences": self.differences,
            **{name: column.tolist() for name, column in self.columns().items()},
            "final_jsq": self.final_jsq.tolist(),
            "final_threshold": self.final_threshold.tolist(),
        }

    def _headline(self) -> str:
        run = f"{self.times.size - 1:,} events to time {self.times[-1]:.4g}"
        return f"{self.pools:,} pools, load {self.load:g}: {run}, {self.differences} differences"

    def _rows(self) -> Sequence[tuple[str, str]]:
        return [
            ("events", f"{self.times.size - 1:,}, to time {self.times[-1]:.4g}"),
            ("events after which the systems differ", f"{self.differences}"),
            ("the same final state", "yes" if np.array_equal(self.final_jsq, self.final_threshold) else "no"),
        ]


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
    """Remove the task of this number, if it exists; tasks are numbered from the fullest pools down."""
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


def couple_with_jsq(
    *,
    pools: int,
    load: float,
    initial_tasks: float | Sequence[int] = 0,
    seed: int = 1,
    events: int = 10_000,
) -> CoupledRun:
    """Run JSQ and the threshold policy side by side on the same arrivals and potential departures.

    Both systems discard a task that finds floor(load) + 1 tasks or more in every pool.

    pools: number of server pools.
    load: offered load per pool; the threshold is floor(load).
    initial_tasks: tasks per pool at time 0, spread as evenly as possible, or a number for each (default: 0).
    seed: whole number from 0 to 2**64 - 1 (default: 1).
    events: arrivals and potential departures to simulate, 1 to 1,000,000 (default: 10,000).

    At a potential departure one uniform picks a task in each system, or none, from all the places there are:
    first come the tasks of the fullest pools, then those of the others, as far as there are any.

    Paper: Sec. 3.4, Prop. 2. Departs: a departure below floor(load) + 1 tasks is that of a task picked uniformly,
    so that a pool loses one in proportion to its tasks; a pool picked uniformly may be empty, and tasks would not
    leave at equal rates. Pools may have more tasks at the start, and then there are more places.
    """
    seed = whole_number("seed", seed, 0, 2**64 - 1)
    events = whole_number("events", events, 1, MAX_EVENTS)
    scenario = Scenario(pools=pools, load=load, initial_tasks=initial_tasks)
    threshold = scenario.initial_threshold
    start = scenario.at_least_at_start()
    start = np.pad(start, (0, max(0, threshold + 2 - start.size) + 1))
    if events * start.size > MAX_WORK:
        raise InputError(
            f"{events} events on {start.size} levels are too many: reduce events, load or initial_tasks."
        )
    # No pool gets a task beyond floor(load) + 1, but one that starts with more can keep them.
    most = scenario.pools * (threshold + 1) + int(start[threshold + 2 :].sum())
    shortest, guided = start.copy(), start.copy()
    times, pairs = np.zeros(events + 1), np.zeros((2, events + 1, 2), np.int64)
    streams = _Streams(*(generator(seed, part) for part in range(len(_Streams._fields))))
    _run(shortest, guided, threshold, scenario.load_at_start, most, streams, times, pairs)
    start_tasks = scenario.initial_tasks
    return CoupledRun(
        pools=scenario.pools,
        load=scenario.load_at_start,
        initial_tasks=start_tasks if isinstance(start_tasks, float) else tuple(start_tasks),
        seed=seed,
        times=times,
        jsq=pairs[0],
        threshold=pairs[1],
        final_jsq=shortest[:-1],
        final_threshold=guided[:-1],
    )


def random_routing_probability(
    *, pools: int, load: float, horizon: float, replications: int = 1000, seed: int = 1
) -> tuple[float, float]:
    """Estimate the probability that a task goes to a pool with floor(load) + 1 tasks or more by the horizon.

    Threshold policy at floor(load), started balanced, without discarding. Returns the estimate and its standard
    error.

    pools: number of server pools.
    load: offered load per pool.
    horizon: time, in mean task times.
    replications: independent runs (default: 1000).
    seed: whole number from 0 to 2**64 - 1 (default: 1).

    Paper: Prop. 3.
    """
    load = positive_number("load", load, MAX_LOAD)
    scenario = Scenario(pools=pools, load=load, initial_tasks=load, horizon=horizon)
    result = simulate(scenario, replications=replications, seed=seed, batches=0)
    estimate = sum(window.without_token > 0 for window in result.windows) / replications
    return estimate, math.sqrt(estimate * (1 - estimate) / replications)
