"""The pools as Envoy's endpoint discovery (EDS) knows them: Envoys follow the picker, so pools have one home."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from evenly.live.addresses import Address
from evenly.live.balancer.pool import LivePool
from evenly.live.log import Log
from evenly.live.wire.frames import framed
from evenly.live.wire.protobuf import field, fields
from evenly.live.wire.streams import Stream

PATH = b"/envoy.service.endpoint.v3.EndpointDiscoveryService/StreamEndpoints"
_TYPE = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
_DRAINING = 3  # a health status: fallbacks should pass the pool over too
_MOST_NAMES = 10


class Endpoints:
    """All subscriptions, and the version of what they were told."""

    def __init__(self, pools: Callable[[], Iterable[LivePool]], log: Log) -> None:
        self._pools = pools
        self._log = log
        self._version = 0
        self._told: bytes | None = None
        self._subscriptions: set[Subscription] = set()

    def subscribe(self, stream: Stream) -> Subscription:
        """A stream on which an Envoy asks for endpoints."""
        subscription = Subscription(self, stream)
        self._subscriptions.add(subscription)
        return subscription

    def push(self) -> None:
        """Tell all Envoys if pools came or went, or drain."""
        now = self._assignment()
        if now == self._told:
            return
        self._told = now
        self._version += 1
        for subscription in self._subscriptions:
            subscription.tell()
            subscription.stream.connection.flush()

    def answer(self, names: Iterable[str]) -> bytes:
        """The pools, under each of the names of a cluster that was asked for."""
        endpoints = self._assignment()
        resources = [field(2, field(1, _TYPE) + field(2, field(1, name) + field(2, endpoints))) for name in names]
        version = str(self._version)
        return framed(field(1, version) + b"".join(resources) + field(4, _TYPE) + field(5, version))

    def _assignment(self) -> bytes:
        return b"".join(_endpoint(pool) for pool in self._pools())

    def refused(self, reason: str) -> None:
        """An Envoy does not take what it was told."""
        self._log.event("endpoints refused", reason=reason)

    def ended(self, subscription: Subscription) -> None:
        """An Envoy is gone."""
        self._subscriptions.discard(subscription)


class Subscription:
    """The handler of one Envoy's stream."""

    def __init__(self, endpoints: Endpoints, stream: Stream) -> None:
        self.stream = stream
        self._endpoints = endpoints
        self._names: list[str] = []

    def message(self, message: bytes) -> None:
        """The first request, another choice of clusters, or an answer to what we told."""
        names: list[str] = []
        error: bytes | None = None
        for number, value in fields(message):
            if number == 3 and isinstance(value, bytes) and len(names) < _MOST_NAMES:
                names.append(value.decode("utf-8", "replace"))
            elif number == 6 and isinstance(value, bytes):
                error = next((text for key, text in fields(value) if key == 2 and isinstance(text, bytes)), b"")
        if error is not None:
            self._endpoints.refused(error.decode("utf-8", "replace")[:500])
        elif names != self._names:
            self._names = names
            self.tell()

    def tell(self) -> None:
        """Send the pools."""
        if self._names:
            self.stream.send(self._endpoints.answer(self._names))

    def ended(self) -> None:
        """The Envoy is gone."""
        self._endpoints.ended(self)


def _endpoint(pool: LivePool) -> bytes:
    status = field(2, _DRAINING) if pool.draining or pool.leaving else b""
    return field(2, field(1, field(1, _address(pool.endpoint))) + status)


def _address(address: Address) -> bytes:
    return field(1, field(2, address.host) + field(3, address.port))
