"""Envoy's endpoint discovery service (EDS). Envoys get the pools from the picker, so there is one list of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from evenly.live.addresses import Address
from evenly.live.balancer.pool import LivePool
from evenly.live.envoy.endpoint_weights import endpoint_weights
from evenly.live.envoy.names import NAMESPACE, OPEN
from evenly.live.log import Log
from evenly.live.wire.frames import framed
from evenly.live.wire.protobuf import field, fields, struct
from evenly.live.wire.streams import Stream

PATH = b"/envoy.service.endpoint.v3.EndpointDiscoveryService/StreamEndpoints"
_TYPE = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
_CLOSED = field(2, 3)  # health status DRAINING, and not among those that Envoy's fallback policy chooses from
_OPEN = field(3, field(1, field(1, NAMESPACE) + field(2, struct(OPEN))))
_MAX_NAMES = 10


class Endpoints:
    """All subscriptions, and the version of the endpoints sent last."""

    def __init__(self, pools: Callable[[], Iterable[LivePool]], log: Log) -> None:
        self._pools = pools
        self._log = log
        self._version = 0
        self._sent: bytes | None = None
        self._subscriptions: set[Subscription] = set()

    def subscribe(self, stream: Stream) -> Subscription:
        """Return the handler of a stream on which an Envoy asks for endpoints."""
        subscription = Subscription(self, stream)
        self._subscriptions.add(subscription)
        return subscription

    def push(self) -> None:
        """Send the endpoints to all Envoys, if they have changed since the last push."""
        now = self._assignment()
        if now == self._sent:
            return
        self._sent = now
        self._version += 1
        for subscription in self._subscriptions:
            subscription.send()
            subscription.stream.connection.flush()

    def answer(self, names: Iterable[str]) -> bytes:
        """Return a response with the pools, once for each requested cluster name."""
        endpoints = self._assignment()
        resources = [field(2, field(1, _TYPE) + field(2, field(1, name) + field(2, endpoints))) for name in names]
        version = str(self._version)
        return framed(field(1, version) + b"".join(resources) + field(4, _TYPE) + field(5, version))

    def _assignment(self) -> bytes:
        pools = list(self._pools())
        weights = endpoint_weights([pool.weight for pool in pools])
        return b"".join(map(_endpoint, pools, weights))

    def refused(self, reason: str) -> None:
        """Log that an Envoy rejected a response."""
        self._log.event("endpoints refused", reason=reason)

    def ended(self, subscription: Subscription) -> None:
        """Drop a subscription whose stream ended."""
        self._subscriptions.discard(subscription)


class Subscription:
    """The handler of one Envoy's stream."""

    def __init__(self, endpoints: Endpoints, stream: Stream) -> None:
        self.stream = stream
        self._endpoints = endpoints
        self._names: list[str] = []

    def message(self, message: bytes) -> None:
        """Handle the first request, a new choice of clusters, or the ACK or NACK of a response."""
        names: list[str] = []
        error: bytes | None = None
        for number, value in fields(message):
            if number == 3 and isinstance(value, bytes) and len(names) < _MAX_NAMES:
                names.append(value.decode("utf-8", "replace"))
            elif number == 6 and isinstance(value, bytes):
                error = next((text for key, text in fields(value) if key == 2 and isinstance(text, bytes)), b"")
        if error is not None:
            self._endpoints.refused(error.decode("utf-8", "replace")[:500])
        elif names != self._names:
            self._names = names
            self.send()

    def send(self) -> None:
        """Send the endpoints."""
        if self._names:
            self.stream.send(self._endpoints.answer(self._names))

    def ended(self) -> None:
        """Unsubscribe."""
        self._endpoints.ended(self)


def _endpoint(pool: LivePool, weight: int | None) -> bytes:
    mark = _CLOSED if pool.draining or pool.leaving else _OPEN
    share = b"" if weight is None else field(4, field(1, weight))
    host = field(3, pool.address.host)  # its certificate must be for that; without it, Envoy accepts any name
    return field(2, field(1, field(1, _address(pool.endpoint)) + host) + mark + share)


def _address(address: Address) -> bytes:
    return field(1, field(2, address.host) + field(3, address.port))
