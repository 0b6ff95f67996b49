"""The picker's side of the dashboard: the balancer's figures, copied at once so that they agree."""

from __future__ import annotations

from collections.abc import Callable

from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.lifecycle import SHOWN, Stage, State
from evenly.live.balancer.pool import LivePool
from evenly.live.dashboard.source import GREEN, NO_TOKEN, YELLOW, About, Figures, Part, Pools, spread_of

_STATES = tuple(State)
_POSITIONS = {stage: _STATES.index(state) for stage, state in SHOWN.items()}


class BalancerSource:
    """Shows a balancer. `parts` returns the other processes, `kind` is the process that has this one.

    `changes_survive` returns whether changes of the pools survive its restart.
    """

    def __init__(
        self,
        balancer: Balancer,
        parts: Callable[[], list[Part]],
        kind: str = "picker",
        changes_survive: Callable[[], bool] = lambda: False,
    ) -> None:
        self._changes_survive = changes_survive
        self.about = About(
            kind=kind,
            states=tuple(state.value for state in _STATES),
            even_states=(State.SERVING.value,),
            actions=("add", "drain", "undrain", "remove", *(("weigh",) if balancer.follows_weights else ())),
        )
        self._balancer = balancer
        self.parts = parts

    def figures(self) -> Figures:
        """Return the figures of now."""
        balancer = self._balancer
        pools = balancer.pools
        serving = [pool.sessions for pool in pools if pool.stage is Stage.SERVING]
        return Figures(
            policy=balancer.name,
            alpha=balancer.alpha,
            threshold=balancer.threshold,
            thresholds=_thresholds(balancer, pools),
            sessions=balancer.sessions,
            starts=sum(balancer.picks.values()) + balancer.unpicked_total,
            spread=spread_of(serving),
            tokens=balancer.tokens,
            messages={},
            changes_survive=self._changes_survive(),
        )

    def pools(self) -> Pools:
        """Return copies of the pools' figures. With 1,000 pools, they take a third of a millisecond."""
        pools = self._balancer.pools
        return Pools(
            names=[pool.address for pool in pools],
            addresses=[pool.source for pool in pools] if any(pool.source for pool in pools) else [],
            weights=[pool.weight for pool in pools],
            sessions=[pool.sessions for pool in pools],
            states=[_POSITIONS[pool.stage] for pool in pools],
            tokens=self._tokens(pools),
        )

    def _tokens(self, pools: tuple[LivePool, ...]) -> list[int]:
        holders = self._balancer.token_holders
        if holders is None:
            return [NO_TOKEN] * len(pools)
        green, yellow = holders
        return [GREEN if pool in green else YELLOW if pool in yellow else NO_TOKEN for pool in pools]


def _thresholds(balancer: Balancer, pools: tuple[LivePool, ...]) -> dict[float, int | None]:
    """Return the threshold of each weight, if there are several."""
    weights = {pool.weight for pool in pools}
    return {weight: balancer.threshold_for(weight) for weight in sorted(weights)} if len(weights) > 1 else {}
