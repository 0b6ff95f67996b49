"""The balancer: the pools, their life cycle, and the sessions opened at them.

Decisions only: no I/O, and time and randomness are arguments. Counts and the policy are in `rotation.py`, the life
cycle of a pool in `lifecycle.py`, what a session may do in `session.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping

from evenly.core import Choose, LearningRule, MessageCount, Policy, ThresholdPolicy, UtilityThreshold
from evenly.errors import InputError
from evenly.live.addresses import MAX_POOLS, Address, check_weights
from evenly.live.balancer.events import (
    AlphaChanged,
    BalancerEvent,
    PoolAdded,
    PoolFailed,
    PoolGone,
    PoolStateChanged,
    PoolWeightChanged,
    ThresholdChanged,
)
from evenly.live.balancer.lifecycle import Event, Stage, State
from evenly.live.balancer.pool import LivePool, Sample
from evenly.live.balancer.rotation import Rotation
from evenly.live.balancer.session import Ledger, Session
from evenly.policies import LIVE_WEIGHTED, check_live_weight

_SAMPLE_S = 1.0  # longer than a dead pool goes unnoticed
_BY_WEIGHT = {"threshold": "threshold-utility"}  # the name of a policy once weights differ


class Balancer:
    """The pools and the sessions open at them.

    `slow_start` is the time in seconds over which a pool that is added, or comes back, ramps up to the mean.
    `restart_grace` is the time in seconds after a restart in which no pool is forgotten, since gateways may still
    report open sessions there. `report` is called with every event.

    With several balancers, `counted` is called after each change of a pool's own sessions, and `elsewhere` returns
    the sessions of other balancers at the endpoint of a new pool. `record` is called with the pool of each session
    that ends, and with the seconds that it lasted, from its pick. `fresh` makes a policy like `policy`, to pick
    among some of the pools.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        name: str,
        choose: Choose,
        clock: Callable[[], float],
        slow_start: float,
        report: Callable[[BalancerEvent], None],
        restart_grace: float = 0.0,
        counted: Callable[[LivePool], None] | None = None,
        elsewhere: Callable[[Address], int] | None = None,
        record: Callable[[LivePool, float], None] | None = None,
        fresh: Callable[[], Policy] | None = None,
    ) -> None:
        self._name = name
        self._record = record
        self.rotation = Rotation(
            policy,
            name=name,
            choose=choose,
            clock=clock,
            slow_start=slow_start,
            warmed_up=self._go_on,
            emptied=self._forget_after_grace,
            counted=counted,
            fresh=fresh,
        )
        self._elsewhere = elsewhere
        self._clock = clock
        self._report = report
        self._pools: dict[Address, LivePool] = {}
        self._by_endpoint: dict[Address, LivePool] = {}
        self._grace_until = clock() + restart_grace
        self._dispatcher = policy.dispatcher if isinstance(policy, ThresholdPolicy) else None
        self._reported = self.threshold

    # --- read-only views ---------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name of the policy, which depends on whether all pools have the same weight."""
        same = len({pool.weight for pool in self._pools.values() if not pool.leaving}) <= 1
        return self._name if same else _BY_WEIGHT.get(self._name, self._name)

    @property
    def policy(self) -> Policy:
        """The policy that picks."""
        return self.rotation.policy

    @property
    def pools(self) -> tuple[LivePool, ...]:
        """All pools, in the order in which they were added."""
        return tuple(self._pools.values())

    @property
    def sessions(self) -> int:
        """The open sessions of all pools, with those of other balancers."""
        return sum(pool.sessions for pool in self._pools.values())

    @property
    def all_draining(self) -> bool:
        """Whether the operator has drained or removed every pool."""
        return all(pool.draining or pool.leaving for pool in self._pools.values())

    @property
    def follows_weights(self) -> bool:
        """Whether the policy gives pools sessions by their weights."""
        return self._name in LIVE_WEIGHTED

    @property
    def threshold(self) -> int | None:
        """The threshold in force, of the smallest weight if there are several; None for a policy without one."""
        if self.rotation.weights:
            return self.threshold_for(min(self.rotation.weights))
        return None if self._dispatcher is None else self._dispatcher.threshold

    def threshold_for(self, weight: float) -> int | None:
        """Return the threshold of pools of this weight; None for a policy without one."""
        if isinstance(self.policy, UtilityThreshold):
            return self.policy.threshold_for(weight)
        return None if self._dispatcher is None else self._dispatcher.threshold

    @property
    def alpha(self) -> float | None:
        """The alpha that the threshold is learned with; None if it is not learned."""
        rule = None if self._dispatcher is None else self._dispatcher.rule
        return None if rule is None else float(rule.alpha)

    @property
    def tokens(self) -> tuple[int, int] | None:
        """The numbers of green and yellow tokens held; None for a policy without tokens."""
        return None if self._dispatcher is None else (len(self._dispatcher.green), len(self._dispatcher.yellow))

    @property
    def token_holders(self) -> tuple[Container[object], Container[object]] | None:
        """The pools with a green and those with a yellow token out; None for a policy without tokens."""
        return None if self._dispatcher is None else (self._dispatcher.green, self._dispatcher.yellow)

    @property
    def messages(self) -> MessageCount:
        """The messages that pools have sent since the start."""
        return self.policy.messages

    @property
    def picks(self) -> Counter[str]:
        """The picks since the start, by the token used or by policy."""
        return self.rotation.picks

    @property
    def unpicked_total(self) -> int:
        """The sessions since the start that the balancer did not place."""
        return self.rotation.unpicked_total

    @property
    def moved_total(self) -> int:
        """The sessions since the start that a different pool served than the one picked."""
        return self.rotation.moved_total

    def pool(self, address: Address) -> LivePool:
        """Return the pool with this name. Raises InputError if there is none, or if it is leaving."""
        pool = self._pools.get(address)
        if pool is None or pool.leaving:
            known = ", ".join(str(other.address) for other in self.pools[:5] if not other.leaving) or "none"
            raise InputError(f"There is no pool {address}. Pools: {known}.")
        return pool

    def pool_at(self, endpoint: Address) -> LivePool | None:
        """Return the pool with this endpoint; None if there is none."""
        return self._by_endpoint.get(endpoint)

    # --- sessions ----------------------------------------------------------------------------------------------

    def open(self, *, via: Ledger | None = None, among: Iterable[Address] | None = None) -> Session | None:
        """Pick a pool and open a session there; None if no pool may be picked.

        `via` is the ledger of the gateway that asks, if it keeps one. With `among`, only these endpoints may be
        picked; those of no pool are ignored.
        """
        if among is None:
            pool = self.rotation.pick()
        else:
            pool = self.rotation.pick_among(
                dict.fromkeys(each for each in map(self.pool_at, among) if each is not None)
            )
        return None if pool is None else Session(self, via, pool)

    def reopen(self, pool: LivePool, *, margin: int, via: Ledger | None = None) -> Session | None:
        """Open a session at the pool that the client had before; None if the pool cannot take it.

        It must be in rotation, and have at most its threshold plus the margin.
        """
        return Session(self, via, pool) if self.rotation.return_to(pool, margin) else None

    def adopt(self, endpoint: Address, *, via: Ledger | None = None) -> Session | None:
        """Open a session that no pool was picked for, at the pool that serves it; None for an unknown endpoint."""
        if endpoint not in self._by_endpoint:
            return None
        session = Session(self, via, None)
        session.served_by(endpoint)
        return session

    def opened(self) -> float:
        """Return the time, for a session that begins; 0.0 if nothing is recorded."""
        return 0.0 if self._record is None else self._clock()

    def ended(self, pool: LivePool, opened: float) -> None:
        """Record a session that ends at the pool."""
        if self._record is not None:
            self._record(pool, self._clock() - opened)

    def set_unpicked(self, pool: LivePool, count: int) -> None:
        """Set the number of open sessions at the pool that only the gateways' admin ports show."""
        self.rotation.set_unpicked(pool, count)

    def set_elsewhere(self, pool: LivePool, count: int) -> None:
        """Set the number of open sessions at the pool that other balancers count."""
        self.rotation.set_elsewhere(pool, count)

    # --- pools -------------------------------------------------------------------------------------------------

    def add(
        self,
        address: Address,
        endpoint: Address,
        *,
        weight: float = 1.0,
        slowly: bool = True,
        source: str = "",
    ) -> LivePool:
        """Add a pool, or bring back one that is leaving. `source` is the name that DNS lists it under, if any."""
        check_live_weight(self._name, weight)
        old = self._pools.get(address)
        same = self._by_endpoint.get(endpoint)
        if old is not None and not old.leaving:
            raise InputError(f"Pool {address} already exists.")
        if same is not None and not same.leaving:
            raise InputError(f"Pool {address} already exists, as {same.address}.")
        if old is not None and old is not same:
            raise InputError(
                f"Pool {address} still has {old.own} sessions at {old.endpoint}; wait until they have ended."
            )
        if same is None and len(self._pools) >= MAX_POOLS:
            raise InputError(f"There can be at most {MAX_POOLS} pools.")
        if weight not in self.rotation.weights:
            check_weights([weight, *(pool.weight for pool in self._pools.values() if not pool.leaving)])
        pool = same or LivePool(address, endpoint)
        if pool.address != address:  # the same server under a new name
            del self._pools[pool.address]
            pool.address = address
        if same is None and self._elsewhere is not None:  # before it joins: slow start begins with these
            self.rotation.set_elsewhere(pool, self._elsewhere(endpoint))
        self.rotation.set_weight(pool, weight)
        pool.source, pool.added = source, self._clock()
        self._pools[address] = self._by_endpoint[endpoint] = pool
        self._report(PoolAdded(pool=address, endpoint=endpoint, weight=weight, source=source))
        self._apply(pool, Event.ADD, slowly=slowly)
        return pool

    def drain(self, address: Address) -> None:
        """Stop giving the pool new sessions; the open ones stay."""
        pool = self.pool(address)
        if not pool.draining:
            self._change(pool, Event.DRAIN)

    def undrain(self, address: Address) -> None:
        """Give the pool sessions again."""
        pool = self.pool(address)
        if pool.draining:
            self._change(pool, Event.UNDRAIN)

    def remove(self, address: Address) -> None:
        """Stop giving the pool new sessions, and forget it when its last session ends."""
        pool = self.pool(address)
        self._change(pool, Event.REMOVE)
        if not pool.own:
            self._forget_after_grace(pool)

    def set_source(self, address: Address, source: str) -> None:
        """Set the name that DNS lists the pool under; empty for a pool that stays whatever DNS lists."""
        self.pool(address).source = source

    def set_weights(self, weights: Mapping[Address, float]) -> None:
        """Change the weights of pools. The open sessions stay, and the thresholds are fitted to them."""
        new = {self.pool(address): weight for address, weight in weights.items()}
        for weight in new.values():
            check_live_weight(self._name, weight)
        check_weights(new.get(pool, pool.weight) for pool in self._pools.values() if not pool.leaving)
        changed = [(pool, pool.weight) for pool, weight in new.items() if pool.weight != weight]
        for pool, _ in changed:
            self.rotation.set_weight(pool, new[pool])
        if changed:
            self.rotation.fit()
        for pool, before in changed:
            self._report(PoolWeightChanged(pool=pool.address, before=before, weight=pool.weight))

    def set_failing(self, pool: LivePool, reason: str) -> None:
        """Record that the data plane's health checks fail, and why."""
        if not pool.failing:
            pool.failure = reason
            self._change(pool, Event.FAIL)

    def set_well(self, pool: LivePool) -> None:
        """Record that the pool has just passed a health check, or served a session."""
        pool.well_at = now = self._clock()
        if now - pool.sample.at >= _SAMPLE_S:
            pool.sample = Sample(now, pool.own, pool.sample.sessions)
        if pool.failing:
            self._change(pool, Event.RECOVER)
        elif pool.stage is Stage.CHECKING:
            self._go_on(pool)

    # --- learning, and time ------------------------------------------------------------------------------------

    def set_alpha(self, alpha: str, reason: str) -> None:
        """Use this alpha for learning from now on. `reason` is for the log."""
        rule, before = LearningRule(alpha), self.alpha
        if self._dispatcher is not None and before is not None and before != float(rule.alpha):
            self._dispatcher.rule = rule
            self._report(AlphaChanged(before=before, alpha=float(rule.alpha), reason=reason))

    def catch_up(self, *, slack: int = 0) -> None:
        """Raise the threshold to the mean, if it is lower by more than `slack`.

        Call it when sessions become known that this balancer did not learn from: those of an earlier balancer, or
        of others.
        """
        self.rotation.catch_up(slack=slack)

    def tick(self) -> None:
        """Raise slow-start caps, forget empty pools that are leaving, and report changes of the threshold."""
        for pool in self.pools:
            if pool.leaving and not pool.own:
                self._forget_after_grace(pool)
        self.rotation.tick()
        before, threshold = self._reported, self.threshold
        if before is not None and threshold is not None and before != threshold:
            self._reported = threshold
            self._report(ThresholdChanged(before=before, threshold=threshold))

    # --- the life cycle ----------------------------------------------------------------------------------------

    def _change(self, pool: LivePool, event: Event) -> None:
        """Apply an event, and report it if the state shown for the pool changes."""
        before = pool.state
        self._apply(pool, event)
        self._report_state(pool, before)

    def _apply(self, pool: LivePool, event: Event, *, slowly: bool = True) -> None:
        """Apply an event, and put the pool in rotation or take it out, depending on its new stage."""
        pool.apply(event)
        if pool.available:
            self.rotation.put_in(pool, slowly=slowly)
            self._skip_stages(pool)
        else:
            self.rotation.take_out(pool)

    def _go_on(self, pool: LivePool) -> None:
        """Let an available pool go on to its next stage: it was reached, or its slow start is over."""
        before = pool.state
        self._skip_stages(pool)
        self._report_state(pool, before)

    def _skip_stages(self, pool: LivePool) -> None:
        """Leave the stages that an available pool has behind it."""
        if pool.stage is Stage.CHECKING and pool.well_at is not None:
            pool.apply(Event.REACH)
        if pool.stage is Stage.WARMING and pool.ramp is None:
            pool.apply(Event.WARMED_UP)

    def _forget_after_grace(self, pool: LivePool) -> None:
        """Forget an empty pool. During the restart grace do nothing: gateways may still report sessions there."""
        if self._clock() < self._grace_until:
            return
        pool.apply(Event.EMPTIED)
        del self._pools[pool.address], self._by_endpoint[pool.endpoint]
        self._report(PoolGone(pool=pool.address))

    def _report_state(self, pool: LivePool, before: State) -> None:
        state, sessions, well_at = pool.state, pool.sessions, pool.well_at
        if state is before:
            return
        if state is not State.FAILING:
            self._report(PoolStateChanged(pool=pool.address, before=before, state=state, sessions=sessions))
            return
        self._report(
            PoolFailed(
                pool=pool.address,
                before=before,
                state=state,
                sessions=sessions,
                reason=pool.failure,
                seconds=None if well_at is None else self._clock() - well_at,
                lost=max(pool.sample.sessions - pool.own, pool.sample.before - pool.own, 0),
            )
        )
