"""The Markov chain of a small system: its states, its events and its generator.

The policies are written here straight from their definitions, for `exact` only. Nothing is shared with `core` or
`sim`, so that agreement with them is evidence. `solve` solves the balance equations.
"""

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evenly.errors import InputError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Occupancy = tuple[tuple[int, int], ...]
"""Pairs (level, number of pools with exactly that many tasks), lowest level first, no empty pairs."""
Assignment = list[tuple[int, float]]
"""Pairs (level, probability that the next task is sent to a pool with exactly that many tasks)."""

COUNTED = ("green", "yellow", "resync", "rises", "falls", "lost")


class State(NamedTuple):
    """A state of the chain; the threshold is 0 for a policy without one."""

    occupancy: Occupancy
    threshold: int


class Event(NamedTuple):
    """A jump of the chain, its rate, and what to count when it happens."""

    rate: float
    target: State
    green: int = 0
    yellow: int = 0
    resync: int = 0
    rises: int = 0
    falls: int = 0
    lost: int = 0


@dataclass(frozen=True, kw_only=True)
class SmallSystem:
    """A system that is small enough to enumerate; service has unit rate.

    `falls_at` is the largest number of pools with at least `threshold` tasks that makes the threshold fall,
    None when the threshold is fixed. `total_limit` bounds the tasks in the whole system.
    """

    pools: int
    load: float
    assign: Callable[[State], Assignment]
    threshold: int
    falls_at: int | None
    capacity: int | None
    total_limit: int

    @property
    def empty(self) -> State:
        """No tasks, at the threshold given at the start."""
        return State(((0, self.pools),), self.threshold)


@dataclass(frozen=True, kw_only=True)
class Chain:
    """The reachable states, the generator over them, and the rates of the events in `COUNTED`, by state."""

    states: list[State]
    generator: sparse.csr_array
    counted: dict[str, FloatArray]


def assign_by_threshold(state: State) -> Assignment:
    """Choose uniformly among the pools below the threshold, else among those at it, else among all.

    Paper: Sec. 2.1.
    """
    occupancy, threshold = state
    below = [pair for pair in occupancy if pair[0] < threshold]
    exactly = [pair for pair in occupancy if pair[0] == threshold]
    eligible = below or exactly or list(occupancy)
    number = sum(pools for _, pools in eligible)
    return [(level, pools / number) for level, pools in eligible]


def assign_to_shortest(state: State) -> Assignment:
    """Choose a pool with the fewest tasks."""
    return [(state.occupancy[0][0], 1.0)]


def assign_by_sample(sample_size: int) -> Callable[[State], Assignment]:
    """Return the rule of power-of-d: the least loaded of `sample_size` distinct pools, sampled uniformly."""

    def assign(state: State) -> Assignment:
        at_least = sum(pools for _, pools in state.occupancy)
        samples = comb(at_least, sample_size)
        assignment = []
        for level, pools in state.occupancy:
            lowest_here = comb(at_least, sample_size) - comb(at_least - pools, sample_size)
            if lowest_here:
                assignment.append((level, lowest_here / samples))
            at_least -= pools
        return assignment

    return assign


def total_tasks(occupancy: Occupancy) -> int:
    """Return the number of tasks in the system."""
    return sum(level * pools for level, pools in occupancy)


def pools_at_least(occupancy: Occupancy, level: int) -> int:
    """Return the number of pools with at least `level` tasks."""
    return sum(pools for tasks, pools in occupancy if tasks >= level)


def moved(occupancy: Occupancy, level: int, step: int) -> Occupancy:
    """Return the occupancy after one pool with exactly `level` tasks has gained `step` of them."""
    pools_at = dict(occupancy)
    pools_at[level] -= 1
    if pools_at[level] == 0:
        del pools_at[level]
    pools_at[level + step] = pools_at.get(level + step, 0) + 1
    return tuple(sorted(pools_at.items()))


def learned_threshold(system: SmallSystem, state: State) -> int:
    """Return the threshold after an arrival that finds the system in `state`; both rules at once cancel.

    Paper: Sec. 4.1, App. B.1. Departs: with a capacity B it never exceeds B - 1.
    """
    occupancy, threshold = state
    if system.falls_at is None:
        return threshold
    rises = pools_at_least(occupancy, threshold + 1) >= system.pools - 1
    falls = pools_at_least(occupancy, threshold) <= system.falls_at
    learned = max(threshold + rises - falls, 0)
    return learned if system.capacity is None else min(learned, system.capacity - 1)


def resync_messages(occupancy: Occupancy, before: int, after: int) -> int:
    """Count the messages that rebuild the tokens when the threshold changes, on the occupancy after the dispatch.

    On a rise the pools at the new threshold send yellow, on a fall those below it send green.
    """
    if after > before:
        return sum(pools for tasks, pools in occupancy if tasks == after)
    if after < before:
        return sum(pools for tasks, pools in occupancy if tasks < after)
    return 0


def arrivals(system: SmallSystem, state: State) -> Iterator[Event]:
    """Yield the outcomes of an arrival: a dispatch, or a loss at a full pool, and then the learning step.

    Paper: Sec. 2.1, Sec. 4.1.
    """
    occupancy, before = state
    after = learned_threshold(system, state)
    cut_off = total_tasks(occupancy) >= system.total_limit
    for level, probability in system.assign(state):
        full = level == system.capacity
        lost = full or cut_off
        target = occupancy if lost else moved(occupancy, level, +1)
        yield Event(
            rate=system.pools * system.load * probability,
            target=State(target, after),
            green=int(not lost and level + 1 < before),
            resync=resync_messages(target, before, after),
            rises=int(after > before),
            falls=int(after < before),
            lost=int(full),
        )


def departures(state: State) -> Iterator[Event]:
    """Yield the departures from each level; one from the threshold or the level above it sends a message.

    Paper: Sec. 2.1.
    """
    occupancy, threshold = state
    for level, pools in occupancy:
        if level > 0:
            yield Event(
                rate=float(level * pools),
                target=State(moved(occupancy, level, -1), threshold),
                green=int(level == threshold),
                yellow=int(level == threshold + 1),
            )


def explore(system: SmallSystem, max_states: int) -> Chain:
    """Find every state that the empty system can reach, breadth first, and the generator over them."""
    states = [system.empty]
    index = {system.empty: 0}
    rows, columns, rates = array("q"), array("q"), array("d")
    counted = array("d")
    for row, state in enumerate(states):  # the list grows during the loop
        sums = [0.0] * len(COUNTED)
        for event in chain(arrivals(system, state), departures(state)):
            column = index.setdefault(event.target, len(states))
            if column == len(states):
                states.append(event.target)
            rows.append(row)
            columns.append(column)
            rates.append(event.rate)
            for what, number in enumerate(event[2:]):
                if number:
                    sums[what] += event.rate * number
        counted.extend(sums)
        if len(states) > max_states:  # for some policies, the count beforehand is a lower bound
            raise too_large(f"{len(states):,}", max_states)
    return Chain(
        states=states,
        generator=generator(np.asarray(rows), np.asarray(columns), np.asarray(rates), len(states)),
        counted=dict(zip(COUNTED, np.asarray(counted).reshape(len(states), -1).T, strict=True)),
    )


def generator(rows: IntArray, columns: IntArray, rates: FloatArray, states: int) -> sparse.csr_array:
    """Return the matrix of jump rates with rows that sum to zero; a jump to the same state is no jump."""
    jumps = rows != columns
    rates_out = np.bincount(rows[jumps], weights=rates[jumps], minlength=states)
    diagonal = np.arange(states)
    entries = np.concatenate([rates[jumps], -rates_out])
    where = (np.concatenate([rows[jumps], diagonal]), np.concatenate([columns[jumps], diagonal]))
    return sparse.csr_array((entries, where), shape=(states, states))


def too_large(states: str, max_states: int) -> InputError:
    """Return the error for a system with too many states."""
    return InputError(
        f"This system has at least {states} states, more than max_states ({max_states:,}): "
        "reduce pools, load, capacity or the initial threshold, or raise max_states."
    )
