"""The agents' WebSocket: hello, welcome, then messages of the protocol in both directions."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from evenly.core.protocol import ToDispatcher
from evenly.core.protocol.codec import decode_to_dispatcher, encode_to_pool, read_object
from evenly.core.protocol.dispatcher_peer import TERM
from evenly.errors import InputError
from evenly.live.dispatcher.counters import Counters
from evenly.live.dispatcher.hello import Hello, read_ended, read_hello, welcome
from evenly.live.dispatcher.hub import AgentConnection, Hub, Transport
from evenly.live.dispatcher.mailbox import Mailbox
from evenly.live.log import Log
from evenly.live.recorder import Recorder
from evenly.live.store.base import Store, StoreUnavailableError
from evenly.live.store.local import term_now
from evenly.live.timing import Timing

_MAX_AHEAD_S = 10 * 365 * 86_400  # a term is a time in seconds, or a few more
MAX_MESSAGES_PER_SECOND = 10_000  # of one agent; more of them wait
_BAD_DATA, _FAULT, _TRY_LATER = 1008, 1011, 1013  # WebSocket close codes


class Agents:
    """Handles the agents' connections. Messages to a store that is `shared` wait in a mailbox."""

    def __init__(
        self,
        store: Store,
        hub: Hub,
        counters: Counters,
        log: Log,
        *,
        heartbeat: float,
        shared: bool,
        recorder: Recorder | None = None,
        timing: Timing | None = None,
    ) -> None:
        self._hello_s = (timing or Timing()).hello_s
        self._recorder = recorder
        self._store = store
        self._hub = hub
        self._counters = counters
        self._log = log
        self._heartbeat = heartbeat
        self._shared = shared
        store.on_lapse = self.welcome_again

    async def serve(self, scope: Scope, receive: Receive, send: Send, transport: Transport) -> None:
        """Handle one connection, from its handshake on."""
        await receive()  # websocket.connect
        await send({"type": "websocket.accept"})
        try:
            hello = await self._hello(receive)
        except InputError as error:
            await self._reject(send, str(error), _BAD_DATA)
            return
        if hello is None:
            return
        connection = AgentConnection(hello, send, transport)
        mailbox = Mailbox(lambda message: self._deliver(connection, message))
        try:
            if await self._begin(connection):
                await self._converse(connection, receive, mailbox)
        except Exception as error:
            self._give_up(connection, error)
        finally:
            await mailbox.flush()
            await self._end(connection, connection.closed or "it closed the connection")

    def welcome_again(self) -> None:
        """Send all agents a welcome, which they answer with a heartbeat. The key may be a new one."""
        self._hub.tell_all(self._welcome())

    async def _hello(self, receive: Receive) -> Hello | None:
        """Wait for the first frame; None if the agent leaves before it."""
        try:
            async with asyncio.timeout(self._hello_s):
                text = _text(await receive())
        except TimeoutError:
            raise InputError(f"A hello must come within {self._hello_s:g} seconds.") from None
        return None if text is None else read_hello(read_object(text))

    async def _reject(self, send: Send, reason: str, code: int) -> None:
        self._counters.rejected_agents += 1
        self._log.event("agent rejected", reason=reason)
        await send({"type": "websocket.close", "code": code, "reason": reason[:120]})

    async def _begin(self, connection: AgentConnection) -> bool:
        """Make the pool known and welcome its agent. Return False if the store is not there."""
        hello = connection.hello
        replaced = self._hub.add(connection)
        self._log.event("agent connected", pool=hello.pool, address=hello.address, replaced=replaced)
        try:
            await self._register(hello)
        except StoreUnavailableError:
            connection.close("the store is not available", _TRY_LATER)
            return False
        return connection.write(self._welcome())

    async def _register(self, hello: Hello) -> None:
        await self._store.register(
            hello.pool, incarnation=hello.incarnation, address=hello.address, capacity=hello.capacity
        )

    async def _converse(self, connection: AgentConnection, receive: Receive, mailbox: Mailbox) -> None:
        while (text := _text(await receive())) is not None:
            now = connection.heard = time.monotonic()
            if now >= connection.second + 1:
                connection.second, connection.this_second = now, 0
            connection.this_second += 1
            if connection.this_second > MAX_MESSAGES_PER_SECOND:
                await asyncio.sleep(connection.second + 1 - now)
            if not text.startswith('{"kind"') and "type" in (values := read_object(text)):
                if values["type"] == "hello":  # other types come from later versions
                    await self._hello_again(connection, read_hello(values))
                elif values["type"] == "ended" and self._recorder is not None:
                    self._record(self._recorder, connection.hello.pool, values)
                continue
            message = decode_to_dispatcher(connection.hello.pool, text)
            _check_version(message.version)
            self._counters.messages.count(message)
            if self._shared:
                mailbox.put(message)
            else:
                await self._hand_over(connection, message)

    async def _hand_over(self, connection: AgentConnection, message: ToDispatcher) -> None:
        reply = await self._store.receive(message)
        if reply is not None:
            connection.write(encode_to_pool(reply))

    def _welcome(self) -> str:
        return welcome(self._heartbeat, self._store.key, record=self._recorder is not None)

    @staticmethod
    def _record(recorder: Recorder, pool: str, values: dict[str, Any]) -> None:
        sessions, lost = read_ended(values)
        for ago, duration in sessions:
            recorder.ended(pool, duration, ago=ago)
        recorder.left_out(lost)

    async def _deliver(self, connection: AgentConnection, message: ToDispatcher) -> None:
        """Hand a message to a shared store."""
        try:
            await self._hand_over(connection, message)
        except StoreUnavailableError:  # the next message carries the whole state again
            self._counters.errors["store_unavailable"] += 1
        except Exception as error:
            self._give_up(connection, error)

    def _give_up(self, connection: AgentConnection, error: Exception) -> None:
        """Close a connection because of what its agent sent, or because of a fault."""
        if isinstance(error, InputError):
            self._counters.rejected_agents += 1
            connection.close(str(error))
        else:
            self._log.event("fault", where="agents", error=repr(error))
            connection.close("a fault of the dispatcher", _FAULT)

    async def _hello_again(self, connection: AgentConnection, hello: Hello) -> None:
        if hello.pool != connection.hello.pool:
            raise InputError(f"An agent cannot change its pool from {connection.hello.pool} to {hello.pool}.")
        connection.hello = hello
        self._log.event("agent changed", pool=hello.pool, address=hello.address, capacity=hello.capacity)
        try:
            await self._register(hello)
        except StoreUnavailableError:
            connection.close("the store is not available", _TRY_LATER)

    async def _end(self, connection: AgentConnection, reason: str) -> None:
        """Forget the connection; the pool is taken for dead, unless a newer connection has come."""
        pool = connection.hello.pool
        if not self._hub.remove(connection):
            return
        self._log.event("agent disconnected", pool=pool, reason=reason)
        try:
            await self._store.disconnected(pool)
        except StoreUnavailableError:
            self._counters.errors["store_unavailable"] += 1


def _check_version(version: int) -> None:
    """Reject tickets from the far future: dispatchers would have to go beyond them, and terms would run out."""
    if version // TERM > term_now() + _MAX_AHEAD_S:
        raise InputError(f"The version must not be in the far future, not {version}.")


def _text(event: Message) -> str | None:
    """Return the text of a frame; None if the connection has ended."""
    if event["type"] == "websocket.disconnect":
        return None
    text: str | None = event.get("text")
    if text is None:
        raise InputError("A message must be a text frame, not a binary one.")
    return text
