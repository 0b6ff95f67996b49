"""The handler of Envoy's external-processing streams: it turns messages into calls of a session.

One stream is one session. It carries the request's headers, then the response's, and ends when the session ends.
Counts are not kept or changed here; `Session` does that.
"""

from __future__ import annotations

from time import perf_counter

from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.latency import Latency
from evenly.live.balancer.pool import LivePool
from evenly.live.balancer.session import Ledger, Session
from evenly.live.envoy import ext_proc
from evenly.live.wire.streams import Stream

_MAX_ANSWERS = 10_000


class PickService:
    """The state that all pick streams share: the balancer, the latency histogram, and the encoded responses."""

    def __init__(self, balancer: Balancer, latency: Latency) -> None:
        self.balancer = balancer
        self.latency = latency
        self._answers: dict[LivePool, tuple[bytes, bytes]] = {}

    def answer(self, pool: LivePool) -> tuple[bytes, bytes]:
        """Return the response that picks the pool and the mark that it served. They are encoded once per pool."""
        known = self._answers.get(pool)
        if known is None:
            if len(self._answers) > _MAX_ANSWERS:  # most belong to pools that are gone
                self._answers.clear()
            known = ext_proc.pick_answer(pool.endpoint), ext_proc.served_mark(pool.endpoint)
            self._answers[pool] = known
        return known


class PickStream:
    """The handler of one stream. `via` is the ledger of the Envoy that opened it, None if that is unknown."""

    __slots__ = ("_mark", "_service", "_session", "_stream", "_via")

    def __init__(self, service: PickService, stream: Stream, via: Ledger | None) -> None:
        self._service = service
        self._stream = stream
        self._via = via
        self._session: Session | None = None
        self._mark = b""

    def message(self, message: bytes) -> None:
        """Respond to the headers of a request or a response, or to a message that needs no decision."""
        kind = message[0] if message else 0
        if kind == ext_proc.REQUEST_HEADERS:
            self._stream.send(self._pick())
            self._service.latency.observe(perf_counter() - self._stream.connection.last_received)
        elif kind == ext_proc.RESPONSE_HEADERS:
            session = self._session
            if session is not None and session.pool is not None and self._mark in message:
                session.served_by(session.pool.endpoint)  # the usual case, without parsing the message
            else:
                self._served(message)
            self._stream.send(ext_proc.GO_ON)
        else:
            answer = ext_proc.plain_answer(message)
            if answer is not None:
                self._stream.send(answer)

    def ended(self) -> None:
        """Close the session: it is over, or Envoy timed out and will not report its end."""
        if self._session is not None:
            self._session.close()

    def _pick(self) -> bytes:
        session, service = self._session, self._service
        if session is None or session.pool is None:
            session = self._session = service.balancer.open(via=self._via)
            if session is None:
                return ext_proc.ALL_DRAINING if service.balancer.all_draining else ext_proc.NO_PICK
        assert session.pool is not None
        answer, self._mark = service.answer(session.pool)
        return answer

    def _served(self, message: bytes) -> None:
        endpoint = ext_proc.served_by(message)
        if self._session is not None:
            self._session.served_by(endpoint)
        elif endpoint is not None:
            self._session = self._service.balancer.adopt(endpoint, via=self._via)
