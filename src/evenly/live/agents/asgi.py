"""ASGI middleware: every WebSocket and every streamed response of an application is a session of its pool.

For Starlette, FastAPI, Django Channels and any other ASGI application on asyncio. It changes nothing that the
application sends or receives, except that clients beyond the capacity are turned away.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from functools import partial

from evenly.live.agents.agent import Agent, Session
from evenly.live.agents.headers import has_length, session_id_of
from evenly.live.agents.lifespan import App, Lifespan, Message, Receive, Scope, Send
from evenly.live.agents.read_ahead import ReadAhead

_FULL = b"This pool is full.\n"
_FULL_HEADERS = [(b"content-type", b"text/plain"), (b"retry-after", b"1"), (b"content-length", b"%d" % len(_FULL))]
_TRY_AGAIN_LATER = 1013  # a WebSocket close code
_LOGGER = logging.getLogger("evenly.agent")


class EvenlyMiddleware:
    """Counts the sessions of an application, with an `Agent` that it starts and stops.

        app.add_middleware(EvenlyMiddleware, pool="game-1", address="ws://10.0.0.5:7000", dispatchers=[...])

    The arguments are those of `Agent`. A WebSocket is a session from its accept to its end. So is an HTTP response
    that is streamed, which means without a Content-Length, or any whose request brings a session id.

    The agent starts when the server reports its startup, or else with the first request, and leaves at the
    shutdown. One process is one pool: with several worker processes on one port, use `evenly agent` instead.
    """

    def __init__(
        self,
        app: App,
        *,
        pool: str,
        address: str,
        dispatchers: Sequence[str],
        token: str | None = None,
        token_file: str | os.PathLike[str] | None = None,
        capacity: int | None = None,
        ca_file: str | os.PathLike[str] | None = None,
    ) -> None:
        self._app = app
        self._held = 0  # places for handshakes and responses that may become sessions
        self._stopped = False
        self.agent = Agent(
            pool=pool,
            address=address,
            dispatchers=dispatchers,
            token=token,
            token_file=token_file,
            capacity=capacity,
            ca_file=ca_file,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a connection of the server."""
        kind = scope["type"]
        if kind == "lifespan":
            await Lifespan(self.start, self.stop, receive, send).run(self._app, scope)
            return
        if not self._stopped:
            self.agent.start()
        if kind == "websocket":
            await _WebSocket(self, scope, receive, send).run(self._app, scope)
        elif kind == "http":
            await _Response(self, scope, receive, send).run(self._app, scope)
        else:
            await self._app(scope, receive, send)

    def start(self) -> None:
        """Start the agent: the application is ready."""
        self._stopped = False
        self.agent.start()

    async def stop(self) -> None:
        """Leave the fleet. Requests that are still served do not bring the agent back."""
        self._stopped = True
        await self.agent.close()

    def hold(self) -> bool:
        """Keep a place for what may become a session. Return False if there is none."""
        capacity = self.agent.capacity
        if capacity is not None and self.agent.sessions + self._held >= capacity:
            return False
        self._held += 1
        return True

    def let_go(self) -> None:
        """Give up a place that was kept."""
        self._held -= 1


class _Exchange:
    """A connection that is or may become a session.

    It is in one of these states: it holds a place, it is a session, or neither. Whatever the application does,
    also in several tasks at once, each transition happens at most once, and `_end` is the last.
    """

    def __init__(self, middleware: EvenlyMiddleware, scope: Scope, receive: Receive, send: Send) -> None:
        self._middleware = middleware
        self._agent = middleware.agent
        self._receive = receive
        self._send = send
        self._id = session_id_of(scope)
        self._holds = False
        self._session: Session | None = None
        self._ended = False

    def _hold(self) -> bool:
        self._holds = self._middleware.hold()
        return self._holds

    def _let_go(self) -> None:
        if self._holds:
            self._holds = False
            self._middleware.let_go()

    def _begin(self) -> None:
        """Become a session. The place that is held makes sure that there is room."""
        if self._holds and not self._ended:
            self._let_go()
            self._session = self._agent.begin(self._id)
            self._id = None

    def _end(self) -> None:
        """Be no session any more, or never. A ticket that came for nothing is given back."""
        self._ended = True
        self._let_go()
        if self._session is not None:
            self._session.end()
            self._session = None
        if self._id is not None:
            self._agent.refuse(self._id)
            self._id = None


class _WebSocket(_Exchange):
    """A WebSocket: a session from the accept on."""

    async def run(self, app: App, scope: Scope) -> None:
        """Call the application, unless the pool is full."""
        try:
            if self._hold():
                await self._call(app, scope)
            else:
                self._end()
                await self._turn_away(scope)
        finally:
            self._end()

    async def _call(self, app: App, scope: Scope) -> None:
        messages = ReadAhead(self._receive_next)
        try:
            await app(scope, messages.receive, partial(self._send_on, messages))
        finally:
            self._end()
            await messages.close()

    async def _receive_next(self) -> Message:
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            self._end()
        return message

    async def _send_on(self, messages: ReadAhead, message: Message) -> None:
        kind = message["type"]
        if kind == "websocket.accept":
            self._begin()
        elif kind == "websocket.close":
            await messages.close()  # Granian does not close while something receives
        try:
            await self._send(message)
        except OSError:  # by which a server says that the client has gone
            self._end()
            raise
        finally:
            if kind in ("websocket.close", "websocket.http.response.start"):
                self._end()

    async def _turn_away(self, scope: Scope) -> None:
        await self._receive()  # the handshake
        if "websocket.http.response" in (scope.get("extensions") or {}):
            start = {"type": "websocket.http.response.start", "status": 503, "headers": _FULL_HEADERS}
            await self._send(start)
            await self._send({"type": "websocket.http.response.body", "body": _FULL})
            await asyncio.sleep(0)  # uvicorn logs an error if this returns before the connection is lost
        else:
            await self._send({"type": "websocket.close", "code": _TRY_AGAIN_LATER, "reason": "full"})


class _RefusedError(OSError):
    """Stops an application that streams a response which has been replaced; as if the client was gone."""


class _Response(_Exchange):
    """A request and its response: a session if there is an id, or once the response turns out to be streamed."""

    def __init__(self, middleware: EvenlyMiddleware, scope: Scope, receive: Receive, send: Send) -> None:
        super().__init__(middleware, scope, receive, send)
        self._start: Message | None = None  # of a response, held back until it is clear whether it is streamed
        self._may_stream = True
        self._begun_body = False
        self._refused = False

    async def run(self, app: App, scope: Scope) -> None:
        """Call the application, unless the request has an id and the pool is full."""
        try:
            if self._id is not None:
                if not self._hold():
                    self._end()
                    await self._turn_away()
                    return
                self._begin()
            await app(scope, self._receive_next, self._send_on)
        except Exception:
            if not self._refused:
                raise
            _LOGGER.debug("the application was stopped, since the pool is full", exc_info=True)
        finally:
            self._end()

    async def _receive_next(self) -> Message:
        if self._refused:
            return {"type": "http.disconnect"}
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._end()
        return message

    async def _send_on(self, message: Message) -> None:
        if self._refused:
            raise _RefusedError
        kind = message["type"]
        if kind == "http.response.start":
            self._may_stream = not has_length(message)
            if self._may_stream and self._session is None and not self._ended and not self._hold():
                self._start = message  # there is no room for a session: wait and see
                return
            await self._send(message)
        elif kind == "http.response.body":
            await self._send_body(message)
        else:
            await self._send_start()
            await self._send(message)

    async def _send_start(self) -> None:
        """Send the start of the response, if it was held back."""
        start, self._start = self._start, None
        if start is not None:
            await self._send(start)

    async def _send_body(self, message: Message) -> None:
        more = message.get("more_body", False)
        if not self._begun_body:
            self._begun_body = True
            streamed = more and self._may_stream
            if self._start is not None and streamed:
                self._refused = True
                await self._turn_away()
                raise _RefusedError
            await self._send_start()
            if streamed:
                self._begin()
            else:
                self._let_go()
        try:
            await self._send(message)
        finally:
            if not more:
                self._end()

    async def _turn_away(self) -> None:
        await self._send({"type": "http.response.start", "status": 503, "headers": _FULL_HEADERS})
        await self._send({"type": "http.response.body", "body": _FULL})
