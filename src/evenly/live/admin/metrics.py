"""The balancer's figures for Prometheus, read from the balancer on request: nothing is counted twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from math import inf

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from evenly.live.admin.schema import RefusedView, StoreView
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.latency import Latency

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4


def metrics_text(
    balancer: Balancer, latency: Latency, store: StoreView | None = None, refused: RefusedView | None = None
) -> bytes:
    """Return all figures in the text format of Prometheus; those of the store, if there is one."""
    registry = CollectorRegistry()
    registry.register(_Figures(balancer, latency, store, refused))
    return generate_latest(registry)


class _Figures(Collector):
    def __init__(
        self, balancer: Balancer, latency: Latency, store: StoreView | None, refused: RefusedView | None
    ) -> None:
        self._balancer = balancer
        self._latency = latency
        self._store = store
        self._refused = refused

    def collect(self) -> Iterator[Metric]:
        """Yield the current figures."""
        yield from self._pools()
        yield from self._policy()
        yield from self._sessions()
        if self._store is not None:
            yield from self._sharing(self._store)
        if self._refused is not None:
            yield from _refusals(self._refused)
        yield pick_seconds(self._latency, "Time from receiving a pick request to answering it, inside the picker.")

    def _pools(self) -> Iterator[Metric]:
        sessions = GaugeMetricFamily("evenly_pool_sessions", "Open sessions.", labels=["pool"])
        unpicked = GaugeMetricFamily(
            "evenly_pool_unpicked_sessions", "Open sessions that the picker did not pick.", labels=["pool"]
        )
        state = GaugeMetricFamily(
            "evenly_pool_state", "1 for the state that the pool is in.", labels=["pool", "state"]
        )
        for pool in self._balancer.pools:
            name = str(pool.address)
            sessions.add_metric([name], pool.sessions)
            unpicked.add_metric([name], pool.unpicked)
            state.add_metric([name, pool.state], 1)
        yield from (sessions, unpicked, state)

    def _policy(self) -> Iterator[Metric]:
        """Yield threshold, alpha and tokens, as far as the policy has them."""
        balancer = self._balancer
        if balancer.threshold is not None:
            yield GaugeMetricFamily("evenly_threshold", "The threshold in force.", balancer.threshold)
        if balancer.alpha is not None:
            yield GaugeMetricFamily(
                "evenly_alpha", "The alpha that the threshold is learned with.", balancer.alpha
            )
        if balancer.tokens is not None:
            tokens = GaugeMetricFamily("evenly_tokens", "Tokens that the dispatcher holds.", labels=["color"])
            for color, count in zip(("green", "yellow"), balancer.tokens, strict=True):
                tokens.add_metric([color], count)
            yield tokens

    def _sessions(self) -> Iterator[Metric]:
        balancer = self._balancer
        picks = CounterMetricFamily(
            "evenly_picks", "Sessions that the picker placed, by the token used or by the policy.", labels=["kind"]
        )
        kinds = ("green", "yellow", "any") if balancer.tokens is not None else (balancer.name,)
        for kind in kinds:
            picks.add_metric([kind], balancer.picks[kind])
        messages = CounterMetricFamily("evenly_messages", "Messages from pools to dispatcher.", labels=["color"])
        for color, count in asdict(balancer.messages).items():
            messages.add_metric([color], count)
        yield from (picks, messages)
        yield CounterMetricFamily(
            "evenly_unpicked_sessions",
            "Sessions that Envoy placed without a pick.",
            balancer.unpicked_total,
        )
        yield CounterMetricFamily(
            "evenly_moved_sessions",
            "Sessions served by a different pool than the one picked.",
            balancer.moved_total,
        )

    def _sharing(self, store: StoreView) -> Iterator[Metric]:
        elsewhere = GaugeMetricFamily(
            "evenly_pool_elsewhere_sessions", "Open sessions of other pickers.", labels=["pool"]
        )
        for pool in self._balancer.pools:
            elsewhere.add_metric([str(pool.address)], pool.elsewhere)
        yield elsewhere
        yield GaugeMetricFamily("evenly_store_available", "1 if the shared store can be used.", store.available)
        yield GaugeMetricFamily("evenly_store_pickers", "Other pickers that share the store.", store.pickers)


def _refusals(refused: RefusedView) -> Iterator[Metric]:
    yield CounterMetricFamily(
        "evenly_refused_clients", "Connections that Envoy closed at once: it had too many.", refused.clients
    )
    yield CounterMetricFamily(
        "evenly_refused_requests", "Requests that Envoy answered with 503: it had too many.", refused.requests
    )
    yield CounterMetricFamily(
        "evenly_silent_clients", "Connections that Envoy closed: no whole request came in time.", refused.silent
    )


def pick_seconds(latency: Latency, text: str) -> Metric:
    """Return the histogram of pick latency."""
    buckets = [("+Inf" if bound == inf else str(bound), count) for bound, count in latency.cumulative()]
    return HistogramMetricFamily("evenly_pick_seconds", text, buckets=buckets, sum_value=latency.total)
