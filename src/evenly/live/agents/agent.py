"""The agent of a pool: counts its open sessions, and reports them to a dispatcher over a `Link`."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

from evenly.core.protocol import PeerMessageCount, PoolPeer, ToDispatcher
from evenly.errors import InputError
from evenly.inputs import shown
from evenly.live.agents import wire
from evenly.live.agents.ended import EndedSessions
from evenly.live.agents.link import Link, Owner, Report
from evenly.live.agents.settings import check_settings
from evenly.live.agents.wire import Welcome
from evenly.live.session_id import SessionId, verify


class PoolFullError(Exception):
    """The pool has as many sessions as its capacity."""


class Session:
    """An open session of a pool. It counts until `end`."""

    __slots__ = ("_agent", "_begun")

    def __init__(self, agent: Agent, begun: float) -> None:
        self._agent = agent
        self._begun = begun

    def end(self) -> None:
        """End the session. Idempotent."""
        self._agent._end(self, self._begun)


class Agent:
    """Counts the sessions of a pool, and keeps a dispatcher informed while `async with agent:` runs.

        agent = Agent(pool="game-1", address="ws://10.0.0.5:7000", dispatchers=["http://127.0.0.1:4100"])
        async with agent:
            ...
            async with agent.session(lease):
                ...  # a client is served

    `address` is the URL that clients of the pool are sent to. `capacity` is the largest number of sessions, None
    for no limit. `token` is what dispatchers ask of agents; it can also be in `token_file` or in the environment
    variable EVENLY_AGENT_TOKEN. `ca_file` has the certificates to trust, for dispatchers with https://. `report`
    gets the events of the connection; by default they go to the logger "evenly.agent".

    Beginning and ending a session is local: it never waits for the network and works without any dispatcher. All
    methods must be called in the thread of the event loop. There is one agent per pool: the dispatcher listens to
    the one that started last, by the clock of the machine. If that clock was set back before a restart, the
    dispatcher takes the new agent for an old one until it has forgotten the old one, some heartbeats later.
    """

    def __init__(
        self,
        *,
        pool: str,
        address: str,
        dispatchers: Sequence[str],
        token: str | None = None,
        token_file: str | os.PathLike[str] | None = None,
        capacity: int | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        report: Report | None = None,
    ) -> None:
        settings = check_settings(
            pool=pool,
            address=address,
            dispatchers=dispatchers,
            token=token,
            token_file=token_file,
            ca_file=ca_file,
        )
        self.pool = pool
        self.address = address
        self.capacity = capacity
        self._incarnation = time.time_ns() // 1_000_000
        self._peer = PoolPeer(pool, incarnation=self._incarnation, capacity=capacity)
        self._keys: tuple[bytes, ...] = ()  # the current one, and the one before
        self._draining = False
        self._closing = False
        self._ended = EndedSessions()
        owner = Owner(
            hello=self._hello,
            beat=self._beat,
            ended=self._ended.frames,
            welcomed=self._welcomed,
            take=self._peer.receive,
        )
        self._link = Link(settings, owner, report)

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def sessions(self) -> int:
        """The number of open sessions."""
        return self._peer.tasks

    @property
    def full(self) -> bool:
        """Whether there is no room for another session."""
        return self._peer.full

    @property
    def threshold(self) -> int:
        """The newest threshold that a dispatcher or a client has brought; 0 before the first."""
        return self._peer.threshold

    @property
    def dispatcher(self) -> str | None:
        """The URL of the dispatcher that it is connected to, None if there is none."""
        return self._link.dispatcher

    @property
    def draining(self) -> bool:
        """Whether it asks for no new sessions."""
        return self._draining

    @property
    def sent(self) -> PeerMessageCount:
        """The messages so far, by reason. Those that were `dropped` are included."""
        return self._peer.sent

    @property
    def dropped(self) -> int:
        """The messages so far that were not sent, because no dispatcher was connected or it was too slow."""
        return self._link.dropped

    def start(self) -> None:
        """Connect in the background. For callers that cannot use `async with`; does nothing if it runs."""
        self._closing = False
        self._link.start()

    async def close(self) -> None:
        """Ask for no new sessions and disconnect. Takes a few seconds at most."""
        self._closing = True
        await self._link.close(self._peer.leave())

    @asynccontextmanager
    async def session(self, lease: str | None = None) -> AsyncIterator[Session]:
        """Count a session while the block runs. `lease` is the session id that the client brings, if any.

        Raises PoolFullError.
        """
        session = self.begin(lease)
        try:
            yield session
        finally:
            session.end()

    def begin(self, session_id: str | None = None) -> Session:
        """Count a session until its `end`. Raises PoolFullError.

        An id that the dispatcher did not sign for this pool is as good as none: the session counts.
        """
        named = self._named(session_id)
        if self._peer.full:
            self._refuse(named)
            raise PoolFullError(f"The pool {self.pool} has {self._peer.tasks} sessions, its capacity.")
        session = Session(self, self._ended.now())
        ticket, threshold = (None, None) if named is None else (named.ticket, named.threshold)
        self._send(self._peer.begin(session, ticket, threshold))
        return session

    def refuse(self, session_id: str | None) -> None:
        """Turn a client away, and give its place back to the dispatcher at once."""
        self._refuse(self._named(session_id))

    def drain(self) -> None:
        """Ask for no new sessions until `undrain`. Sessions that begin all the same are counted."""
        self._draining = True
        self._send(self._peer.leave())

    def undrain(self) -> None:
        """Ask for sessions again."""
        self._draining = False
        self._send(self._peer.heartbeat())

    def _hello(self) -> str:
        return wire.hello(self.pool, self._incarnation, self.address, self.capacity)

    def _welcomed(self, welcome: Welcome) -> None:
        """Use this key for session ids, and the one before it too: clients may be on their way."""
        self._ended.wanted = welcome.record
        if welcome.key not in self._keys[:1]:
            self._keys = (welcome.key, *self._keys[:1])

    def _beat(self) -> ToDispatcher:
        return self._peer.leave() if self._draining or self._closing else self._peer.heartbeat()

    def _named(self, session_id: str | None) -> SessionId | None:
        """Return what an id says, None unless the dispatcher has signed it for this pool."""
        if session_id is None:
            return None
        if not isinstance(session_id, str):
            raise InputError(f"A session id must be text or None, not {shown(session_id)}.")
        named = verify(self._keys, session_id)
        return named if named is not None and named.pool == self.pool else None

    def _refuse(self, named: SessionId | None) -> None:
        if named is not None:
            self._send(self._peer.refuse(named.ticket, named.threshold))

    def _end(self, session: Session, begun: float) -> None:
        before = self._peer.tasks
        self._send(self._peer.end(session))
        if self._peer.tasks < before:  # not at a second end
            self._ended.add(begun)

    def _send(self, message: ToDispatcher | None) -> None:
        if message is not None:
            self._link.send(message)
