"""The handler of Envoy's external-processing streams: it turns messages into calls of a session.

One stream is one session. It carries the request's headers, then the response's, and ends when the session ends.
Counts are not kept or changed here; `Session` does that.
"""

from __future__ import annotations

from time import perf_counter

from evenly.live.addresses import Address
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.latency import Latency
from evenly.live.balancer.pool import LivePool
from evenly.live.balancer.session import Ledger, Session
from evenly.live.envoy import ext_proc
from evenly.live.envoy.sticky import Return, Sticky
from evenly.live.wire.streams import Stream

_MAX_ANSWERS = 10_000
_SPARES = 2  # as many as Envoy retries


class PickService:
    """The state that all pick streams share: the balancer, the latency histogram, and the encoded responses.

    With `sticky`, clients come back to the pool that they had.
    """

    def __init__(self, balancer: Balancer, latency: Latency, sticky: Sticky | None = None) -> None:
        self.balancer = balancer
        self.latency = latency
        self.sticky = sticky
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

    __slots__ = ("_mark", "_secure", "_service", "_session", "_stream", "_token", "_via")

    def __init__(self, service: PickService, stream: Stream, via: Ledger | None) -> None:
        self._service = service
        self._stream = stream
        self._via = via
        self._session: Session | None = None
        self._mark = b""
        self._token: str | None = None  # the only one that the client showed
        self._secure = False  # whether the client uses TLS

    def message(self, message: bytes) -> None:
        """Respond to the headers of a request or a response, or to a message that needs no decision."""
        kind = message[0] if message else 0
        if kind == ext_proc.REQUEST_HEADERS:
            self._stream.send(self._pick(message))
            self._service.latency.observe(perf_counter() - self._stream.connection.last_received)
        elif kind == ext_proc.RESPONSE_HEADERS:
            session = self._session
            if session is not None and session.pool is not None and self._mark in message:
                session.served_by(session.pool.endpoint)  # the usual case, without parsing the message
            else:
                self._served(message)
            self._stream.send(ext_proc.GO_ON if self._service.sticky is None else self._told(self._service.sticky))
        else:
            answer = ext_proc.plain_answer(message)
            if answer is not None:
                self._stream.send(answer)

    def ended(self) -> None:
        """Close the session: it is over, or Envoy timed out and will not report its end."""
        if self._session is not None:
            self._session.close()

    def _pick(self, message: bytes) -> bytes:
        session, service = self._session, self._service
        among = ext_proc.subset(message)
        if session is None or session.pool is None:
            session = self._session = self._open(message, among)
            if session is None and among is not None:
                return ext_proc.NONE_IN_SUBSET
            if session is None:
                return ext_proc.ALL_DRAINING if service.balancer.all_draining else ext_proc.NO_PICK
        assert session.pool is not None
        answer, self._mark = service.answer(session.pool)
        return answer if among is None else ext_proc.pick_answer(session.pool.endpoint, *self._spares(among))

    def _open(self, message: bytes, among: list[Address] | None) -> Session | None:
        """Open a session where the client was before, if that pool can take it, or else where the policy says."""
        service, sticky = self._service, self._service.sticky
        if sticky is not None:
            session = self._reopen(message, sticky, among)
            if session is not None:
                return session
        return service.balancer.open(via=self._via, among=among)

    def _reopen(self, message: bytes, sticky: Sticky, among: list[Address] | None) -> Session | None:
        headers = ext_proc.request_headers(message)
        self._secure = (b":scheme", b"https") in headers
        shown = sticky.shown(headers)
        self._token = shown[0] if len(shown) == 1 else None
        pool = None if self._token is None else sticky.pool(self._token)
        session = None
        if pool is not None and (among is None or pool.endpoint in among):
            session = self._service.balancer.reopen(pool, margin=sticky.margin, via=self._via)
        if session is not None:
            sticky.seen[Return.KEPT] += 1
        elif pool is not None:
            sticky.seen[Return.MOVED] += 1
        else:
            sticky.seen[Return.IGNORED if shown else Return.NEW] += 1
        return session

    def _spares(self, among: list[Address]) -> list[Address]:
        """Return other endpoints of a subset that can serve, so that Envoy's retries stay inside."""
        pools = dict.fromkeys(map(self._service.balancer.pool_at, among))
        able = [pool for pool in pools if pool is not None and pool.available]
        return [pool.endpoint for pool in able if self._session is None or pool is not self._session.pool][
            :_SPARES
        ]

    def _told(self, sticky: Sticky) -> bytes:
        """Return the answer to response headers. It has a token if the client does not have that of its pool."""
        pool = None if self._session is None else self._session.pool
        if pool is None or (self._token is not None and sticky.pool(self._token) is pool):
            return ext_proc.GO_ON
        return sticky.response(pool, secure=self._secure)

    def _served(self, message: bytes) -> None:
        endpoint = ext_proc.served_by(message)
        if self._session is not None:
            self._session.served_by(endpoint)
        elif endpoint is not None:
            self._session = self._service.balancer.adopt(endpoint, via=self._via)
