"""This picker's own sessions in the store: every change at once, and all of them if the store lost something.

The hash of a picker lives for `TTL_S` after its last renewal. Each change has a number, the sequence number, which
the hash and the message carry. They are written in one transaction, so that a reader of the hash knows which
messages it covers, and the picker sees every second whether its hash is still what it wrote.
"""

from __future__ import annotations

import asyncio
import secrets
from itertools import islice
from typing import Any

from redis.asyncio import Redis

from evenly.live.addresses import Address
from evenly.live.store.picker_messages import (
    MAX_SEQUENCE,
    SEQUENCE,
    Counts,
    Message,
    Names,
    decode_number,
    encode_hash,
)

TTL_S = 5.0
RENEW_S = 1.0
_GATHER_S = 0.002  # changes within this time travel together
_MAX_CHANGES = 1000  # in one message: to take in more would hold up picks
_MAX_REGISTERED = 1000  # pickers; the oldest leave first


class OwnCounts:
    """The sessions of one picker at each endpoint, and what the store was told about them."""

    def __init__(self, client: Redis, names: Names) -> None:
        self.picker = secrets.token_hex(16)
        self._client = client
        self._names = names
        self._key = names.counts(self.picker)
        self._sequence = 0
        self._told: Counts = {}  # without zeros
        self._changed: Counts = {}
        self._change = asyncio.Event()
        self._whole = True  # whether the store may not have all that it was told
        self._renewal = 0.0  # when the next one is due

    def set(self, endpoint: Address, count: int) -> None:
        """Note the number of open sessions at an endpoint."""
        if count or endpoint in self._told:
            self._changed[endpoint] = count
        else:
            self._changed.pop(endpoint, None)  # so that endpoints that come and go in an outage leave nothing
        self._change.set()

    def repeat_all(self) -> None:
        """Write everything again the next time: the store may have lost some of it."""
        self._whole = True

    async def write_next(self) -> None:
        """Wait for a change, or until it is time to renew, and write to the store."""
        loop = asyncio.get_running_loop()
        if not self._whole:
            try:
                async with asyncio.timeout_at(self._renewal):
                    await self._change.wait()
                await asyncio.sleep(_GATHER_S)
            except TimeoutError:
                pass
        if self._whole:
            await self._write_all()
        elif loop.time() >= self._renewal:
            await self._renew()
            self._renewal = loop.time() + RENEW_S
        else:
            await self._publish()

    async def leave(self) -> None:
        """Remove this picker from the store."""
        async with self._client.pipeline(transaction=True) as batch:
            batch.delete(self._key)
            batch.zrem(self._names.registry, self.picker)
            batch.publish(self._names.channel, self._message(gone=True).encode())
            await batch.execute()

    async def _publish(self) -> None:
        """Write what has changed."""
        counts = self._take_changes(_MAX_CHANGES)
        if not counts:
            return
        self._whole = True  # until it has worked
        fields = encode_hash(self._sequence, {endpoint: count for endpoint, count in counts.items() if count})
        ended = [str(endpoint) for endpoint, count in counts.items() if not count]
        async with self._client.pipeline(transaction=True) as batch:
            batch.hget(self._key, SEQUENCE.decode())
            batch.hset(self._key, mapping=fields)
            if ended:
                batch.hdel(self._key, *ended)
            batch.pexpire(self._key, int(1000 * TTL_S))
            batch.publish(self._names.channel, self._message(counts).encode())
            before, *_ = await batch.execute()
        # Another number before says that the hash was lost, and the other counts with it.
        self._whole = decode_number(before, MAX_SEQUENCE) != self._sequence - 1

    async def _renew(self) -> None:
        """Stay alive and registered, and look whether everything is still there."""
        self._whole = True  # until it has worked
        seconds, _ = await self._client.time()
        await self._register(int(seconds))
        async with self._client.pipeline(transaction=True) as batch:
            batch.hget(self._key, SEQUENCE.decode())
            batch.hlen(self._key)
            batch.pexpire(self._key, int(1000 * TTL_S))
            batch.publish(self._names.channel, self._message().encode())
            sequence, fields, *_ = await batch.execute()
        self._whole = decode_number(sequence, MAX_SEQUENCE) != self._sequence or fields != len(self._told) + 1

    async def _write_all(self) -> None:
        """Write everything, under a new number: readers of a new number read all of it."""
        self._take_changes(None)
        self._sequence += 1
        seconds, _ = await self._client.time()
        await self._register(int(seconds))
        async with self._client.pipeline(transaction=True) as batch:
            batch.delete(self._key)
            batch.hset(self._key, mapping=encode_hash(self._sequence, self._told))
            batch.pexpire(self._key, int(1000 * TTL_S))
            batch.publish(self._names.channel, self._message().encode())
            await batch.execute()
        self._whole = False

    async def _register(self, now: int) -> None:
        registry = self._names.registry
        async with self._client.pipeline(transaction=True) as batch:
            batch.zadd(registry, {self.picker: now})
            batch.zremrangebyscore(registry, "-inf", now - 2 * TTL_S)
            batch.zremrangebyscore(registry, now + 2 * TTL_S, "+inf")  # no renewal is in the future
            batch.zremrangebyrank(registry, 0, -_MAX_REGISTERED - 1)
            replies: list[Any] = await batch.execute(raise_on_error=False)
        wrong = next((reply for reply in replies if isinstance(reply, Exception)), None)
        if wrong is not None:
            if "WRONGTYPE" in str(wrong):  # something else has taken our name
                await self._client.delete(registry)
            raise wrong

    def _take_changes(self, most: int | None) -> Counts:
        """Take up to `most` changes that were not taken yet, as the next change if there are any."""
        counts = dict(islice(self._changed.items(), most))
        for endpoint in counts:
            del self._changed[endpoint]
        if not self._changed:
            self._change.clear()
        changes = {endpoint: count for endpoint, count in counts.items() if count != self._told.get(endpoint, 0)}
        for endpoint, count in changes.items():
            if count:
                self._told[endpoint] = count
            else:
                del self._told[endpoint]
        self._sequence += bool(changes)
        return changes

    def _message(self, counts: Counts | None = None, *, gone: bool = False) -> Message:
        return Message(picker=self.picker, sequence=max(self._sequence, 1), counts=counts, gone=gone)
