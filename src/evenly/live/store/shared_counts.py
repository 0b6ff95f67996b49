"""The session counts that pickers share through a store, so that each balances what all of them have open.

Picks never wait for the store. Each picker writes its own counts (`own_counts.py`) and follows those of the others
(`peers.py`): by messages, and by reading their hashes whenever a message is missing, after a reconnect, and when
the numbers differ, which it checks every second.

Without the store, the last known counts of the others stay in force: old counts are a better guess than none.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from evenly.live.addresses import MAX_POOLS, Address
from evenly.live.log import Log
from evenly.live.store.connection import TIMEOUT_S, connect, reason_of
from evenly.live.store.own_counts import RENEW_S, TTL_S, OwnCounts
from evenly.live.store.peers import MAX_PEERS, Peers
from evenly.live.store.picker_messages import (
    MAX_SEQUENCE,
    SEQUENCE,
    Names,
    decode_hash,
    decode_message,
    decode_number,
    is_picker,
)
from evenly.live.store_url import StoreUrl, with_password

_FIRST_RETRY_S, _MAX_RETRY_S = 0.1, 2.0
_READ_PAUSE_S = 0.02  # between reads of the hashes, whatever messages ask for
_STEP_S = 3 * TIMEOUT_S  # for the few replies of one step
_FAREWELLS = 3  # attempts
_ECHO_S = 3 * RENEW_S  # for a message to come back to us


class SharedCounts:
    """The counts of a fleet of pickers.

    `changed` is called with an endpoint and the number of sessions that the other pickers have there, `refreshed`
    after everything was read.
    """

    def __init__(
        self,
        url: StoreUrl,
        fleet: str,
        *,
        environment: Mapping[str, str],
        changed: Callable[[Address, int], None],
        refreshed: Callable[[], None],
        log: Log,
    ) -> None:
        self._url = with_password(url, environment)
        self._names = Names(fleet=fleet)
        self._log = log
        self._refreshed = refreshed
        self._peers = Peers(changed)
        self._client = connect(self._url)
        self._own = OwnCounts(self._client, self._names)
        self._failing: set[str] = {"write", "listen", "read"}  # the parts that do not work now
        self._reported: bool | None = None
        self._echo = 0.0  # when a message of ours came back
        self._wanted = asyncio.Event()
        self._known = asyncio.Event()  # the others are known, or the store is down
        self._crowded = False

    @property
    def available(self) -> bool:
        """Whether the store can be written, read and listened to."""
        return not self._failing

    @property
    def pickers(self) -> int:
        """The number of other pickers that are known."""
        return len(self._peers)

    @property
    def picker(self) -> str:
        """The id of this picker."""
        return self._own.picker

    def heard(self) -> dict[str, float]:
        """Return the ids of the other pickers, with the seconds since each was last heard."""
        return self._peers.heard(asyncio.get_running_loop().time())

    def elsewhere(self, endpoint: Address) -> int:
        """Return the number of sessions that the other pickers have at an endpoint."""
        return self._peers.sessions(endpoint)

    def set_own(self, endpoint: Address, count: int) -> None:
        """Note the number of this picker's sessions at an endpoint."""
        self._own.set(endpoint, count)

    async def wait_known(self, seconds: float) -> None:
        """Wait until the others are known, or the store has failed, or the time is up."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._known.wait()

    async def run(self) -> None:
        """Share until cancelled; then leave the store."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._keep("write", self._write))
                group.create_task(self._keep("listen", self._listen))
                group.create_task(self._keep("read", self._read))
        finally:
            await self._leave()
            with suppress(Exception):
                await self._client.aclose()

    async def _leave(self) -> None:
        """Tell the others that our sessions no longer count. Without it, they forget us a little later."""
        for _ in range(_FAREWELLS):
            with suppress(Exception):
                async with asyncio.timeout(TIMEOUT_S):
                    await self._own.leave()
                return

    async def _keep(self, part: str, act: Callable[[], Awaitable[None]]) -> None:
        """Do this part of the work again and again, with longer pauses while it fails."""
        wait = _FIRST_RETRY_S
        while True:
            try:
                await act()
                wait = _FIRST_RETRY_S
            except Exception as error:  # whatever a library or a store does: picks go on
                self._failed(part, error)
                # Connections that work may still lead to a store that is no longer the primary.
                await self._client.connection_pool.disconnect(inuse_connections=False)
                await asyncio.sleep(random.uniform(wait / 2, wait))
                wait = min(2 * wait, _MAX_RETRY_S)

    # --- the three parts ---------------------------------------------------------------------------------------

    async def _write(self) -> None:
        async with asyncio.timeout(RENEW_S + _STEP_S):
            await self._own.write_next()
        self._works("write")

    async def _listen(self) -> None:
        """Subscribe, and take in messages until the connection fails."""
        clock = asyncio.get_running_loop().time
        async with self._client.pubsub(ignore_subscribe_messages=False) as channel:
            async with asyncio.timeout(_STEP_S):
                await channel.subscribe(self._names.channel)
                while (await channel.get_message(timeout=TIMEOUT_S) or {}).get("type") != "subscribe":
                    pass
            self._works("listen")
            self._wanted.set()  # what was said before must be read
            self._echo = clock()
            while True:
                async with asyncio.timeout(_STEP_S):
                    received = await channel.get_message(timeout=TIMEOUT_S)
                if received is not None and received["type"] == "message":
                    self._take_in(received["data"], clock())
                if clock() - self._echo > _ECHO_S:
                    raise TimeoutError("No message came back.")
                await asyncio.sleep(0)  # a flood of messages must not hold up the picks

    def _take_in(self, data: object, now: float) -> None:
        message = decode_message(data)
        if message is None:
            return
        if message.picker == self._own.picker:
            self._echo = now
        elif not self._peers.receive(message, now) and not (self._crowded and message.picker not in self._peers):
            self._wanted.set()

    async def _read(self) -> None:
        """Read what is not known of the others, and wait for the next time."""
        self._wanted.clear()
        async with asyncio.timeout(_STEP_S):
            await self._read_peers()
        self._works("read")
        self._refreshed()
        if "listen" not in self._failing:
            self._known.set()
        await asyncio.sleep(_READ_PAUSE_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(RENEW_S):
                await self._wanted.wait()

    # --- reading -----------------------------------------------------------------------------------------------

    async def _read_peers(self) -> None:
        loop = asyncio.get_running_loop()
        pickers = await self._registered()
        async with self._client.pipeline(transaction=False) as batch:
            for picker in pickers:
                key = self._names.counts(picker)
                batch.hget(key, SEQUENCE.decode())
                batch.hlen(key)
                batch.pttl(key)
            replies: list[Any] = await batch.execute(raise_on_error=False)
        now = loop.time()
        if "read" in self._failing:
            self._peers.hear_all(now)
        for i, picker in enumerate(pickers):
            sequence, fields, left = replies[3 * i : 3 * i + 3]
            # A hash that is garbage, never expires or is too large was not written by a picker.
            if not isinstance(left, int) or not 0 < left <= 1000 * TTL_S:
                continue
            if not isinstance(fields, int) or fields > MAX_POOLS + 1:
                continue
            heard = now - TTL_S + left / 1000
            self._peers.hear(picker, heard)
            if decode_number(sequence, MAX_SEQUENCE) != self._peers.sequence(picker):
                await self._read_peer(picker, heard)
        for picker in self._peers.forget_silent(now - TTL_S):
            self._log.event("picker forgotten", picker=picker)

    async def _registered(self) -> list[str]:
        """Return the pickers to look at: those known, and others that have renewed lately."""
        seconds, _ = await self._client.time()
        found: list[Any] = await self._client.zrevrangebyscore(
            self._names.registry, "+inf", int(seconds) - TTL_S, start=0, num=2 * MAX_PEERS
        )
        names = [name.decode("latin-1") for name in found]
        new = [name for name in names if is_picker(name) and name != self._own.picker and name not in self._peers]
        room = MAX_PEERS - len(self._peers)
        if len(new) > room:
            self._ignore(new[room])
        return self._peers.ids + new[:room]

    async def _read_peer(self, picker: str, heard: float) -> None:
        fields: Mapping[Any, Any] = await self._client.hgetall(self._names.counts(picker))
        counts = decode_hash(fields)
        if counts is None:
            return
        new = picker not in self._peers
        if not self._peers.replace(picker, *counts, heard):
            self._ignore(picker)
        elif new:
            self._log.event("picker seen", picker=picker)
        await asyncio.sleep(0)  # a large hash takes a while; let picks go first

    def _ignore(self, picker: str) -> None:
        """Report, once, that there is no room for a picker."""
        if not self._crowded:
            self._log.event("picker ignored", picker=picker, reason=f"more than {MAX_PEERS + 1} pickers, or pools")
        self._crowded = True

    # --- what works --------------------------------------------------------------------------------------------

    def _works(self, part: str) -> None:
        self._failing.discard(part)
        if not self._failing and self._reported is not True:
            self._reported = True
            self._log.event("store reachable", store=str(self._url), fleet=self._names.fleet)

    def _failed(self, part: str, error: Exception) -> None:
        self._failing.add(part)
        self._known.set()
        if part == "write":
            self._own.repeat_all()
        if self._reported is not False:
            self._reported = False
            self._log.event("store lost", store=str(self._url), reason=reason_of(error, self._url))
