"""Messages of one agent on their way to a store that takes a moment for each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from evenly.core.protocol import Kind, ToDispatcher


class Mailbox:
    """Delivers one message at a time. Meanwhile the newest one waits, and a heartbeat before it.

    Every message carries the whole state of its pool, so a newer one takes the place of one that waits. Without
    that, the messages of a busy pool would queue up behind each other, and the dispatcher would pick by old news.
    A heartbeat keeps its place: the agent relies on the reply.
    """

    def __init__(self, deliver: Callable[[ToDispatcher], Awaitable[None]]) -> None:
        self._deliver = deliver
        self._waiting: list[ToDispatcher] = []  # at most two
        self._task: asyncio.Task[None] | None = None

    def put(self, message: ToDispatcher) -> None:
        """Deliver a message as soon as the one before is done."""
        waiting = self._waiting
        if waiting and (len(waiting) > 1 or waiting[0].kind is not Kind.HEARTBEAT):
            waiting[-1] = message
        else:
            waiting.append(message)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def flush(self) -> None:
        """Wait until all is delivered: the last message may say that the pool leaves."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while self._waiting:
            await self._deliver(self._waiting.pop(0))
