"""The picker's gRPC services: picks, their sessions' ends, endpoints for Envoy, and health.

One stream is one session: it brings the request's headers, then the response's, and ends when the session ends.
What is decided lies in `balancer.py`; here messages become events.
"""

from __future__ import annotations

from time import perf_counter

from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.latency import Latency
from evenly.live.balancer.pool import LivePool
from evenly.live.envoy import eds as endpoints
from evenly.live.envoy import ext_proc
from evenly.live.envoy.eds import Endpoints
from evenly.live.envoy.fleet import Envoys
from evenly.live.envoy.names import ANNOUNCEMENT
from evenly.live.envoy.reconcile import Envoy
from evenly.live.wire.frames import framed
from evenly.live.wire.header_blocks import Fields
from evenly.live.wire.protobuf import field
from evenly.live.wire.streams import Handler, Stream

_ANNOUNCEMENT = ANNOUNCEMENT.encode()
_HEALTH = b"/grpc.health.v1.Health/Check"
_SERVING, _NOT_SERVING = framed(field(1, 1)), framed(field(1, 2))


class Picker:
    """Leads streams to their handlers."""

    def __init__(self, balancer: Balancer, envoys: Envoys, discovery: Endpoints, latency: Latency) -> None:
        self.balancer = balancer
        self.latency = latency
        self.stopping = False
        self._envoys = envoys
        self._discovery = discovery
        self._answers: dict[LivePool, tuple[bytes, bytes]] = {}

    def route(self, stream: Stream, request: Fields) -> Handler | None:
        """The handler for a request."""
        path = request.get(b":path", b"")
        announced = request.get(_ANNOUNCEMENT)
        envoy = None if announced is None else self._envoys.heard_of(announced, stream.connection)
        if path == ext_proc.PATH:
            return Session(self, stream, envoy)
        if path == endpoints.PATH:
            return self._discovery.subscribe(stream)
        if path == _HEALTH:
            return Health(self, stream)
        return None

    def answer(self, pool: LivePool) -> tuple[bytes, bytes]:
        """The answer that names the pool, and the mark of its serving; made once for each pool."""
        known = self._answers.get(pool)
        if known is None:
            if len(self._answers) > 10_000:  # pools that are gone
                self._answers.clear()
            known = ext_proc.pick_answer(pool.endpoint), ext_proc.served_mark(pool.endpoint)
            self._answers[pool] = known
        return known


class Session:
    """A session, from its pick to its end."""

    __slots__ = ("_envoy", "_mark", "_picker", "_stream", "pool")

    def __init__(self, picker: Picker, stream: Stream, envoy: Envoy | None) -> None:
        self._picker = picker
        self._stream = stream
        self._envoy = envoy
        self.pool: LivePool | None = None  # where it is counted
        self._mark = b""

    def message(self, message: bytes) -> None:
        """Headers of the request, of the response, or something that we have nothing to say to."""
        kind = message[0] if message else 0
        if kind == ext_proc.REQUEST_HEADERS:
            self._stream.send(self._pick())
            self._picker.latency.observe(perf_counter() - self._stream.connection.heard)
        elif kind == ext_proc.RESPONSE_HEADERS:
            if self.pool is None or self._mark not in message:
                self._correct(message)
            if self._envoy is not None:
                self._envoy.unsure.pop(self, None)
            self._stream.send(ext_proc.GO_ON)
        else:
            answer = ext_proc.plain_answer(message)
            if answer is not None:
                self._stream.send(answer)

    def ended(self) -> None:
        """The session is over, or Envoy lost patience and will not tell us of its end."""
        if self._envoy is not None:
            self._envoy.unsure.pop(self, None)
        self.disown()

    def disown(self) -> None:
        """Count it nowhere."""
        if self.pool is not None:
            self._picker.balancer.end(self.pool)
            if self._envoy is not None:
                self._envoy.ended[self.pool] += 1
            self.pool = None

    def _pick(self) -> bytes:
        if self.pool is None:
            self.pool = self._picker.balancer.pick()
            if self.pool is None:
                return ext_proc.ALL_DRAINING if self._picker.balancer.all_draining else ext_proc.NO_PICK
            if self._envoy is not None:
                self._envoy.started[self.pool] += 1
                self._envoy.unsure[self] = None
        answer, self._mark = self._picker.answer(self.pool)
        return answer

    def _correct(self, message: bytes) -> None:
        """Another pool serves than the one picked, or one serves where none could be picked."""
        endpoint = ext_proc.served_by(message)
        if endpoint is None:  # nobody serves: Envoy answers itself
            return
        served = self._picker.balancer.served_by(endpoint)
        if served is self.pool:
            return
        if served is None:  # none of ours
            self.disown()
            return
        if self.pool is None:
            self._picker.balancer.serve(served)
        else:
            self._picker.balancer.move(self.pool, served)
        if self._envoy is not None:
            self._envoy.started[served] += 1
            if self.pool is not None:
                self._envoy.ended[self.pool] += 1
        self.pool = served


class Health:
    """The health service of gRPC."""

    def __init__(self, picker: Picker, stream: Stream) -> None:
        self._picker = picker
        self._stream = stream

    def message(self, _: bytes) -> None:
        """The question."""
        self._stream.send(_NOT_SERVING if self._picker.stopping else _SERVING)

    def ended(self) -> None:
        """The answer was heard."""
