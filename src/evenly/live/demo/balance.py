"""Time averages that measure how even sessions were, and the same visits under an ideal balancer."""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evenly.core import Policy
from evenly.live.demo.traffic import Session
from evenly.workload.trace import Visit


@dataclass(frozen=True)
class Balance:
    """Averages over a period of time."""

    spread: float  # standard deviation of the sessions over the pools
    max_tasks: float  # sessions at the fullest pool
    pools_with_exactly: list[float]  # fraction of pools with exactly i sessions
    mean_tasks: float  # sessions per pool


def balance(sessions: Iterable[Session], pools: Sequence[str], begin: float, end: float) -> Balance:
    """Average over the time from `begin` to `end`. Failed sessions are left out."""
    if not (pools and begin < end):
        raise ValueError(f"There is nothing to average over {len(pools)} pools from {begin:g} to {end:g}.")
    tally = _Tally(pools, begin)
    for time, step, pool in sorted(_events(sessions, end), key=lambda event: (event[0], -event[1])):
        tally.advance(time)
        tally.move(pool, step)
    tally.advance(end)
    return tally.averages()


def _events(sessions: Iterable[Session], end: float) -> Iterable[tuple[float, int, str]]:
    for session in sessions:
        if session.pool:
            if session.start < end:
                yield session.start, 1, session.pool
            if session.end < end:
                yield session.end, -1, session.pool


class _Tally:
    """Sessions per pool as time advances, and the integrals of the averaged quantities."""

    def __init__(self, pools: Sequence[str], begin: float) -> None:
        self._tasks = dict.fromkeys(pools, 0)
        self._pools_with = [len(pools)]  # number of pools with exactly i sessions
        self._total = self._squares = 0
        self._begin = self._time = begin
        self._spread = self._max = self._mean = 0.0
        self._share: list[float] = [0.0]

    def advance(self, time: float) -> None:
        """Advance the time. Time before the beginning is not averaged."""
        stretch = time - self._time
        if stretch <= 0:
            return
        n = len(self._tasks)
        mean = self._total / n
        self._spread += stretch * math.sqrt(max(self._squares / n - mean * mean, 0.0))
        self._max += stretch * self._fullest
        self._mean += stretch * mean
        for tasks, pools in enumerate(self._pools_with):
            self._share[tasks] += stretch * pools / n
        self._time = time

    def move(self, pool: str, step: int) -> None:
        """Count a session that begins (step 1) or ends (step -1) at the pool."""
        before = self._tasks[pool]
        after = self._tasks[pool] = before + step
        if after == len(self._pools_with):
            self._pools_with.append(0)
            self._share.append(0.0)
        self._pools_with[before] -= 1
        self._pools_with[after] += 1
        self._total += step
        self._squares += after * after - before * before

    def averages(self) -> Balance:
        """Return the integrals divided by the measured time."""
        seconds = self._time - self._begin
        shares = [share / seconds for share in self._share]
        while len(shares) > 1 and shares[-1] == 0:
            shares.pop()  # levels that occurred only before the beginning
        return Balance(self._spread / seconds, self._max / seconds, shares, self._mean / seconds)

    @property
    def _fullest(self) -> int:
        return max(self._tasks.values())


def ideal(visits: Iterable[Visit], pools: int, policy: Policy, seed: int) -> list[Session]:
    """Run the visits through a policy without a network or delays. Its pools are named "0", "1" and so on."""
    for number in range(pools):
        policy.join(str(number))
    choose = random.Random(seed).choice
    leaving: list[tuple[float, str]] = []
    sessions = []
    for visit in sorted(visits, key=lambda visit: visit.start):
        while leaving and leaving[0][0] <= visit.start:
            policy.depart(heapq.heappop(leaving)[1])
        pool = policy.arrive(choose)
        end = visit.start + visit.stay
        if pool is not None:
            heapq.heappush(leaving, (end, str(pool)))
        sessions.append(Session("" if pool is None else str(pool), visit.start, end))
    return sessions
