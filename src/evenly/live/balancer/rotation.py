"""The pools in rotation: those that may get sessions now, and what the policy knows about them.

What must be here: every change of a pool's session counts, of its weight, of its membership in the policy and of
its slow start. `Session` and `Balancer` are the only callers. What must not: a pool's life cycle, its addresses,
or reports of changes.

A session counts from its pick, so a burst spreads evenly. The sessions of a pool out of rotation (draining,
failing, removed) and of a pool at its slow-start cap are counted too, and the policy gets them when the pool joins
again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from math import fsum

from evenly.core import Choose, Policy, ThresholdPolicy, UtilityThreshold, takes_back
from evenly.live.balancer.lifecycle import LifecycleError, Stage
from evenly.live.balancer.pool import LivePool
from evenly.live.balancer.slow_start import Ramp
from evenly.live.balancer.subset import arrive_among, join, token_among

_FEW = 8  # changes of `elsewhere` that the policy gets one by one
RETURNED = "returned"  # the kind of a pick that the policy did not make: the client came back


class Rotation:
    """The policy and its members.

    `warmed_up` is called when the slow start of a pool ends, `emptied` when a leaving pool has lost its last
    session. Since the start, `picks` counts picks by the token used (by policy `name`, for policies without
    tokens), `unpicked_total` the sessions not placed by the balancer, `moved_total` those served by a different
    pool than the one picked. `counted` is called after each change of a pool's own sessions. `fresh` makes a
    policy like this one, without pools.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        name: str,
        choose: Choose,
        clock: Callable[[], float],
        slow_start: float,
        warmed_up: Callable[[LivePool], None],
        emptied: Callable[[LivePool], None],
        counted: Callable[[LivePool], None] | None = None,
        fresh: Callable[[], Policy] | None = None,
    ) -> None:
        self.policy = policy
        self._fresh = fresh
        self.picks: Counter[str] = Counter()
        self.unpicked_total = 0
        self.moved_total = 0
        self._name = name
        self._choose = choose
        self._clock = clock
        self._slow_start = slow_start
        self._warmed_up = warmed_up
        self._emptied = emptied
        self._counted = counted
        self._dispatcher = policy.dispatcher if isinstance(policy, ThresholdPolicy) else None
        self._pools: dict[LivePool, None] = {}  # a set that keeps the order: pools in rotation, capped or not
        self._total = 0  # sessions of these pools
        self._weights: Counter[float] = Counter()  # the number of these pools

    # --- sessions ----------------------------------------------------------------------------------------------

    def pick(self) -> LivePool | None:
        """Choose the pool of a new session and count it in; None if no pool is in rotation."""
        kind = self._kind()
        pool = self.policy.arrive(self._choose)
        if pool is None and self._lift_caps():
            kind = self._kind()
            pool = self.policy.arrive(self._choose)
        if pool is None:
            return None
        assert isinstance(pool, LivePool)
        self._picked(pool, kind)
        return pool

    def pick_among(self, pools: Iterable[LivePool]) -> LivePool | None:
        """Choose the pool of a new session among these, and count it in; None if none of them may be picked.

        Of pools in rotation that are all at their slow-start cap, any may be picked: no other pool may serve.
        """
        able = [pool for pool in pools if pool in self._pools]
        members = [pool for pool in able if pool.member]
        kind = token_among(self.policy, members) if isinstance(self.policy, ThresholdPolicy) else self._name
        if members:
            pool = arrive_among(self.policy, members, self._choose, self._fresh)
            self._picked(pool, kind)
        elif able:
            pool = self._choose(able)
            self.picks[kind] += 1
            self._count_in(pool)
        else:
            return None
        return pool

    def return_to(self, pool: LivePool, margin: int) -> bool:
        """Count in a session whose client comes back to the pool. Return False if the pool cannot take it.

        It can if the policy may pick it now and it has at most its threshold plus the margin, or the sessions due
        to it if the policy has no threshold. The threshold does not learn from such a session: it shows where the
        client was before, and not what the dispatcher sees now.
        """
        if not (pool.member and takes_back(pool.sessions, self._enough(pool), margin)):
            return False
        self.picks[RETURNED] += 1
        self._count_in(pool)
        return True

    def adopt(self, pool: LivePool) -> None:
        """Count in a session that the pool serves without having been picked."""
        self.unpicked_total += 1
        self._count_in(pool)

    def move(self, picked: LivePool, served: LivePool) -> None:
        """Move a session from the pool that was picked to the pool that serves it."""
        self.moved_total += 1
        self._count_in(served)
        self.count_out(picked)

    def count_out(self, pool: LivePool) -> None:
        """Count out a session that has ended, or that the pool does not serve."""
        pool.picked -= 1
        self._own_changed(pool, -1)
        if pool.member:
            self.policy.depart(pool)
        elif pool.leaving and not pool.own:
            self._emptied(pool)

    def set_unpicked(self, pool: LivePool, count: int) -> None:
        """Set the number of the pool's open sessions that only the gateways' admin ports show.

        There may be thousands, so the policy does not get them one by one: the pool leaves and joins again.
        """
        more = max(count, 0) - pool.unpicked
        if more == 0:
            return
        if pool.stage is Stage.GONE:
            raise LifecycleError(f"Pool {pool.address} is {pool.stage.name}; its sessions cannot be set.")
        if pool.member:
            self.policy.leave(pool)
            join(self.policy, pool, pool.sessions + more)
        pool.unpicked += more
        self._own_changed(pool, more)
        self.unpicked_total += max(more, 0)
        if pool.ramp is not None:
            self._refresh(pool)
        if pool.leaving and not pool.own:
            self._emptied(pool)

    def set_elsewhere(self, pool: LivePool, count: int) -> None:
        """Set the number of the pool's open sessions that other balancers count.

        A few changes reach the policy one by one, as if the sessions came and went here: then a pool keeps its
        place, and its messages are those it would send. For many at once, the pool leaves and joins again.
        """
        more = count - pool.elsewhere
        if pool.member and abs(more) <= _FEW:
            for _ in range(more):
                self.policy.record_arrival(pool)
            for _ in range(-more):
                self.policy.depart(pool)
        elif pool.member:
            self.policy.leave(pool)
            join(self.policy, pool, pool.sessions + more)
        pool.elsewhere = count
        if pool in self._pools:
            self._total += more
        if pool.ramp is not None:
            self._refresh(pool)

    # --- pools -------------------------------------------------------------------------------------------------

    def put_in(self, pool: LivePool, *, slowly: bool) -> None:
        """Let the pool get sessions; with `slowly`, ramp it up if slow start is configured."""
        self._pools[pool] = None
        self._total += pool.sessions
        self._count_weight(pool, 1)
        if slowly and self._slow_start > 0:
            pool.ramp = Ramp(begun=self._clock(), first=pool.sessions, seconds=self._slow_start)
        join(self.policy, pool, pool.sessions)  # a cap always leaves room for one session
        pool.member = True

    def take_out(self, pool: LivePool) -> None:
        """Stop giving the pool sessions."""
        if pool in self._pools:
            del self._pools[pool]
            self._total -= pool.sessions
            self._count_weight(pool, -1)
        pool.ramp = None
        if pool.member:
            self.policy.leave(pool)
            pool.member = False

    def tick(self) -> None:
        """Raise slow-start caps as time passes."""
        for pool in [pool for pool in self._pools if pool.ramp is not None]:
            self._refresh(pool)

    # --- weights -----------------------------------------------------------------------------------------------

    @property
    def weights(self) -> Mapping[float, int]:
        """The number of pools in rotation of each weight."""
        return self._weights

    def due(self, pool: LivePool) -> float:
        """Return the sessions due to a pool in rotation: its part by weight, the mean if all are equal."""
        return self._total / fsum(count * (weight / pool.weight) for weight, count in self._weights.items())

    def set_weight(self, pool: LivePool, weight: float) -> None:
        """Set the weight of a pool, in rotation or not."""
        if pool in self._pools:
            self._count_weight(pool, -1)
        pool.weight = weight
        if pool in self._pools:
            self._count_weight(pool, 1)
        if pool.member:
            self.policy.leave(pool)
            join(self.policy, pool, pool.sessions)
        if pool.ramp is not None:
            self._refresh(pool)

    def fit(self) -> None:
        """Fit the thresholds to the open sessions, after weights have changed."""
        if isinstance(self.policy, UtilityThreshold):
            self.policy.fit(self._total, self._weights)

    def catch_up(self, *, slack: int) -> None:
        """Raise the thresholds if they are too low for the open sessions, by more than `slack` for each pool."""
        if isinstance(self.policy, ThresholdPolicy):
            self.policy.catch_up(self._total, self._weights, slack)

    def _count_weight(self, pool: LivePool, more: int) -> None:
        self._weights[pool.weight] += more
        if not self._weights[pool.weight]:
            del self._weights[pool.weight]

    # --- the policy's view -------------------------------------------------------------------------------------

    def _picked(self, pool: LivePool, kind: str) -> None:
        """Count in a session that the policy has placed, and counted."""
        pool.picked += 1
        self.picks[kind] += 1
        self._total += 1  # a pool that was picked is in rotation
        if self._counted is not None:
            self._counted(pool)
        if pool.ramp is not None:
            self._refresh(pool)

    def _enough(self, pool: LivePool) -> int:
        """Return the sessions up to which the pool is not above the others."""
        if isinstance(self.policy, UtilityThreshold):
            return self.policy.threshold_for(pool.weight)
        return int(self.due(pool)) if self._dispatcher is None else self._dispatcher.threshold

    def _kind(self) -> str:
        if self._dispatcher is None:
            return self._name
        return "green" if self._dispatcher.green else "yellow" if self._dispatcher.yellow else "any"

    def _count_in(self, pool: LivePool) -> None:
        pool.picked += 1
        self._own_changed(pool, 1)
        if pool.member:
            self.policy.record_arrival(pool)
        if pool.ramp is not None:
            self._refresh(pool)

    def _own_changed(self, pool: LivePool, more: int) -> None:
        if pool in self._pools:
            self._total += more
        if self._counted is not None:
            self._counted(pool)

    def _refresh(self, pool: LivePool) -> None:
        """Make a pool in rotation a member of the policy, unless it has reached its slow-start cap."""
        now, ramp = self._clock(), pool.ramp
        if ramp is not None and ramp.over(now):
            self._end_ramp(pool)
            ramp = None
        wanted = ramp is None or pool.sessions + 1 <= ramp.cap(now, self.due(pool))
        if wanted and not pool.member:
            join(self.policy, pool, pool.sessions)
        elif pool.member and not wanted:
            self.policy.leave(pool)
        pool.member = wanted

    def _lift_caps(self) -> bool:
        """Lift all slow-start caps, because no other pool can serve. Return True if any were lifted."""
        capped = [pool for pool in self._pools if pool.ramp is not None]
        for pool in capped:
            self._end_ramp(pool)
            self._refresh(pool)
        return bool(capped)

    def _end_ramp(self, pool: LivePool) -> None:
        pool.ramp = None
        self._warmed_up(pool)
