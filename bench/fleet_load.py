"""Load for a dispatcher that costs little itself: clients over kept connections, and agents that only count.

The agents speak the real protocol (`PoolPeer`) over hand-made WebSocket frames. Every message is a packet of its
own, as if each pool were a machine of its own.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import deque
from collections.abc import Sequence

from bench.straight import at_pace
from evenly.core.protocol import PoolPeer, ToDispatcher
from evenly.core.protocol.codec import decode_to_pool, encode_to_dispatcher
from evenly.live.addresses import Address
from evenly.live.agents.wire import hello
from evenly.live.session_id import read

CLIENTS = 64
_REQUEST = b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
_HANDSHAKE = (
    b"GET /v1/agents HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
_TEXT, _MASKED, _SHORT, _LONG = 0x81, 0x80, 125, 126
_NO_MASK = bytes(4)  # a key of zeros leaves the text as it is


class LightAgent(asyncio.Protocol):
    """The agent of a pool without a server: sessions begin and end by calls."""

    def __init__(self, pool: str, dispatcher: Address) -> None:
        self.pool = pool
        self._incarnation = time.time_ns() // 1_000_000
        self.peer = PoolPeer(pool, incarnation=self._incarnation)
        self.member: asyncio.Future[None] = asyncio.get_running_loop().create_future()  # its heartbeat is answered
        self._dispatcher = dispatcher
        self._buffer = b""
        self._open = False
        self._transport: asyncio.Transport | None = None

    async def connect(self) -> None:
        """Connect, and return when the first heartbeat is answered."""
        await asyncio.get_running_loop().create_connection(lambda: self, *self._dispatcher)
        await self.member

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for a WebSocket."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(_HANDSHAKE % str(self._dispatcher).encode())

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that a measurement is spoiled, unless it was this side that closed."""
        if not self.member.done():
            self.member.set_exception(ConnectionError(f"The dispatcher closed the connection of {self.pool}."))
        self._transport = None

    def data_received(self, data: bytes) -> None:
        """Take in frames. The dispatcher sends short ones, and none in parts."""
        self._buffer += data
        if not self._open:
            if b"\r\n\r\n" not in self._buffer:
                return
            head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 101 "), head
            self._open = True
            self._send(hello(self.pool, self._incarnation, f"ws://127.0.0.1/{self.pool}", None))
        while len(self._buffer) >= 2 and len(self._buffer) >= 2 + (size := self._buffer[1]):
            assert self._buffer[0] == _TEXT and size <= _SHORT, self._buffer
            text, self._buffer = self._buffer[2 : 2 + size], self._buffer[2 + size :]
            self._take(json.loads(text))

    def report(self, message: ToDispatcher | None) -> None:
        """Send a message of the peer, if there is one."""
        if message is not None:
            self._send(encode_to_dispatcher(message))

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.abort()

    def _take(self, values: dict[str, object]) -> None:
        if "type" in values:
            self.report(self.peer.heartbeat())
            return
        self.peer.receive(decode_to_pool(values))
        if not self.member.done():
            self.member.set_result(None)

    def _send(self, text: str) -> None:
        assert self._transport is not None, f"the dispatcher has closed the connection of {self.pool}"
        data = text.encode()
        size = (
            bytes((_TEXT, _MASKED | len(data)))
            if len(data) <= _SHORT
            else bytes((_TEXT, _MASKED | _LONG)) + len(data).to_bytes(2)
        )
        self._transport.write(size + _NO_MASK + data)


class Client(asyncio.Protocol):
    """A connection that asks for one place at a time."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def pick(self) -> None:
        """Ask for a place."""
        self.transport.write(_REQUEST)

    def data_received(self, data: bytes) -> None:
        """Hand over the answer when it is complete."""
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        if not found or len(body) < _content_length(head):
            return
        if not head.startswith(b"HTTP/1.1 201 "):
            self._load.failed = self._buffer
        self._buffer = b""
        self._load.answered(self, body)


def _content_length(head: bytes) -> int:
    return int(head.lower().partition(b"content-length: ")[2].split(b"\r\n", 1)[0])


class Load:
    """Clients of one dispatcher. A session begins with each answer, and another ends: `sessions` stay open.

    Without agents, the answers are only counted.
    """

    def __init__(self, dispatcher: Address, agents: Sequence[LightAgent], sessions: int) -> None:
        self.times: list[float] = []
        self.picks = 0
        self.failed = b""  # an answer without a place
        self._dispatcher = dispatcher
        self._agents = {agent.pool: agent for agent in agents}
        self._sessions = sessions
        self._open: list[tuple[LightAgent, int]] = []
        self._random = random.Random(1)
        self._flooding = False
        self._clients: list[Client] = []
        self._idle: list[Client] = []
        self._asked: dict[Client, float] = {}
        self._waiting: deque[float] = deque()  # since when

    async def connect(self) -> None:
        """Open the connections."""
        loop = asyncio.get_running_loop()
        for _ in range(CLIENTS):
            _, client = await loop.create_connection(lambda: Client(self), *self._dispatcher)
            self._clients.append(client)
        self._idle = list(self._clients)

    def close(self) -> None:
        """Close the connections."""
        for client in self._clients:
            client.transport.abort()

    async def flood(self, seconds: float) -> int:
        """Return the number of picks that all connections get in `seconds`, as fast as they are answered."""
        before, self._flooding = self.picks, True
        while self._idle:
            self._ask(time.perf_counter())
        await asyncio.sleep(seconds)
        got, self._flooding = self.picks - before, False
        while len(self._idle) < len(self._clients):
            await asyncio.sleep(0.005)
        if self.failed:
            raise RuntimeError(f"A pick failed: {self.failed!r}")
        return got

    async def latencies(self, pace: float, seconds: float) -> list[float]:
        """Return the times from the request to the answer, at `pace` picks per second."""
        self.times = []
        return await at_pace(pace, seconds, self._ask_now, self.times)

    def answered(self, client: Client, body: bytes) -> None:
        """Begin the session at its pool and end another; ask again in a flood."""
        self.picks += 1
        now = time.perf_counter()
        self.times.append(now - self._asked.pop(client))
        self._idle.append(client)
        if self._flooding and not self.failed:
            self._ask(now)
        elif self._waiting:
            self._ask(self._waiting.popleft())
        if self._agents and not self.failed:
            self._begin(json.loads(body)["id"])

    def _ask_now(self) -> None:
        if self._idle:
            self._ask(time.perf_counter())
        else:
            self._waiting.append(time.perf_counter())

    def _ask(self, since: float) -> None:
        client = self._idle.pop()
        self._asked[client] = since
        client.pick()

    def _begin(self, session_id: str) -> None:
        place = read(session_id)
        assert place is not None, session_id
        agent = self._agents[place.pool]
        agent.report(agent.peer.begin(place.ticket, place.ticket, place.threshold))
        self._open.append((agent, place.ticket))
        while len(self._open) > self._sessions:
            last = self._random.randrange(len(self._open))
            self._open[last], self._open[-1] = self._open[-1], self._open[last]
            agent, session = self._open.pop()
            agent.report(agent.peer.end(session))


async def beat(agents: Sequence[LightAgent], interval: float) -> None:
    """Send heartbeats of all agents, evenly over the interval, for ever."""
    began = time.monotonic()
    for number in range(2**62):
        agent = agents[number % len(agents)]
        agent.report(agent.peer.heartbeat())
        await asyncio.sleep(began + (number + 1) * interval / len(agents) - time.monotonic())
