"""Which pool gets a session: a policy of `evenly.core` and the pools that may be picked just now.

Decisions only: no I/O, and time and chance are arguments. A session is counted at the pick, so a burst is spread
by what was picked a moment ago and not by what somebody measured before. Sessions of a pool that may not be picked
(draining, failing, held back while warming) are counted here, and known to the policy again when it returns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import floor
from typing import Protocol

from evenly.core import Choose, LearningRule, MessageCount, Policy, ThresholdPolicy
from evenly.errors import InputError
from evenly.live.addresses import Address
from evenly.live.balancer.pool import LivePool, Ramp, State

MOST_POOLS = 10_000


class Report(Protocol):
    """Hears of changes of state."""

    def __call__(self, event: str, /, **facts: object) -> None:
        """Something happened."""


class Balancer:
    """Picks pools, and counts sessions until they end.

    `slow_start` is the time in seconds in which a pool that comes, or comes back, may fill up to the mean.
    `hearing` is the time in which a balancer that starts again hears of older sessions, and forgets no pool yet.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        name: str,
        choose: Choose,
        clock: Callable[[], float],
        slow_start: float,
        report: Report,
        hearing: float = 0.0,
    ) -> None:
        self.policy = policy
        self.name = name
        self.picks: Counter[str] = Counter()
        self.unpicked_total = 0
        self.moved_total = 0
        self._choose = choose
        self._clock = clock
        self._slow_start = slow_start
        self._report = report
        self._pools: dict[Address, LivePool] = {}
        self._by_endpoint: dict[Address, LivePool] = {}
        self._sessions = 0
        self._hearing_until = clock() + hearing
        self._dispatcher = policy.dispatcher if isinstance(policy, ThresholdPolicy) else None
        self._reported = (self.threshold, 0)

    # --- what there is to see ----------------------------------------------------------------------------------

    @property
    def pools(self) -> tuple[LivePool, ...]:
        """All pools, in the order in which they came."""
        return tuple(self._pools.values())

    @property
    def sessions(self) -> int:
        """The open sessions of all pools."""
        return self._sessions

    @property
    def all_draining(self) -> bool:
        """Whether the operator wants no pool to have new sessions."""
        return all(pool.draining or pool.leaving for pool in self._pools.values())

    @property
    def threshold(self) -> int | None:
        """The threshold in force; None for a policy without one."""
        return None if self._dispatcher is None else self._dispatcher.threshold

    @property
    def alpha(self) -> float | None:
        """The alpha that the threshold is learned with."""
        rule = None if self._dispatcher is None else self._dispatcher.rule
        return None if rule is None else float(rule.alpha)

    @property
    def tokens(self) -> tuple[int, int] | None:
        """Green and yellow tokens held."""
        return None if self._dispatcher is None else (len(self._dispatcher.green), len(self._dispatcher.yellow))

    @property
    def messages(self) -> MessageCount:
        """The messages that pools sent."""
        return self.policy.messages

    def served_by(self, endpoint: Address) -> LivePool | None:
        """The pool with this address by number."""
        return self._by_endpoint.get(endpoint)

    # --- sessions ----------------------------------------------------------------------------------------------

    def pick(self) -> LivePool | None:
        """Choose the pool of a new session and count it; None if no pool may be picked."""
        kind = self._kind()
        pool = self.policy.arrive(self._choose)
        if pool is None and self._end_ramps():
            kind = self._kind()
            pool = self.policy.arrive(self._choose)
        if pool is None:
            return None
        assert isinstance(pool, LivePool)
        pool.picked += 1
        self._sessions += 1
        self.picks[kind] += 1
        if pool.ramp is not None:
            self._settle(pool)
        return pool

    def serve(self, pool: LivePool) -> None:
        """Count a session that this pool serves though none could be picked."""
        self.unpicked_total += 1
        pool.picked += 1
        self._came(pool)

    def move(self, picked: LivePool, served: LivePool) -> None:
        """Another pool than the one picked serves the session: the data plane tried again elsewhere."""
        self.moved_total += 1
        served.picked += 1
        self._came(served)
        self.end(picked)

    def end(self, pool: LivePool) -> None:
        """A session ended."""
        pool.picked -= 1
        self._went(pool)

    def set_unpicked(self, pool: LivePool, count: int) -> None:
        """So many open sessions of the pool are not ours: they came while we were away.

        There may be thousands, so the policy does not hear of each: the pool leaves, and joins with all of them.
        """
        more = max(count, 0) - pool.unpicked
        if more == 0:
            return
        if pool.member:
            self.policy.leave(pool)
            self.policy.join(pool, pool.sessions + more)
        pool.unpicked += more
        self.unpicked_total += max(more, 0)
        self._sessions += more
        if pool.ramp is not None:
            self._settle(pool)
        self._forget_if_done(pool)

    # --- pools -------------------------------------------------------------------------------------------------

    def add(self, address: Address, endpoint: Address, *, slowly: bool = True) -> LivePool:
        """Admit a pool, or admit one again that is leaving."""
        old = self._pools.get(address)
        same = self._by_endpoint.get(endpoint)
        if old is not None and not old.leaving:
            raise InputError(f"Pool {address} is there already.")
        if same is not None and not same.leaving:
            raise InputError(f"Pool {address} is there already, as {same.address}.")
        if old is not None and old is not same:
            raise InputError(f"Pool {address} was at {old.endpoint} and has {old.sessions} sessions there yet.")
        if same is None and len(self._pools) >= MOST_POOLS:
            raise InputError(f"There can be at most {MOST_POOLS} pools.")
        pool = same or LivePool(address, endpoint)
        if pool.address != address:  # it has another name now
            del self._pools[pool.address]
            pool.address = address
        pool.leaving = pool.draining = False
        self._pools[address] = self._by_endpoint[endpoint] = pool
        self._report("pool added", pool=str(address), endpoint=str(endpoint))
        self._settle(pool, slowly=slowly)
        return pool

    def drain(self, address: Address) -> None:
        """Give the pool no new sessions; the open ones stay."""
        self._set(self.pool(address), "draining", True)

    def undrain(self, address: Address) -> None:
        """Give the pool sessions again."""
        self._set(self.pool(address), "draining", False)

    def remove(self, address: Address) -> None:
        """Give the pool no new sessions, and forget it when its last one ends."""
        pool = self.pool(address)
        self._set(pool, "leaving", True)
        if self._clock() >= self._hearing_until:
            self._forget_if_done(pool)

    def set_failing(self, pool: LivePool, failing: bool) -> None:
        """Heed the data plane's health checks."""
        self._set(pool, "failing", failing)

    def set_alpha(self, alpha: str) -> None:
        """Learn with this alpha from now on."""
        rule = LearningRule(alpha)
        if self._dispatcher is not None and self.alpha != float(rule.alpha):
            self._dispatcher.rule = rule
            self._report("alpha changed", alpha=float(rule.alpha))

    def catch_up(self) -> None:
        """Begin to learn where the pools are; for when we hear of sessions that came before us."""
        if isinstance(self.policy, ThresholdPolicy):
            self.policy.lift(floor(self._mean()))

    def pool(self, address: Address) -> LivePool:
        """The pool of this name that is not leaving."""
        pool = self._pools.get(address)
        if pool is None or pool.leaving:
            known = ", ".join(str(other.address) for other in self.pools[:5] if not other.leaving) or "none"
            raise InputError(f"There is no pool {address}; there is {known}.")
        return pool

    def tick(self) -> None:
        """Let warming pools fill as time allows, and report what changed since the last tick."""
        if self._clock() >= self._hearing_until:
            for pool in [pool for pool in self._pools.values() if pool.leaving]:
                self._forget_if_done(pool)
        warming = [pool for pool in self._pools.values() if pool.ramp is not None]
        mean = self._mean() if warming else 0.0
        for pool in warming:
            self._settle(pool, mean=mean)
        if self._dispatcher is not None:
            (old, seen), now = self._reported, (self._dispatcher.threshold, self._dispatcher.epoch)
            if now[1] != seen:
                self._reported = now
                self._report("threshold changed", before=old, threshold=now[0], changes=now[1] - seen)

    # --- the policy's view -------------------------------------------------------------------------------------

    def _kind(self) -> str:
        if self._dispatcher is None:
            return self.name
        return "green" if self._dispatcher.green else "yellow" if self._dispatcher.yellow else "any"

    def _came(self, pool: LivePool) -> None:
        self._sessions += 1
        if pool.member:
            self.policy.place(pool)
        if pool.ramp is not None:
            self._settle(pool)

    def _went(self, pool: LivePool) -> None:
        self._sessions -= 1
        if pool.member:
            self.policy.depart(pool)
        elif pool.leaving:
            self._forget_if_done(pool)

    def _set(self, pool: LivePool, flag: str, value: bool) -> None:
        if getattr(pool, flag) == value:
            return
        before = pool.state
        setattr(pool, flag, value)
        self._settle(pool)
        if pool.state is not before:
            self._report(f"pool {pool.state}", pool=str(pool.address), before=before, sessions=pool.sessions)

    def _settle(self, pool: LivePool, *, slowly: bool = True, mean: float | None = None) -> None:
        """Make the pool a member of the policy if it should be, and none if it should not."""
        if not pool.available:
            pool.ramp = None
        elif pool.ramp is None:
            if not pool.member and slowly and self._slow_start > 0:
                pool.ramp = Ramp(self._clock(), pool.sessions, self._slow_start)
        elif pool.ramp.over(self._clock()):
            self._end_ramp(pool)
        wanted = pool.available
        if wanted and pool.ramp is not None:
            wanted = pool.sessions + 1 <= pool.ramp.cap(self._clock(), self._mean() if mean is None else mean)
        if wanted and not pool.member:
            self.policy.join(pool, pool.sessions)
        elif pool.member and not wanted:
            self.policy.leave(pool)
        pool.member = wanted

    def _mean(self) -> float:
        counts = [pool.sessions for pool in self._pools.values() if pool.available]
        return sum(counts) / len(counts) if counts else 0.0

    def _end_ramps(self) -> bool:
        """With nobody else to serve, nobody is held back. Says whether that helps."""
        held = [pool for pool in self._pools.values() if pool.ramp is not None]
        for pool in held:
            self._end_ramp(pool)
            self._settle(pool, slowly=False)
        return bool(held)

    def _end_ramp(self, pool: LivePool) -> None:
        pool.ramp = None
        self._report(f"pool {State.SERVING}", pool=str(pool.address), before=State.WARMING, sessions=pool.sessions)

    def _forget_if_done(self, pool: LivePool) -> None:
        if pool.leaving and not pool.sessions:
            del self._pools[pool.address], self._by_endpoint[pool.endpoint]
            self._report("pool gone", pool=str(pool.address))
