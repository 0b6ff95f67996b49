"""The balancer's figures for Prometheus, read from the balancer on request: nothing is counted twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from evenly.live.addresses import weight_text
from evenly.live.admin.exposition import (
    Family,
    Sample,
    by_label,
    counter,
    gauge,
    labels,
    lines,
    per_pool,
    pick_seconds,
)
from evenly.live.admin.schema import DiscoveryView, RefusedView, StoreView
from evenly.live.admin.snapshot import Snapshot
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.latency import Latency
from evenly.live.balancer.rotation import RETURNED


def balancer_metrics(
    balancer: Balancer,
    latency: Latency,
    store: StoreView | None = None,
    refused: RefusedView | None = None,
    returns: Mapping[str, int] | None = None,
    discovery: Sequence[DiscoveryView] = (),
    restarts: Mapping[str, int] | None = None,
) -> Iterator[str]:
    """Read all figures now, and yield their text in pieces; those of the store, if there is one.

    `returns` are the requests by what became of their tokens, if sessions are sticky.
    """
    snapshot = Snapshot(balancer)
    families = [
        *pool_figures(lambda: ((pool.address, pool.sessions, pool.state) for pool in snapshot.pools())),
        per_pool(
            "evenly_pool_unpicked_sessions",
            "Open sessions that the picker did not pick.",
            ((pool.address, pool.unpicked) for pool in snapshot.pools()),
        ),
        per_pool(
            "evenly_pool_weight",
            "The pool's share of the sessions, relative to other pools.",
            ((pool.address, pool.weight) for pool in snapshot.pools()),
        ),
        *_thresholds(snapshot),
        *policy_figures(snapshot.threshold, snapshot.alpha, snapshot.tokens),
        *_sessions(snapshot, returning=returns is not None),
        *(() if returns is None else _returns(returns)),
        *(() if store is None else _sharing(snapshot, store)),
        *(() if refused is None else _refusals(refused)),
        *(_discovery(discovery) if discovery else ()),
        *(() if restarts is None else _restarts(restarts)),
        pick_seconds(latency, "Time from receiving a pick request to answering it, inside the picker."),
    ]
    return lines(families)


def pool_figures(pools: Callable[[], Iterable[tuple[str, int, str]]]) -> Iterator[Family]:
    """Yield what every admin port shows of pools. `pools` returns name, sessions and state of each, twice."""
    yield per_pool("evenly_pool_sessions", "Open sessions.", ((name, sessions) for name, sessions, _ in pools()))
    yield Family(
        "gauge",
        "evenly_pool_state",
        "1 for the state that the pool is in.",
        (Sample(1, labels(pool=name, state=state)) for name, _, state in pools()),
    )


def policy_figures(threshold: int | None, alpha: float | None, tokens: dict[str, int] | None) -> Iterator[Family]:
    """Yield threshold, alpha and tokens, as far as the policy has them."""
    if threshold is not None:
        yield gauge("evenly_threshold", "The threshold in force.", threshold)
    if alpha is not None:
        yield gauge("evenly_alpha", "The alpha that the threshold is learned with.", alpha)
    if tokens is not None:
        yield by_label("gauge", "evenly_tokens", "Tokens that the dispatcher holds.", "color", tokens)


def _thresholds(snapshot: Snapshot) -> Iterator[Family]:
    found = {weight_text(weight): threshold for weight, threshold in snapshot.thresholds.items()}
    known = {weight: threshold for weight, threshold in found.items() if threshold is not None}
    if known:
        text = "The threshold of pools of this weight."
        yield by_label("gauge", "evenly_class_threshold", text, "weight", known)


def _sessions(snapshot: Snapshot, *, returning: bool) -> Iterator[Family]:
    kinds = [snapshot.policy] if snapshot.tokens is None else ["green", "yellow", "any"]
    kinds += [RETURNED] if returning else []
    yield by_label(
        "counter",
        "evenly_picks_total",
        "Sessions that the picker placed, by the token used or by the policy.",
        "kind",
        {kind: snapshot.picks.get(kind, 0) for kind in kinds},
    )
    yield by_label(
        "counter", "evenly_messages_total", "Messages from pools to dispatcher.", "color", snapshot.messages
    )
    yield counter(
        "evenly_unpicked_sessions_total", "Sessions that Envoy placed without a pick.", snapshot.unpicked_total
    )
    yield counter(
        "evenly_moved_sessions_total",
        "Sessions served by a different pool than the one picked.",
        snapshot.moved_total,
    )


def _returns(returns: Mapping[str, int]) -> Iterator[Family]:
    yield by_label(
        "counter",
        "evenly_sticky_requests_total",
        "Requests by their token: new (none), kept (went to its pool), moved (placed again), ignored (not valid).",
        "result",
        returns,
    )


def _sharing(snapshot: Snapshot, store: StoreView) -> Iterator[Family]:
    yield per_pool(
        "evenly_pool_elsewhere_sessions",
        "Open sessions of other pickers.",
        ((pool.address, pool.elsewhere) for pool in snapshot.pools()),
    )
    yield gauge("evenly_store_available", "1 if the shared store can be used.", store.available)
    yield gauge("evenly_store_pickers", "Other pickers that share the store.", store.pickers)


def _discovery(sources: Sequence[DiscoveryView]) -> Iterator[Family]:
    servers = {each.source: each.servers for each in sources}
    ages = {each.source: each.age for each in sources if each.age is not None}
    failing = {each.source: bool(each.problem) for each in sources}
    failures = {each.source: each.failures for each in sources}
    text = "Servers in the DNS answer in use."
    yield by_label("gauge", "evenly_discovery_servers", text, "source", servers)
    text = "Time since the last good answer of DNS; missing before the first."
    yield by_label("gauge", "evenly_discovery_age_seconds", text, "source", ages)
    text = "1 if the last lookup failed or found no server: the answer before it stays in use."
    yield by_label("gauge", "evenly_discovery_failing", text, "source", failing)
    text = "Lookups that failed or found no server."
    yield by_label("counter", "evenly_discovery_failures_total", text, "source", failures)


def _refusals(refused: RefusedView) -> Iterator[Family]:
    yield counter(
        "evenly_refused_clients_total", "Connections that Envoy closed at once: it had too many.", refused.clients
    )
    yield counter(
        "evenly_refused_requests_total",
        "Requests that Envoy answered with 503: it had too many.",
        refused.requests,
    )
    yield counter(
        "evenly_silent_clients_total",
        "Connections that Envoy closed: no whole request came in time.",
        refused.silent,
    )


def _restarts(restarts: Mapping[str, int]) -> Iterator[Family]:
    text = "How often the gateway found a process dead and started it again."
    yield by_label("counter", "evenly_restarts_total", text, "process", restarts)
