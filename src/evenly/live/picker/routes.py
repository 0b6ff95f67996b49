"""The picker's gRPC services (picks, endpoint discovery, health) and the routing of requests to them."""

from __future__ import annotations

from evenly.live.envoy import eds, ext_proc
from evenly.live.envoy.eds import Endpoints
from evenly.live.envoy.fleet import EnvoyFleet
from evenly.live.envoy.names import ANNOUNCEMENT
from evenly.live.envoy.pick_stream import PickService, PickStream
from evenly.live.wire.frames import NOT_FOUND, framed
from evenly.live.wire.header_blocks import Fields
from evenly.live.wire.protobuf import field, fields
from evenly.live.wire.streams import Handler, Stream

_ANNOUNCEMENT = ANNOUNCEMENT.encode()
_HEALTH = b"/grpc.health.v1.Health/Check"
_SERVICES = frozenset({b"", *(path.split(b"/")[1] for path in (ext_proc.PATH, eds.PATH))})  # b"" is the picker
_SERVING, _NOT_SERVING = framed(field(1, 1)), framed(field(1, 2))


class Router:
    """Finds the handler of each stream. `stopping` is set when the picker shuts down."""

    def __init__(self, picks: PickService, envoys: EnvoyFleet, endpoints: Endpoints) -> None:
        self.stopping = False
        self._picks = picks
        self._envoys = envoys
        self._endpoints = endpoints

    def route(self, stream: Stream, request: Fields) -> Handler | None:
        """Return the handler for a request; None if its path is not served."""
        path = request.get(b":path", b"")
        announced = request.get(_ANNOUNCEMENT)
        envoy = None if announced is None else self._envoys.register(announced, stream.connection)
        if path == ext_proc.PATH:
            return PickStream(self._picks, stream, envoy)
        if path == eds.PATH:
            return self._endpoints.subscribe(stream)
        if path == _HEALTH:
            return Health(self, stream)
        return None


class Health:
    """The gRPC health service."""

    def __init__(self, router: Router, stream: Stream) -> None:
        self._router = router
        self._stream = stream

    def message(self, message: bytes) -> None:
        """Respond to a health check. The protocol asks for NOT_FOUND if the service is not one of ours."""
        if dict(fields(message)).get(1, b"") not in _SERVICES:
            self._stream.status = NOT_FOUND
            return
        self._stream.send(_NOT_SERVING if self._router.stopping else _SERVING)

    def ended(self) -> None:
        """Do nothing: the response was sent."""
