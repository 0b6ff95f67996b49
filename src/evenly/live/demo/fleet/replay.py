"""The same visits under other policies, with late messages: what a fleet is compared with.

The models mean what `evenly simulate --delay` means. A session reaches its pool one delay after the pick, and what
a pool reports reaches the dispatcher one delay later. No pool is ever killed.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable
from itertools import count

from evenly.core import JoinShortestQueue, Policy, StaleReports
from evenly.live.demo.traffic import Session
from evenly.workload.trace import Visit


def replay_jsq(visits: Iterable[Visit], pools: int, *, delay: float, seed: int) -> list[Session]:
    """Run the visits through join-the-shortest-queue. Departures are known one delay late."""
    policy = JoinShortestQueue()
    model = _Model(policy, pools, delay, seed)

    def ended(pool: str) -> None:
        model.after(delay, lambda: policy.depart(pool))

    return model.run(visits, ended)


def replay_stale_reports(
    visits: Iterable[Visit], pools: int, *, delay: float, interval: float, seed: int
) -> list[Session]:
    """Run the visits through the least loaded by the last reports: each pool sends one every `interval`.

    The pools report in turn, at equal distances.
    """
    policy = StaleReports()
    model = _Model(policy, pools, delay, seed)

    def report(number: int) -> None:
        pool = str(number % pools)
        tasks = model.tasks[pool]
        model.after(delay, lambda: policy.report(pool, tasks))
        model.after(interval / pools, lambda: report(number + 1))

    model.after(interval / pools, lambda: report(0))
    return model.run(visits, lambda _: None)


class _Model:
    """Pools named "0", "1" and so on, and what is on the way."""

    def __init__(self, policy: Policy, pools: int, delay: float, seed: int) -> None:
        self.tasks = {str(number): 0 for number in range(pools)}
        for pool in self.tasks:
            policy.join(pool)
        self._policy = policy
        self._delay = delay
        self._choose = random.Random(seed).choice
        self._now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something later."""
        heapq.heappush(self._events, (self._now + seconds, next(self._order), action))

    def run(self, visits: Iterable[Visit], ended: Callable[[str], None]) -> list[Session]:
        """Place all visits; call `ended` when a session ends at its pool."""
        sessions = []
        for visit in sorted(visits, key=lambda visit: visit.start):
            self._advance(visit.start)
            pool = str(self._policy.arrive(self._choose))
            begin = visit.start + self._delay
            sessions.append(Session(pool, begin, begin + visit.stay))
            self.after(self._delay, lambda pool=pool, stay=visit.stay: self._begin(pool, stay, ended))  # type: ignore[misc]
        return sessions

    def _advance(self, time: float) -> None:
        while self._events and self._events[0][0] <= time:
            self._now, _, action = heapq.heappop(self._events)
            action()
        self._now = time

    def _begin(self, pool: str, stay: float, ended: Callable[[str], None]) -> None:
        self.tasks[pool] += 1
        self.after(stay, lambda: self._end(pool, ended))

    def _end(self, pool: str, ended: Callable[[str], None]) -> None:
        self.tasks[pool] -= 1
        ended(pool)
