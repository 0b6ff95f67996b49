"""The life of an ASGI server: the events of its startup and shutdown, and the types of ASGI."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_LOGGER = logging.getLogger("evenly.agent")


class Lifespan:
    """The life of the server. The agent starts when the application is ready, and leaves before it shuts down.

    An application without this protocol, as Django Channels', raises an exception. Then the agent has it alone:
    a pool whose agent waits for the first request would get none, since no dispatcher knows it.
    """

    def __init__(
        self, start: Callable[[], None], stop: Callable[[], Awaitable[None]], receive: Receive, send: Send
    ) -> None:
        self._start = start
        self._stop = stop
        self._receive = receive
        self._send = send
        self._received = self._answered = False

    async def run(self, app: App, scope: Scope) -> None:
        """Call the application, and take its place if it does not know this protocol."""
        try:
            await app(scope, self._receive_next, self._send_on)
        except Exception as error:
            if self._answered:
                raise
            _LOGGER.info("the application has no lifespan of its own: %r", error)
        if not self._answered:
            await self._run_alone()

    async def _run_alone(self) -> None:
        if not self._received:
            await self._receive_next()
        await self._send_on({"type": "lifespan.startup.complete"})
        await self._receive_next()
        await self._send_on({"type": "lifespan.shutdown.complete"})

    async def _receive_next(self) -> Message:
        message = await self._receive()
        self._received = True
        if message["type"] == "lifespan.shutdown":
            await self._stop()
        return message

    async def _send_on(self, message: Message) -> None:
        self._answered = True
        if message["type"] == "lifespan.startup.complete":
            self._start()
        await self._send(message)
