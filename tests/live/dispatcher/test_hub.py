"""The hub and the agents' handler without sockets: what is kept about connections, and what the store is told."""

from __future__ import annotations

import asyncio
import io
import json
from dataclasses import asdict
from typing import Any

import pytest

from evenly.core import Color
from evenly.core.messages import Report, ThresholdNotice
from evenly.core.protocol import Kind, PoolPeer, ToDispatcher, ToPool
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
    "type": "hello", "version": 1, "pool": "a", "incarnation": 1, "address": "ws://a.example", "capacity": None,
}  # fmt: skip
NOTICE = ToPool(ThresholdNotice(3, epoch=7), 9)
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
    hub, older, newer = Hub(Counters()), Wire(), Wire()
    first, second = older.connection(), newer.connection()
    assert not hub.add(first)
    assert hub.add(second)
    assert [message["type"] for message in older.sent] == ["websocket.close"]
    assert not hub.remove(first)
    hub.send("a", NOTICE)
    assert json.loads(newer.sent[0]["text"]) == {"threshold": 3, "epoch": 7, "oldest_ticket": 9}
    assert hub.remove(second)
    hub.send("a", NOTICE)  # to an agent that is not here: nothing happens
    assert len(newer.sent) == 1


def test_an_agent_that_started_earlier_does_not_replace_a_later_one() -> None:
    """In a rolling restart, the old process may drain for long, and connect again meanwhile."""
    hub, old, new = Hub(Counters()), Wire(), Wire()
    hub.add(new.connection(incarnation=2))
    with pytest.raises(InputError, match="started later"):
        hub.add(old.connection(incarnation=1))
    hub.send("a", NOTICE)
    assert len(new.sent) == 1 and not old.sent


def test_an_agent_whose_buffer_is_full_is_cut_off() -> None:
    async def play() -> None:
        counters = Counters()
        hub, wire = Hub(counters), Wire()
        connection = wire.connection()
        hub.add(connection)
        hub.send("a", NOTICE)
        wire.full = True
        hub.send("a", NOTICE)
        assert (wire.aborted, connection.closed, counters.notices) == (True, "it does not read", 1)

    asyncio.run(play())


def test_the_store_is_told_of_a_broken_connection_and_a_changed_key() -> None:
    """A pool whose connection has broken is gone after one heartbeat, long before it counts as silent."""
    now = 0.0

    async def play() -> None:
        nonlocal now
        counters, log, wire = Counters(), Log(io.StringIO()), Wire()
        hub = Hub(counters)
        store = LocalStore(SETTINGS, hub.send, term=1, clock=lambda: now)
        agents = Agents(store, hub, counters, log, heartbeat=2, shared=False)
        events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        events.put_nowait({"type": "websocket.connect"})
        for text in (json.dumps(HELLO), encode_to_dispatcher(PoolPeer("a", incarnation=1).heartbeat())):
            events.put_nowait({"type": "websocket.receive", "text": text})
        serving = asyncio.create_task(agents.serve({}, events.get, wire.send, wire))
        async with asyncio.timeout(PATIENCE):
            while not counters.messages.heartbeats:
                await asyncio.sleep(0)
        assert hub.connections["a"].last_message is not None
        store.key = bytes(32)
        agents.welcome_again()
        agents.welcome_again()
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
        hub = Hub(counters)
        store = LocalStore(SETTINGS, hub.send, term=1, clock=lambda: 0.0)
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
        (Kind.ANSWER, Color.GREEN),
        (Kind.ANSWER, None),
        (Kind.HEARTBEAT, None),
        (Kind.REFUSAL, None),
        (Kind.LEAVE, None),
    ]
    for number, (kind, color) in enumerate(sent, start=1):
        for _ in range(number):
            counted.count(
                ToDispatcher(kind, incarnation=1, sequence=1, report=Report("a", 0, 1, color), arrived=())
            )
    assert list(asdict(counted).values()) == [1, 2, 3, 4, 5, 6, 7]
