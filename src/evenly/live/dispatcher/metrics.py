"""The fleet's figures for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from evenly.live.admin.exposition import Family, by_label, counter, gauge, lines, per_pool, pick_seconds
from evenly.live.admin.metrics import policy_figures, pool_figures
from evenly.live.balancer.latency import Latency
from evenly.live.dispatcher.snapshot import FleetSnapshot


def fleet_metrics(snapshot: FleetSnapshot, latency: Latency) -> Iterator[str]:
    """Yield the text of all figures in pieces."""
    families = [
        *_pools(snapshot),
        *policy_figures(snapshot.state.threshold, snapshot.alpha, snapshot.tokens),
        *_gauges(snapshot),
        *_counts(snapshot),
        pick_seconds(latency, "Time from reading a pick request to its answer, inside the dispatcher."),
    ]
    return lines(families)


def _pools(snapshot: FleetSnapshot) -> Iterator[Family]:
    pools = snapshot.state.pools
    yield from pool_figures(lambda: ((pool.name, pool.sessions, pool.state) for pool in pools))
    yield per_pool(
        "evenly_pool_expected_sessions",
        "Clients on their way to the pool.",
        ((pool.name, pool.expected) for pool in pools),
    )


def _gauges(snapshot: FleetSnapshot) -> Iterator[Family]:
    yield gauge("evenly_agents", "Agents connected to this dispatcher.", len(snapshot.connected))
    yield gauge("evenly_store_available", "1 if the store is reachable, else 0.", snapshot.store.available)


def _counts(snapshot: FleetSnapshot) -> Iterator[Family]:
    yield by_label("counter", "evenly_picks_total", "Sessions placed, by the token used.", "kind", snapshot.picks)
    yield by_label("counter", "evenly_errors_total", "Rejected requests, by code.", "code", snapshot.errors)
    yield by_label("counter", "evenly_messages_total", "Messages from agents.", "kind", snapshot.messages)
    yield counter("evenly_store_outages_total", "How often the shared store was lost.", snapshot.store.outages)
    yield counter("evenly_expired_total", "Places that no client came for in time.", snapshot.state.expired)
    yield counter("evenly_released_total", "Places that clients gave back.", snapshot.state.released)
