"""Open sessions with any service law and arrival process, in plain Python: drives the objects of `evenly.core`.

It contains no policy rules. It draws the same numbers in the same order as the session kernel, keeps the sessions
in a heap of the standard library, and finds the times of arrivals by bisection. A uniform becomes one of the
candidates that the policy offers: where pools are interchangeable, candidates are ordered by their tasks, and
among equals as the kernel keeps them.
"""

import heapq
import math
from collections.abc import Sequence
from typing import TypeVar, cast

import numpy as np

from evenly.policies import AGGREGATE
from evenly.sim import Scenario
from evenly.sim.kernels.draws import Draws, draw_many
from evenly.sim.kernels.rng import BUFFER, refill_events
from evenly.sim.reference import CoreSystem
from evenly.sim.sessions import gap_draws, service_draws

T = TypeVar("T")


class SessionReference(CoreSystem):
    """One replication of a scenario, one step per event."""

    def __init__(self, scenario: Scenario, seed: np.random.SeedSequence) -> None:
        super().__init__(scenario, seed)
        self.in_burst = False
        self._service, self._gaps = service_draws(scenario, seed), gap_draws(scenario, seed)
        self._serial = 0
        self._open: list[tuple[float, int, int]] = []  # end, serial number, pool
        self._order = PoolOrder(self.tasks(), self._class)
        for pool in self._owners:
            self._begin(pool)
        self._left, self._since = _next(self._gaps), 0.0
        self._switch_time = math.inf
        burst = scenario.arrival_process.burst
        if burst is not None:
            self.in_burst = float(self._streams.events[0]) < burst.share
            self._set_switch()

    def step(self) -> None:
        """Simulate one event."""
        while True:
            arrival = self._arrival_time()
            ends = self._open[0][0] if self._open else math.inf
            phases = self.scenario.phases
            change = phases[self._phase + 1].start if self._phase + 1 < len(phases) else math.inf
            first = min(arrival, ends, self._switch_time, change)
            if change == first and change < min(arrival, ends):
                self._read_clock(change)
                self._phase += 1
            elif self._switch_time == first:
                self._read_clock(self._switch_time)
                self.in_burst = not self.in_burst
                self._set_switch()
            elif ends == first:
                self.time = ends
                pool = heapq.heappop(self._open)[2]
                self._order.move(pool, -1)
                self.policy.depart(pool)
                return
            else:
                self.time = arrival
                self._arrive()
                self._left, self._since = _next(self._gaps), arrival
                return

    # --- arrivals ------------------------------------------------------------------------------------------

    def _speed(self) -> float:
        burst = self.scenario.arrival_process.burst
        factor = 1.0 if burst is None else burst.factors[int(self.in_burst)]
        return self.scenario.pools * self.scenario.service_rate * factor

    def _ran(self, until: float) -> float:
        """Return how far the clock of the arrivals runs from its last reading to a time in this phase."""
        phase = self.scenario.phases[self._phase]
        begin, end = self._since - phase.start, until - phase.start
        if phase.amplitude == 0:
            return phase.load * (end - begin) * self._speed()
        turn = 2 * math.pi / phase.period
        wave = phase.amplitude / turn * (math.cos(turn * begin) - math.cos(turn * end))
        return (phase.load * (end - begin) + wave) * self._speed()

    def _read_clock(self, time: float) -> None:
        self._left = max(self._left - self._ran(time), 0.0)
        self._since = time

    def _arrival_time(self) -> float:
        """Return when the clock has run what is left; under a wave, by bisection."""
        phase = self.scenario.phases[self._phase]
        if phase.load == 0:
            return math.inf
        if phase.amplitude == 0:  # rounded as in the kernel: without randomness, sessions end when others begin
            burst = self.scenario.arrival_process.burst
            factor = 1.0 if burst is None else burst.factors[int(self.in_burst)]
            rate = factor * (phase.load * self.scenario.pools * self.scenario.service_rate)
            return self._since + self._left / rate
        low, high = self._since, self._since + 1.0
        while self._ran(high) < self._left:
            high += high - self._since
        while low < (middle := 0.5 * (low + high)) < high:
            low, high = (middle, high) if self._ran(middle) < self._left else (low, middle)
        return low if self._left == 0 else high

    def _set_switch(self) -> None:
        burst = self.scenario.arrival_process.burst
        assert burst is not None
        mean = burst.lengths[int(self.in_burst)] / self.scenario.service_rate
        self._switch_time = self._since + mean * float(self._streams.holding[self._position])
        self._position += 1
        if self._position == BUFFER:
            refill_events(self._streams, False)
            self._position = 0

    def _arrive(self) -> None:
        self.arrivals += 1
        pool = self.policy.arrive(self._choose)
        if pool is None:
            self.lost += 1
            self._serial += 1
            _next(self._service)  # it would have taken this long: the next task must not
        else:
            self._order.move(cast(int, pool), 1)
            self._begin(cast(int, pool))

    def _begin(self, pool: int) -> None:
        end = self.time + _next(self._service) * (1 / self.scenario.service_rate)
        heapq.heappush(self._open, (end, self._serial, pool))
        self._serial += 1

    # --- choices -------------------------------------------------------------------------------------------

    def _choose(self, candidates: Sequence[T], /) -> T:
        index = int(self._choices.next() * len(candidates))
        if self.scenario.policy in AGGREGATE:
            return self._order.ranked(candidates)[index]
        return candidates[index]


class PoolOrder:
    """The pools in the order in which the session kernel keeps them: by tasks, the fullest first."""

    def __init__(self, tasks: Sequence[int], classes: Sequence[int]) -> None:
        self._tasks, self._class = list(tasks), classes
        self._order = sorted(range(len(tasks)), key=lambda pool: -tasks[pool])

    def ranked(self, candidates: Sequence[T]) -> list[T]:
        """Return the candidates as the kernel counts them: by class, and there from the emptiest."""
        place = {pool: where for where, pool in enumerate(self._order)}
        return sorted(candidates, key=lambda pool: (self._class[cast(int, pool)], -place[cast(int, pool)]))

    def move(self, pool: int, change: int) -> None:
        """Swap the pool with the one at the edge of its level, towards which it moves."""
        kind = (self._class[pool], self._tasks[pool])
        edge = [other for other in self._order if (self._class[other], self._tasks[other]) == kind]
        one, two = self._order.index(pool), self._order.index(edge[0] if change > 0 else edge[-1])
        self._order[one], self._order[two] = self._order[two], self._order[one]
        self._tasks[pool] += change


def _next(draws: Draws) -> float:
    out = np.zeros(1)
    draw_many(draws, out)
    return float(out[0])
