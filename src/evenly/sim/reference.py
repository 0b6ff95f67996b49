"""The slow reference: drives the objects of `evenly.core` with the kernels' random numbers, event by event.

It contains no policy rules. It draws the same numbers in the same order as the kernels, selects the task that
departs, and turns a uniform into one of the candidates that the policy offers. `evenly.core` decides the rest.
Where pools are interchangeable, the kernels know levels only, so candidates are ordered by their tasks: for a
uniform choice, any fixed order will do.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, TypeVar, cast

import numpy as np

from evenly import own_policy
from evenly.core import Choose, Policy, ThresholdPolicy, make_policy, takes_back
from evenly.sim.kernels.rng import BUFFER, FEW, Streams, lowest_rank, new_streams, refill_choices, refill_events
from evenly.sim.scenario import Scenario

T = TypeVar("T")


def new_policy(scenario: Scenario) -> Policy:
    """Return the scenario's policy as a core object, still without pools."""
    takes = scenario.info.parameters
    if scenario.info.own:
        return cast(Policy, own_policy.new_policy(scenario.policy, scenario.capacity))
    return make_policy(
        scenario.info.name,
        threshold=scenario.initial_threshold if "threshold" in takes else None,
        alpha=scenario.alpha,
        sample_size=scenario.sampled if "sample_size" in takes else None,
        capacity=scenario.capacity,
        utility=scenario.measure if scenario.info.utility else None,
    )


class Choices:
    """The uniforms of the stream of choices, one by one, as the kernels take them."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._position = 0

    def next(self) -> float:
        """Return the next uniform."""
        self.have(1)
        self._position += 1
        return float(self._streams.choices[self._position - 1])

    def have(self, count: int) -> None:
        """Go on to the next buffer unless this one has `count` left."""
        if self._position + count > BUFFER:
            refill_choices(self._streams)
            self._position = 0


class CoreSystem:
    """A policy of core with the pools and tasks of time 0, the streams of a seed, and what is counted of a run."""

    def __init__(self, scenario: Scenario, seed: np.random.SeedSequence, *, mean_holding: bool = False) -> None:
        self.scenario = scenario
        self.policy = new_policy(scenario)
        self.time = 0.0
        self.lost = 0
        self.arrivals = 0
        self.returned = 0
        self.kept = 0
        self._streams = new_streams(seed, mean_holding=mean_holding)
        self._position = 0
        self._choices = Choices(self._streams)
        self._class = [c for c, each in enumerate(scenario.classes) for _ in range(each.count)]
        self._owners: list[int] = []  # the pool of each task
        for pool, tasks in enumerate(scenario.tasks_at_start().tolist()):
            self._join(pool, tasks)
            self._owners += [pool] * tasks
        self._joining = asdict(self.policy.messages)
        self._phase = 0

    def _join(self, pool: int, tasks: int) -> None:
        if self.scenario.info.sized:
            sized: Any = self.policy
            sized.join(pool, tasks, self.scenario.classes[self._class[pool]].size)
        else:
            self.policy.join(pool, tasks)

    @property
    def threshold(self) -> int | None:
        """The threshold in force, if the policy has one."""
        return self.policy.threshold if isinstance(self.policy, ThresholdPolicy) else None

    @property
    def messages(self) -> dict[str, int]:
        """Messages by kind since the pools of time 0 joined."""
        return {kind: count - self._joining[kind] for kind, count in asdict(self.policy.messages).items()}

    def tasks(self) -> list[int]:
        """Return the tasks of each pool."""
        return [self.policy.tasks(pool) for pool in range(self.scenario.pools)]

    def at_least(self) -> list[int]:
        """Return the number of pools with at least i tasks, up to the maximum."""
        tasks = self.tasks()
        return [sum(count >= level for count in tasks) for level in range(max(tasks) + 1)]


class ReferenceSimulation(CoreSystem):
    """One replication of a scenario, one step per event."""

    def __init__(self, scenario: Scenario, seed: np.random.SeedSequence, *, mean_holding: bool = False) -> None:
        super().__init__(scenario, seed, mean_holding=mean_holding)
        self._mean_holding = mean_holding
        self._others = random.Random(0)  # draws what does not matter
        self._rate = self._current_rate()
        self._next_time = self._time_after(float(self._streams.holding[0]))

    def step(self) -> None:
        """Simulate one event, skipping arrivals rejected by thinning."""
        while not self._try_step():
            pass

    def _try_step(self) -> bool:
        phases = self.scenario.phases
        while self._phase + 1 < len(phases) and phases[self._phase + 1].start < self._next_time:
            self._begin_next_phase()
        self.time = self._next_time
        mark = float(self._streams.events[self._position]) * self._rate
        happened = True
        if mark >= self._peak():
            self._depart(int((mark - self._peak()) * (1.0 / self.scenario.service_rate)))
        elif mark < (now := self._arrival_rate()):
            self._arrive(returning=mark < self.scenario.sticky * now)
        else:
            happened = False
        self._position += 1
        if self._position == BUFFER:
            refill_events(self._streams, self._mean_holding)
            self._position = 0
        self._rate = self._current_rate()
        self._next_time = self._time_after(float(self._streams.holding[self._position]))
        return happened

    def _begin_next_phase(self) -> None:
        """Carry the rest of the unit exponential over to the new rate."""
        self._phase += 1
        start = self.scenario.phases[self._phase].start
        left = float(self._streams.holding[self._position])
        if self._rate > 0:
            left = (self._next_time - start) * self._rate
        self.time = start
        self._rate = self._current_rate()
        self._next_time = self._time_after(left)

    def _arrival_rate(self) -> float:
        load = self.scenario.phases[self._phase].load_at(self.time)
        return self.scenario.pools * self.scenario.service_rate * load

    def _peak(self) -> float:
        phase = self.scenario.phases[self._phase]
        return self.scenario.pools * self.scenario.service_rate * (phase.load + phase.amplitude)

    def _current_rate(self) -> float:
        return self._peak() + len(self._owners) * self.scenario.service_rate

    def _time_after(self, unit_exponential: float) -> float:
        return self.time + unit_exponential / self._rate if self._rate > 0 else float("inf")

    def _arrive(self, *, returning: bool) -> None:
        self.arrivals += 1
        if returning and self._return():
            return
        choose: Choose = self._choose
        if self.scenario.policy == "power-of-d":
            if self.scenario.sampled > FEW:
                choose = self._sample()
            else:
                self._choices.have(self.scenario.sampled)  # the kernel takes all of a task's from one buffer
        pool = self.policy.arrive(choose)
        if pool is None:
            self.lost += 1
        else:
            self._owners.append(cast(int, pool))

    def _return(self) -> bool:
        """Let a client return to the pool that it had, any of them. Return False if that pool is too full."""
        self.returned += 1
        pool = self._choose(range(self.scenario.pools))
        mean = len(self._owners) // self.scenario.pools
        enough = mean if self.threshold is None else self.threshold
        tasks = self.policy.tasks(pool)
        if not takes_back(tasks, enough, self.scenario.margin) or tasks == self.scenario.capacity:
            return False
        self.policy.record_arrival(pool)
        self._owners.append(pool)
        self.kept += 1
        return True

    def _choose(self, candidates: Sequence[T], /) -> T:
        index = int(self._choices.next() * len(candidates))
        return self._ranked(candidates)[index] if self.scenario.aggregate else candidates[index]

    def _sample(self) -> Choose:
        """Return a choice of distinct pools, for one task: the lowest rank first, as the kernel draws it.

        Given the lowest, the others are uniform among the ranks above it, which makes the sample uniform. They
        come from a generator of their own: their pools have no fewer tasks, so the kernel does without them.
        """
        lowest = lowest_rank(self._choices.next(), self.scenario.sampled, self.scenario.pools)
        index = lowest

        def choose(candidates: Sequence[T], /) -> T:
            nonlocal index
            chosen = self._ranked(candidates)[index]
            index = self._others.randrange(lowest, max(len(candidates) - 1, lowest + 1))
            return chosen

        return choose

    def _ranked(self, candidates: Sequence[T]) -> list[T]:
        return sorted(
            candidates, key=lambda pool: (self._class[cast(int, pool)], self.policy.tasks(cast(int, pool)))
        )

    def _depart(self, task: int) -> None:
        task = min(task, len(self._owners) - 1)
        if self.scenario.aggregate:  # tasks are counted by class, and from the fullest pools down
            self._owners.sort(key=lambda owner: (self._class[owner], -self.policy.tasks(owner), owner))
        pool = self._owners[task]
        self._owners[task] = self._owners[-1]
        self._owners.pop()
        self.policy.depart(pool)
