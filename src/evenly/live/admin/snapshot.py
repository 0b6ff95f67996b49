"""The balancer at one moment: copied at once, so that the figures agree, and made into text in steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import NamedTuple

from evenly.live.admin.json_pieces import json_pieces
from evenly.live.admin.schema import DiscoveryView, EnvoyView, StoreView
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.lifecycle import SHOWN, State


class PoolRow(NamedTuple):
    """A pool, with the fields of `PoolView`. Of these, there may be thousands."""

    address: str
    sessions: int
    unpicked: int
    elsewhere: int
    state: State
    weight: float
    source: str


class Snapshot:
    """Copies of the balancer's figures. With 1,000 pools, they take a tenth of a millisecond."""

    def __init__(self, balancer: Balancer) -> None:
        pools = balancer.pools
        # One list per field: a tuple per pool would keep the garbage collector busy.
        self._addresses = [pool.address for pool in pools]
        self._picked = [pool.picked for pool in pools]
        self._unpicked = [pool.unpicked for pool in pools]
        self._elsewhere = [pool.elsewhere for pool in pools]
        self._stages = [pool.stage for pool in pools]
        self._weights = [pool.weight for pool in pools]
        self._sources = [pool.source for pool in pools]
        self.thresholds = {weight: balancer.threshold_for(weight) for weight in sorted(set(self._weights))}
        self.policy = balancer.name
        self.alpha = balancer.alpha
        self.threshold = balancer.threshold
        tokens = balancer.tokens
        self.tokens = None if tokens is None else {"green": tokens[0], "yellow": tokens[1]}
        self.messages: dict[str, int] = asdict(balancer.messages)
        self.picks = dict(balancer.picks)
        self.unpicked_total = balancer.unpicked_total
        self.moved_total = balancer.moved_total

    def pools(self) -> Iterator[PoolRow]:
        """Yield the pools, in the order in which they were added."""
        for address, picked, unpicked, elsewhere, stage, weight, source in zip(
            self._addresses,
            self._picked,
            self._unpicked,
            self._elsewhere,
            self._stages,
            self._weights,
            self._sources,
            strict=True,
        ):
            sessions = picked + unpicked + elsewhere
            yield PoolRow(str(address), sessions, unpicked, elsewhere, SHOWN[stage], weight, source)

    def classes(self) -> Iterator[dict[str, float | int | None]]:
        """Yield the fields of a `ClassView` for each weight."""
        pools = Counter(self._weights)
        for weight, threshold in self.thresholds.items():
            yield {"weight": weight, "pools": pools[weight], "threshold": threshold}

    def json(
        self,
        envoys: Iterable[EnvoyView],
        store: StoreView | None,
        discovery: Iterable[DiscoveryView] = (),
        *,
        changes_survive: bool = False,
    ) -> Iterator[str]:
        """Yield the JSON of a `StateView`."""
        return json_pieces(
            {
                "policy": self.policy,
                "alpha": self.alpha,
                "threshold": self.threshold,
                "pools": (pool._asdict() for pool in self.pools()),
                "classes": self.classes(),
                "sessions": sum(self._picked) + sum(self._unpicked) + sum(self._elsewhere),
                "tokens": self.tokens,
                "messages": self.messages,
                "picks": self.picks,
                "unpicked_sessions": self.unpicked_total,
                "moved_sessions": self.moved_total,
                "envoys": (envoy.model_dump() for envoy in envoys),
                "store": None if store is None else store.model_dump(),
                "discovery": [each.model_dump() for each in discovery],
                "changes_survive": changes_survive,
            }
        )
