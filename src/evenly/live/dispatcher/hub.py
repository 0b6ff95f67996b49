"""The connected agents: one connection per pool."""

from __future__ import annotations

import time
from collections.abc import Coroutine
from typing import Any, Protocol

from starlette.types import Message, Send

from evenly.core.protocol.records import MAX_POOLS
from evenly.errors import InputError
from evenly.live.dispatcher.hello import Hello


class Transport(Protocol):
    """The part of a connection that the hub needs."""

    def abort(self) -> None:
        """Close at once, and drop what was not sent."""
        ...


class AgentConnection:
    """An agent's connection and its newest hello."""

    __slots__ = (
        "_send",
        "_transport",
        "closed",
        "heard",
        "hello",
        "second",
        "since",
        "this_second",
    )

    def __init__(self, hello: Hello, send: Send, transport: Transport) -> None:
        self.hello = hello
        self.since = self.heard = time.monotonic()
        self.second, self.this_second = self.heard, 0  # messages since that time, to limit their rate
        self.closed = ""  # why the dispatcher closed it
        self._send = send
        self._transport = transport

    def write(self, text: str) -> bool:
        """Send a text now. Return False if that is not possible.

        An agent that does not read is disconnected: its buffer is full, and others must not wait for it.
        """
        return self._now({"type": "websocket.send", "text": text})

    def close(self, reason: str, code: int = 1008) -> None:
        """Close the connection, with the reason for the agent's log."""
        if not self.closed:
            self.closed = reason
            self._now({"type": "websocket.close", "code": code, "reason": reason[:120]})

    def abort(self, reason: str) -> None:
        """Close the connection at once."""
        self.closed = self.closed or reason
        self._transport.abort()

    def _now(self, message: Message) -> bool:
        """Run an ASGI send that must not wait. It waits only while the transport's buffer is full."""
        sending: Coroutine[Any, Any, None] = self._send(message)  # type: ignore[assignment]
        try:
            sending.send(None)
        except StopIteration:
            return True
        except Exception:  # the agent has gone meanwhile: its handler is told
            return False
        sending.close()
        self.abort("it does not read")
        return False


class Hub:
    """Connections by pool."""

    def __init__(self) -> None:
        self.connections: dict[str, AgentConnection] = {}

    def add(self, connection: AgentConnection) -> bool:
        """Add a connection. Return True if it replaces one of the same pool, which is closed.

        The agent that started last wins: during a restart, the old one may still be there for a while.
        """
        pool = connection.hello.pool
        older = self.connections.get(pool)
        if older is not None and older.hello.incarnation > connection.hello.incarnation:
            raise InputError(f"An agent of pool {pool} that started later is connected.")
        if older is None and len(self.connections) >= MAX_POOLS:
            raise InputError(f"There can be at most {MAX_POOLS} agents.")
        self.connections[pool] = connection
        if older is not None:
            older.close("another agent of this pool has connected")
        return older is not None

    def remove(self, connection: AgentConnection) -> bool:
        """Remove a connection. Return False if a newer one has replaced it."""
        pool = connection.hello.pool
        if self.connections.get(pool) is not connection:
            return False
        del self.connections[pool]
        return True

    def tell_all(self, text: str) -> None:
        """Send a text to all agents."""
        for connection in list(self.connections.values()):
            connection.write(text)

    def close_silent(self, silence: float) -> None:
        """Disconnect the agents that have sent nothing for `silence` seconds."""
        due = time.monotonic() - silence
        for connection in [each for each in self.connections.values() if each.heard < due]:
            connection.abort("silent")
