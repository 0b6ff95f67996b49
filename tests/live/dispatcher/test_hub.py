"""The hub and the agents' handler without sockets: what is kept about connections, and what the store is told."""

from __future__ import annotations

import asyncio
import io
import json
from dataclasses import asdict
from typing import Any

import pytest

from evenly.core import Color
from evenly.core.messages import Report
from evenly.core.protocol import Kind, PoolPeer, ToDispatcher
from evenly.core.protocol.codec import encode_to_dispatcher
from evenly.errors import InputError
from evenly.live.dispatcher.agents import Agents
from evenly.live.dispatcher.counters import AgentMessages, Counters
from evenly.live.dispatcher.hello import Hello
from evenly.live.dispatcher.hub import AgentConnection, Hub
from evenly.live.log import Log
from evenly.live.store.base import FleetSettings
from evenly.live.store.local import LocalStore
from evenly.live.timing import Timing
from tests.live.processes import PATIENCE

HELLO = {
    "type": "hello", "version": 2, "pool": "a", "incarnation": 1, "address": "ws://a.example", "capacity": None,
}  # fmt: skip
SETTINGS = FleetSettings(alpha="0.5", lease=10, silence=8, memory=10, heartbeat=2)


class Wire:
    """The ASGI side of a connection: what was sent, and whether it was cut. `full` blocks all sends."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.aborted = self.full = False

    async def send(self, message: Any) -> None:  # noqa: ANN401  (ASGI's messages)
        if self.full:
            await asyncio.Event().wait()
        self.sent.append(message)

    def abort(self) -> None:
        self.aborted = True

    def connection(self, pool: str = "a", incarnation: int = 1) -> AgentConnection:
        return AgentConnection(Hello(pool, incarnation, f"ws://{pool}.example", None), self.send, self)


def test_a_newer_connection_stays_when_the_older_ends() -> None:
    hub, older, newer = Hub(), Wire(), Wire()
    first, second = older.connection(), newer.connection()
    assert not hub.add(first)
    assert hub.add(second)
    assert [message["type"] for message in older.sent] == ["websocket.close"]
    assert not hub.remove(first)
    assert hub.connections == {"a": second}
    assert hub.remove(second)
    assert not hub.connections and not newer.sent


def test_an_agent_that_started_earlier_does_not_replace_a_later_one() -> None:
    """In a rolling restart, the old process may drain for long, and connect again meanwhile."""
    hub, old, new = Hub(), Wire(), Wire()
    hub.add(new.connection(incarnation=2))
    with pytest.raises(InputError, match="started later"):
        hub.add(old.connection(incarnation=1))
    assert not old.sent and not new.sent


def test_an_agent_whose_buffer_is_full_is_cut_off() -> None:
    async def play() -> None:
        wire = Wire()
        connection = wire.connection()
        assert connection.write("one")
        wire.full = True
        assert not connection.write("two")
        assert (wire.aborted, connection.closed, len(wire.sent)) == (True, "it does not read", 1)

    asyncio.run(play())


def test_the_store_is_told_of_a_broken_connection_and_agents_of_a_lapse() -> None:
    """A pool whose connection has broken is gone after one heartbeat, long before it counts as silent."""
    now = 0.0

    async def play() -> None:
        nonlocal now
        counters, log, wire = Counters(), Log(io.StringIO()), Wire()
        hub = Hub()
        store = LocalStore(SETTINGS, term=1, clock=lambda: now)
        agents = Agents(store, hub, counters, log, heartbeat=2, shared=False)
        events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        events.put_nowait({"type": "websocket.connect"})
        for text in (json.dumps(HELLO), encode_to_dispatcher(PoolPeer("a", incarnation=1).heartbeat())):
            events.put_nowait({"type": "websocket.receive", "text": text})
        serving = asyncio.create_task(agents.serve({}, events.get, wire.send, wire))
        async with asyncio.timeout(PATIENCE):
            while not counters.messages.heartbeats:
                await asyncio.sleep(0)
        assert json.loads(wire.sent[-1]["text"]).keys() == {"threshold", "version", "oldest_ticket"}
        store.key = bytes(32)
        store.on_lapse()
        keys = [json.loads(message["text"]).get("key") for message in wire.sent if "text" in message]
        assert [key for key in keys if key is not None][1:] == ["00" * 32]
        events.put_nowait({"type": "websocket.disconnect", "code": 1006})
        await serving
        assert [pool.name for pool in (await store.state()).pools] == ["a"]
        now = 2.5
        await store.tick()
        assert (await store.state()).pools == ()

    asyncio.run(play())


def test_an_agent_that_says_no_hello_in_time_is_rejected() -> None:
    """With a short limit, instead of 5 seconds."""

    async def play() -> None:
        counters, wire = Counters(), Wire()
        hub = Hub()
        store = LocalStore(SETTINGS, term=1, clock=lambda: 0.0)
        log = Log(io.StringIO())
        agents = Agents(store, hub, counters, log, heartbeat=2, shared=False, timing=Timing(hello_s=0.05))
        events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        events.put_nowait({"type": "websocket.connect"})
        async with asyncio.timeout(PATIENCE):
            await agents.serve({}, events.get, wire.send, wire)
        closed = {"type": "websocket.close", "code": 1008, "reason": "A hello must come within 0.05 seconds."}
        assert wire.sent[1:] == [closed]
        assert counters.rejected_agents == 1

    asyncio.run(play())


def test_messages_are_counted_by_what_they_are() -> None:
    counted = AgentMessages()
    sent = [
        (Kind.TOKEN, Color.GREEN),
        (Kind.TOKEN, Color.YELLOW),
        (Kind.HEARTBEAT, None),
        (Kind.REFUSAL, None),
        (Kind.LEAVE, None),
    ]
    for number, (kind, color) in enumerate(sent, start=1):
        for _ in range(number):
            counted.count(ToDispatcher(kind, 1, 1, Report("a", 0, color), version=0, arrived=()))
    assert list(asdict(counted).values()) == [1, 2, 3, 4, 5]
