"""The fleet's figures for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from evenly.live.admin.metrics import pick_seconds
from evenly.live.balancer.latency import Latency
from evenly.live.dispatcher.views import FleetView


def fleet_metrics(view: FleetView, latency: Latency) -> bytes:
    """Return all figures in the text format of Prometheus."""
    registry = CollectorRegistry()
    registry.register(_Figures(view, latency))
    return generate_latest(registry)


class _Figures(Collector):
    def __init__(self, view: FleetView, latency: Latency) -> None:
        self._view = view
        self._latency = latency

    def collect(self) -> Iterator[Metric]:
        """Yield the figures."""
        yield from self._pools()
        yield from self._gauges()
        yield from self._counts()
        yield pick_seconds(self._latency, "Time from reading a pick request to its answer, inside the dispatcher.")

    def _pools(self) -> Iterator[Metric]:
        sessions = GaugeMetricFamily("evenly_pool_sessions", "Open sessions.", labels=["pool"])
        expected = GaugeMetricFamily(
            "evenly_pool_expected_sessions", "Clients on their way to the pool.", labels=["pool"]
        )
        state = GaugeMetricFamily(
            "evenly_pool_state", "1 for the state that the pool is in.", labels=["pool", "state"]
        )
        for pool in self._view.pools:
            sessions.add_metric([pool.name], pool.sessions)
            expected.add_metric([pool.name], pool.expected)
            state.add_metric([pool.name, pool.state.value], 1)
        yield from (sessions, expected, state)

    def _gauges(self) -> Iterator[Metric]:
        view = self._view
        yield GaugeMetricFamily("evenly_threshold", "The threshold in force.", view.threshold)
        yield GaugeMetricFamily("evenly_alpha", "The alpha that the threshold is learned with.", view.alpha)
        tokens = GaugeMetricFamily("evenly_tokens", "Tokens that the dispatcher holds.", labels=["color"])
        tokens.add_metric(["green"], view.tokens.green)
        tokens.add_metric(["yellow"], view.tokens.yellow)
        yield tokens
        yield GaugeMetricFamily("evenly_agents", "Agents connected to this dispatcher.", view.agents)
        yield GaugeMetricFamily(
            "evenly_store_available", "1 if the store is reachable, else 0.", int(view.store.available)
        )

    def _counts(self) -> Iterator[Metric]:
        view = self._view
        yield _by("evenly_picks", "Sessions placed, by the token used.", "kind", view.picks)
        yield _by("evenly_errors", "Rejected requests, by code.", "code", view.errors)
        yield _by("evenly_messages", "Messages from agents.", "kind", view.messages.model_dump())
        yield CounterMetricFamily("evenly_notices", "Threshold notices sent to agents.", view.notices)
        yield CounterMetricFamily("evenly_expired", "Places that no client came for in time.", view.expired)
        yield CounterMetricFamily("evenly_released", "Places that clients gave back.", view.released)


def _by(name: str, text: str, label: str, counts: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, text, labels=[label])
    for value, count in counts.items():
        family.add_metric([value], count)
    return family
