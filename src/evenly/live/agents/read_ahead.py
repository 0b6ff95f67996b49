"""Receive from an ASGI server one message ahead of the application."""

from __future__ import annotations

import asyncio

from evenly.live.agents.lifespan import Message, Receive


class ReadAhead:
    """The receiving side of a WebSocket, with a task that takes messages from the server and keeps them in order.

    A server reports the end of a connection as a message. An application that waits for something else takes
    none, so this task does. It keeps at most one message besides the handshake: a client that sends faster than
    the application receives is still held up by the server.

    The task ends with the connection, with an exception of the server, or with `close`. From then on, and once
    the messages that it kept are taken, the application receives from the server itself.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._kept: asyncio.Queue[Message | Exception | None] = asyncio.Queue()  # None: the task has ended
        self._task = asyncio.create_task(self._run())
        self._task.add_done_callback(lambda _: self._kept.put_nowait(None))

    async def receive(self) -> Message:
        """Return the next message. A call that is canceled takes none."""
        kept = await self._kept.get()
        if kept is None:
            self._kept.put_nowait(None)  # other tasks of the application may wait too
            return await self._receive()
        self._kept.task_done()
        if isinstance(kept, Exception):
            raise kept
        return kept

    async def close(self) -> None:
        """Stop the task, if it has not ended."""
        if not self._task.done():
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            self._kept.put_nowait(await self._receive())  # the handshake, which some applications never take
            while True:
                message = await self._receive()
                self._kept.put_nowait(message)
                if message["type"] == "websocket.disconnect":
                    return
                await self._kept.join()
        except Exception as error:
            self._kept.put_nowait(error)
