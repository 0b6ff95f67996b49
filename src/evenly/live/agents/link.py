"""The connection of an agent to one dispatcher at a time. It never raises, waits or blocks for its owner.

Every message carries the whole state of the pool. So a message can be dropped while there is no connection: the
heartbeat after the next welcome repairs everything.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from evenly.core.protocol import ToDispatcher, ToPool
from evenly.core.protocol.codec import MAX_MESSAGE, decode_to_pool, encode_to_dispatcher, read_object
from evenly.errors import InputError
from evenly.inputs import shown
from evenly.live.agents.settings import AgentSettings
from evenly.live.agents.wire import Welcome, read_welcome

Report = Callable[[str, Mapping[str, object]], None]
"""Takes an event of the connection: its name and its facts."""

MAX_OUTBOX = 1000  # messages that wait for the socket; beyond that, the oldest are dropped
_PATIENCE = 3  # heartbeats without any frame, or without any progress of the socket
_OPEN_TIMEOUT_S = 3.0  # for the connection and its handshake, and again for the welcome
_CLOSE_TIMEOUT_S = 1.0  # for the last message, and again for the closing handshake
_MIN_DELAY_S, _MAX_DELAY_S = 0.1, 3.0  # between two attempts
_REFUSED_DELAY_S = 10.0  # after a dispatcher has refused this agent: two agents of one pool must not fight
_REFUSED = 1008  # the WebSocket close code for that
_LOGGER = logging.getLogger("evenly.agent")


class _LostError(Exception):
    """The connection must be given up."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Owner:
    """What the link asks of its agent: the first frame of a connection, the next heartbeat and the frames that go
    with it, and to take in what a dispatcher sends: its welcome, and messages, which may have an answer.
    """

    hello: Callable[[], str]
    beat: Callable[[], ToDispatcher]
    ended: Callable[[], Iterable[str]]
    welcomed: Callable[[Welcome], None]
    take: Callable[[ToPool], None]


class Link:
    """Holds one connection to one of the dispatchers, and goes to the next when it is lost."""

    def __init__(self, settings: AgentSettings, owner: Owner, report: Report | None) -> None:
        self._settings = settings
        self._owner = owner
        self._report = _log if report is None else report
        self._complaints: dict[str, str] = {}  # the last one about each dispatcher, so that none is repeated
        self._task: asyncio.Task[None] | None = None
        self._outbox: deque[ToDispatcher | str | None] = deque(maxlen=MAX_OUTBOX)  # None stands for a ping
        self._wake = asyncio.Event()
        self._sent_all = asyncio.Event()
        self._unheard = self._stuck = 0  # heartbeats
        self._heartbeat = 2 * _MAX_DELAY_S  # until a dispatcher names one
        self._since = math.inf  # when the connection was welcomed
        self._loop: asyncio.AbstractEventLoop | None = None
        self.dispatcher: str | None = None  # the URL of the one that has welcomed us
        self.dropped = 0  # messages so far

    @property
    def running(self) -> bool:
        """Whether it runs in the current event loop."""
        return self._task is not None and not self._task.done() and self._loop is asyncio.get_running_loop()

    def start(self) -> None:
        """Connect, and stay connected, in a task of the running event loop."""
        if self.running:
            return
        self._loop = asyncio.get_running_loop()
        self._wake, self._sent_all = asyncio.Event(), asyncio.Event()  # those of an earlier loop are of no use
        self.dispatcher = None
        self._task = self._loop.create_task(self._run(), name="evenly agent")

    def send(self, message: ToDispatcher) -> None:
        """Hand over a message. It is dropped if there is no connection."""
        if self.dispatcher is None:
            self.dropped += 1
        else:
            self._put(message)

    async def close(self, last: ToDispatcher) -> None:
        """Send a last message if there is a connection, and close it. Takes a few seconds at most."""
        task, self._task = self._task, None
        if task is None or self._loop is not asyncio.get_running_loop():
            return
        if self.dispatcher is not None:
            self._put_ended()
            self._put(last)
            self._sent_all.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                    await self._sent_all.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def _put_ended(self) -> None:
        for frame in self._owner.ended():
            self._put(frame)

    def _put(self, message: ToDispatcher | str | None) -> None:
        self.dropped += len(self._outbox) == MAX_OUTBOX
        self._outbox.append(message)
        self._wake.set()

    async def _run(self) -> None:
        dispatchers = list(self._settings.dispatchers)
        random.shuffle(dispatchers)  # so that the agents of a fleet spread over its dispatchers
        delay = _MIN_DELAY_S
        for url in cycle(dispatchers):
            self._since = math.inf
            refused = False
            try:
                await self._hold(url)
            except Exception as error:  # nothing that happens here may reach the server
                self._complain(url, error)
                refused = _is_refusal(error)
            if time.monotonic() - self._since > _MAX_DELAY_S:  # not if it ends at once, again and again
                delay = _MIN_DELAY_S
            await asyncio.sleep((_REFUSED_DELAY_S if refused else delay) * random.uniform(0.5, 1.5))
            # At most a heartbeat with its random part: a dispatcher that is back knows all pools after two.
            delay = min(2 * delay, _MAX_DELAY_S, self._heartbeat / 1.5)

    async def _hold(self, url: str) -> None:
        """Connect to a dispatcher and stay until the connection is lost, which raises an exception."""
        connection = await _Direct(
            url,
            additional_headers=_authorization(self._settings.token),
            compression=None,
            proxy=None,  # a dispatcher is near; a proxy of the environment is for other things
            open_timeout=_OPEN_TIMEOUT_S,
            close_timeout=_CLOSE_TIMEOUT_S,
            ping_interval=None,  # the heartbeat brings pings, and only the welcome says how often
            max_size=MAX_MESSAGE,
            ssl=self._settings.tls if url.startswith("wss:") else None,
        )
        try:
            await self._serve(connection, url)
        except asyncio.CancelledError:  # this agent closes: say goodbye, but not for long
            with suppress(Exception):
                async with asyncio.timeout(2 * _CLOSE_TIMEOUT_S):
                    await connection.close()
            raise
        finally:
            self.dispatcher = None
            self._outbox.clear()
            connection.transport.abort()  # a peer that does not answer would not answer a closing handshake either

    async def _serve(self, connection: ClientConnection, url: str) -> None:
        async with asyncio.timeout(_OPEN_TIMEOUT_S):
            await connection.send(self._owner.hello())
            values = read_object(_text(await connection.recv()))
        if values.get("type") != "welcome":
            raise InputError(
                f"The first frame of a dispatcher must be a welcome, not {shown(values.get('type'))}."
            )
        self._since = time.monotonic()
        self._unheard = self._stuck = 0
        self._use(read_welcome(values))
        self.dispatcher = url
        self._complaints.clear()
        self._tell("dispatcher connected", dispatcher=url)
        work = self._read(connection), self._write(connection), self._beat()
        tasks = [asyncio.create_task(each) for each in work]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        done.pop().result()

    async def _read(self, connection: ClientConnection) -> None:
        async for frame in connection:
            self._unheard = 0
            values = read_object(_text(frame))
            kind = values.get("type")
            if kind is None:
                self._owner.take(decode_to_pool(values))
            elif kind == "welcome":
                self._use(read_welcome(values))
                self._put(self._owner.beat())
            # Other types may come with later versions. They are not for us.
        raise _LostError("the dispatcher has closed the connection")

    async def _write(self, connection: ClientConnection) -> None:
        while True:
            await self._wake.wait()
            while self._outbox:
                message = self._outbox.popleft()
                if message is None:
                    pong = asyncio.ensure_future(await connection.ping())
                    pong.add_done_callback(self._heard)
                else:
                    await connection.send(message if isinstance(message, str) else encode_to_dispatcher(message))
                self._stuck = 0
            self._wake.clear()
            self._sent_all.set()

    async def _beat(self) -> None:
        """Send heartbeats, and give up if nothing comes back, or if the socket takes nothing.

        Heartbeats are counted, not seconds: if the event loop was busy for long, the answers are in the socket.
        A pool that leaves gets no answers from the dispatcher, so pings are sent as well.
        """
        while True:
            if self._unheard >= _PATIENCE:
                raise _LostError(f"nothing received for {_PATIENCE} heartbeats")
            if self._stuck >= _PATIENCE:
                raise _LostError(f"nothing could be sent for {_PATIENCE} heartbeats")
            self._unheard += 1
            self._stuck += 1
            self._put(self._owner.beat())
            self._put(None)
            self._put_ended()
            await asyncio.sleep(self._heartbeat)

    def _heard(self, pong: asyncio.Future[Any]) -> None:
        if not pong.cancelled() and pong.exception() is None:
            self._unheard = 0

    def _use(self, welcome: Welcome) -> None:
        self._heartbeat = welcome.heartbeat
        self._owner.welcomed(welcome)

    def _complain(self, url: str, error: Exception) -> None:
        """Report a failure, unless it is the same as the last one of this dispatcher."""
        reason = _reason(error)
        if self._complaints.get(url) != reason:
            self._complaints[url] = reason
            self._tell("dispatcher lost", dispatcher=url, reason=reason)

    def _tell(self, event: str, **facts: object) -> None:
        try:
            self._report(event, {"pool": self._settings.pool, **facts})
        except Exception:  # of a callback that is not ours
            _LOGGER.exception("the callback for events has failed")


class _Direct(connect):
    """A connection attempt that follows no redirects: the token is for this dispatcher only."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        """Take a redirect for a failure."""
        return exc


def _authorization(token: str | None) -> dict[str, str]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def _text(frame: Any) -> str:  # noqa: ANN401
    if not isinstance(frame, str):
        raise InputError("A frame of a dispatcher must be text, not bytes.")
    return frame


def _is_refusal(error: Exception) -> bool:
    return isinstance(error, ConnectionClosed) and error.rcvd is not None and error.rcvd.code == _REFUSED


def _reason(error: Exception) -> str:
    """Return one line about a failure."""
    if isinstance(error, ConnectionClosed) and error.rcvd is not None and error.rcvd.reason:
        return f"the dispatcher says: {error.rcvd.reason}"
    return " ".join((str(error) or type(error).__name__).split())[:200]


def _log(event: str, facts: Mapping[str, object]) -> None:
    level = logging.INFO if event == "dispatcher connected" else logging.WARNING
    _LOGGER.log(level, "%s: %s", event, ", ".join(f"{name} {value}" for name, value in facts.items()))
