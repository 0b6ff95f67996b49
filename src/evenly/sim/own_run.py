"""One system under a policy of the user's own: the events of the kernels, and every decision from Python.

Events and choices come from the same streams as in the kernels, so a policy gets exactly the arrivals and
departures that the built-in ones get. The loop calls the policy and remembers the pool of each task; the rest is
compiled: events drawn ahead (`evenly.sim.own_events`) and records (`evenly.sim.kernels.changes`). What the policy
returns is checked, always.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from itertools import chain
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from evenly.core import Choose, MessageCount
from evenly.errors import InputError
from evenly.inputs import shown, whole_number
from evenly.own_policy import FAILURES, failure, new_policy
from evenly.sim.kernels.changes import NOTHING, Changes, record
from evenly.sim.kernels.rng import Streams, refill_choices
from evenly.sim.limits import MAX_LEVELS
from evenly.sim.own_events import EventSource
from evenly.sim.sessions import Arrivals
from evenly.sim.system import System

T = TypeVar("T")

_MAX_MESSAGES = 2**62
_KINDS = [each.name for each in fields(MessageCount)]


class OwnRun:
    """A policy of the user's own, its pools and the tasks in them."""

    def __init__(self, system: System, source: EventSource) -> None:
        self._system, scenario = system, system.scenario
        self._source = source
        self._tasks: NDArray[np.int64] = scenario.tasks_at_start()  # up to the last change recorded
        self._name = scenario.info.name
        self._pools = scenario.pools
        self._capacity = scenario.capacity
        self._choose = _choice(system.streams)
        self._open_at_start = int(system.state["total"])
        self._counts = self._tasks.tolist()  # kept up to date only if there is a capacity
        self._owners: list[int] = []  # the pool of each task, by its number; -1 if it was lost
        self._policy = new_policy(scenario.policy, scenario.capacity)
        for pool, tasks in enumerate(self._counts):
            self._call("join", pool, tasks)
            self._owners += [pool] * tasks
        self._joining = self._last = self._sent()
        self._thresholds: list[int] = []  # after each event of a batch
        self._watched = self._read("threshold", None) is not None
        if self._watched:
            system.state["threshold"] = self._threshold()
            system.make_room()

    @property
    def arrivals(self) -> Arrivals | None:
        """The clock of the arrivals."""
        return self._source.arrivals

    @property
    def tasks(self) -> NDArray[np.int64]:
        """Tasks of each pool, up to the last change recorded."""
        return self._tasks.copy()

    def messages(self) -> dict[str, int]:
        """Return the messages by kind since the pools of time 0 joined; none if the policy does not count them."""
        if not self._watched and self._read("threshold", None) is not None:
            raise InputError(f"The policy {self._name} must have its threshold from the start, or never.")
        sent = self._sent()
        for kind, count in sent.items():
            if count < self._last[kind]:
                raise InputError(
                    f"messages of the policy {self._name} must not fall, as from {self._last[kind]} to {count}."
                )
        self._last = sent
        return {kind: count - self._joining[kind] for kind, count in sent.items()}

    def advance(self, until: float, budget: int) -> None:
        """Let the policy decide a batch of events, and record them."""
        system = self._system
        state = system.state
        changes, last = self._play(until, budget)
        system.make_room(int(changes.thresholds.max(initial=0)))
        done, size = 0, changes.times.size
        replayed = system.given.starts.size > 0
        while done < size:
            done = record(system.rules, state, system.book, self._tasks, changes, done, system.watch, replayed)
            system.make_room()
        if system.given.pools.size:
            self._keep_pools(changes.steps)
        if last and size < budget:
            state["time"] = until

    def _keep_pools(self, steps: NDArray[np.int64]) -> None:
        """Write down where the given sessions went that arrived; -1 where they were lost."""
        pools = steps[steps >= 0] - 1
        last = int(self._system.state["arrivals"]) + self._open_at_start
        self._system.given.pools[last - pools.size : last] = pools

    def make_room(self) -> None:
        """Do nothing: Python's lists grow by themselves."""

    def _play(self, until: float, budget: int) -> tuple[Changes, bool]:
        """Let the policy decide at most `budget` events up to a time. Also return whether these are all."""
        source = self._source
        times: list[NDArray[np.float64]] = [np.zeros(0)]
        steps: list[int] = []
        self._thresholds.clear()
        last = False
        drawn = 1
        while drawn and len(steps) < budget and not last:  # without events, the caller can stop the run
            before = len(steps)
            events, drawn, last = source.draw(until, budget - before)
            self._owners += [-1] * (source.size - len(self._owners))
            lost = self._decide(events.tasks[:drawn].tolist(), steps)
            used = len(steps) - before
            times.append(events.times[:used].copy())
            if lost:
                source.lose(used - 1)
                last = False
        return Changes(
            np.concatenate(times), np.array(steps, np.int64), np.array(self._thresholds, np.int64)
        ), last

    def _decide(self, tasks: list[int], steps: list[int]) -> bool:
        """Let the policy decide about the events in turn. Return True if a lost task changes those after it."""
        owners, counts, pools, choose = self._owners, self._counts, self._pools, self._choose
        arrive, depart, note = self._policy.arrive, self._policy.depart, steps.append
        limited, watched, redraws = self._capacity is not None, self._watched, self._source.redraws
        for task in tasks:
            if task < 0:
                try:
                    pool = arrive(choose)
                except FAILURES as error:
                    raise failure(self._name, "arrive", error) from error
                if pool.__class__ is not int or not 0 <= pool < pools:
                    pool = -1 if pool is None else self._checked(pool)
                if limited and pool >= 0:
                    pool = self._admitted(pool)
                owners[~task] = pool
                note(pool + 1)
            elif (pool := owners[task]) >= 0:
                if limited:
                    counts[pool] -= 1
                try:
                    depart(pool)
                except FAILURES as error:
                    raise failure(self._name, "depart", error) from error
                note(-1 - pool)
            else:
                note(NOTHING)
            if watched:
                self._thresholds.append(self._threshold())
            if redraws and pool < 0:
                return True
        return False

    def _admitted(self, pool: int) -> int:
        """Return the pool if it has room, and count the task; otherwise -1, and to the policy the task departs."""
        if self._counts[pool] == self._capacity:
            self._call("depart", pool)
            return -1
        self._counts[pool] += 1
        return pool

    def _checked(self, pool: object) -> int:
        """Return a pool that is not a plain number, or raise InputError unless it names a pool."""
        if isinstance(pool, Integral) and not isinstance(pool, bool) and 0 <= int(pool) < self._pools:
            return int(pool)  # one of NumPy's
        raise InputError(
            f"The policy {self._name} must return a pool from arrive, a whole number from 0 to {self._pools - 1}, "
            f"or None to lose the task, not {shown(pool)}."
        )

    def _call(self, method: str, *arguments: object) -> None:
        try:
            getattr(self._policy, method)(*arguments)
        except FAILURES as error:
            raise failure(self._name, method, error) from error

    def _sent(self) -> dict[str, int]:
        """Return the messages that the policy has counted so far, by kind."""
        found = self._read("messages", 0)
        sent = found if isinstance(found, MessageCount) else MessageCount(other=found)
        name = f"messages of the policy {self._name}"
        return {kind: whole_number(name, getattr(sent, kind), 0, _MAX_MESSAGES) for kind in _KINDS}

    def _threshold(self) -> int:
        """Return the policy's threshold right now."""
        found = self._read("threshold", None)
        if found.__class__ is int and 0 <= found <= MAX_LEVELS:
            return int(found)
        return whole_number(f"threshold of the policy {self._name}", found, 0, MAX_LEVELS)

    def _read(self, attribute: str, default: object) -> Any:  # noqa: ANN401
        try:
            return getattr(self._policy, attribute, default)
        except FAILURES as error:
            raise failure(self._name, attribute, error) from error


def _choice(streams: Streams) -> Choose:
    """Return the uniform choice that a policy gets, from the stream of choices."""

    def buffers() -> Iterator[list[float]]:
        while True:
            yield streams.choices.tolist()
            refill_choices(streams)

    draw: Callable[[], float] = chain.from_iterable(buffers()).__next__

    def choose(candidates: Sequence[T], /) -> T:
        """Return one of the candidates, each with the same chance."""
        if isinstance(candidates, dict):  # its keys may be numbers, and its values are no candidates
            raise _no_choice(candidates)
        try:
            return candidates[int(draw() * len(candidates))]
        except (IndexError, KeyError, TypeError):
            raise _no_choice(candidates) from None

    return choose


def _no_choice(candidates: object) -> InputError:
    return InputError(f"choose needs a list or another sequence that is not empty, not {shown(candidates)}.")
