"""The learning threshold policy as a SimPy model: every pool, task and token is an object.

The policy keeps one token set for the pools below the threshold and one for the pools at it, so that a pool is
picked, added and removed in constant time. Only a change of the threshold visits all pools, and it is rare.
"""

import time
from collections import defaultdict
from collections.abc import Generator
from fractions import Fraction
from random import Random
from typing import TypedDict

import simpy


class SimpyResult(TypedDict):
    """The report of one run. `threshold_time` holds shares of the horizon."""

    events: int
    seconds: float
    mean_tasks: float
    threshold_time: dict[int, float]


class Pool:
    """A pool: its number of tasks, and the place of its token."""

    __slots__ = ("place", "tasks", "tokens")

    def __init__(self) -> None:
        self.tasks = 0
        self.tokens: TokenSet | None = None
        self.place = 0


class TokenSet:
    """Tokens of pools: add, remove and pick at random in constant time."""

    __slots__ = ("pools",)

    def __init__(self) -> None:
        self.pools: list[Pool] = []

    def __len__(self) -> int:
        return len(self.pools)

    def add(self, pool: Pool) -> None:
        """Add the pool's token."""
        pool.tokens = self
        pool.place = len(self.pools)
        self.pools.append(pool)

    def remove(self, pool: Pool) -> None:
        """Remove the pool's token. The last token fills the gap."""
        last = self.pools.pop()
        if last is not pool:
            self.pools[pool.place] = last
            last.place = pool.place
        pool.tokens = None


class System:
    """The pools, their dispatcher, and the time averages."""

    def __init__(self, env: simpy.Environment, pools: int, load: float, fall_at: int, rng: Random) -> None:
        self.env = env
        self.rng = rng
        self.arrival_rate = pools * load
        self.fall_at = fall_at
        self.pools = [Pool() for _ in range(pools)]
        self.threshold = 0
        self.arrivals = 0
        self.departures = 0
        # Times at which pools fell below a number of tasks, minus times at which they reached it.
        self.level_time: defaultdict[int, float] = defaultdict(float)
        self.threshold_time: defaultdict[int, float] = defaultdict(float)
        self.threshold_since = 0.0
        self.rebuild_tokens()

    def arrive_forever(self) -> Generator[simpy.Event]:
        """Generate the arrivals."""
        env, rng, rate = self.env, self.rng, self.arrival_rate
        while True:
            yield env.timeout(rng.expovariate(rate))
            self.arrive()

    def arrive(self) -> None:
        """Dispatch one task, start its service, then learn from the tokens before the arrival."""
        below, at = len(self.below), len(self.at)
        pool = self.choose()
        pool.tasks += 1
        self.level_time[pool.tasks] -= self.env.now
        self.refile(pool)
        self.arrivals += 1
        self.env.process(self.serve(pool))
        rise = below + at <= 1
        fall = len(self.pools) - below <= self.fall_at
        if rise != fall:
            self.move_threshold(1 if rise else -1)

    def choose(self) -> Pool:
        """Return a random pool below the threshold, else one at it, else any."""
        candidates = self.below.pools or self.at.pools or self.pools
        return candidates[int(self.rng.random() * len(candidates))]

    def serve(self, pool: Pool) -> Generator[simpy.Event]:
        """Run a task from start to end."""
        yield self.env.timeout(self.rng.expovariate(1.0))
        self.level_time[pool.tasks] += self.env.now
        pool.tasks -= 1
        self.refile(pool)
        self.departures += 1

    def refile(self, pool: Pool) -> None:
        """File the pool's token by its number of tasks, if it has a token."""
        tokens: TokenSet | None = None
        if pool.tasks < self.threshold:
            tokens = self.below
        elif pool.tasks == self.threshold:
            tokens = self.at
        if tokens is not pool.tokens:
            if pool.tokens is not None:
                pool.tokens.remove(pool)
            if tokens is not None:
                tokens.add(pool)

    def move_threshold(self, step: int) -> None:
        """Change the threshold and file all tokens again."""
        self.close_threshold_time()
        self.threshold += step
        self.rebuild_tokens()

    def close_threshold_time(self) -> None:
        """Record the time spent at the threshold until now."""
        self.threshold_time[self.threshold] += self.env.now - self.threshold_since
        self.threshold_since = self.env.now

    def rebuild_tokens(self) -> None:
        """Rebuild every pool's token."""
        self.below, self.at = TokenSet(), TokenSet()
        for pool in self.pools:
            pool.tokens = None
            self.refile(pool)

    def mean_tasks(self) -> float:
        """Return the time average of tasks per pool until now."""
        now = self.env.now
        present = self.arrivals - self.departures
        return (sum(self.level_time.values()) + present * now) / (len(self.pools) * now)


def run(pools: int, load: float, alpha: float, horizon: float, seed: int) -> SimpyResult:
    """Simulate from the empty system with threshold 0. `seconds` is the time of the event loop alone."""
    fall_at = int(Fraction(str(alpha)) * pools)
    env = simpy.Environment()
    system = System(env, pools, load, fall_at, Random(seed))
    env.process(system.arrive_forever())
    start = time.perf_counter()
    env.run(until=horizon)
    seconds = time.perf_counter() - start
    system.close_threshold_time()
    return {
        "events": system.arrivals + system.departures,
        "seconds": seconds,
        "mean_tasks": system.mean_tasks(),
        "threshold_time": {level: spent / horizon for level, spent in sorted(system.threshold_time.items())},
    }
