"""The processes that share a store: each announces itself there, so that every dashboard can show the others.

Nothing is decided with this, so it is apart from the counts and tokens: a failure here leaves them alone. All
announcements are one sorted set, with the store's time of the last renewal as score. An announcement has the id of
the process, the store's time when it started, and its name.
"""

from __future__ import annotations

import asyncio
import re
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoPermissionError

from evenly.live.log import Log
from evenly.live.store.connection import TIMEOUT_S, connect, reason_of
from evenly.live.store_url import StoreUrl

RENEW_S = 1.0
LEASE_S = 5.0  # a process that was not heard for this long is shown as lost
FORGET_S = 60.0  # and is no longer shown after this time; one that stops in order is gone at once
MAX_PROCESSES = 100
_STEP_S = 3 * TIMEOUT_S
_FORM = re.compile(r"([0-9a-f]{32}) ([0-9]{1,12}) ([A-Za-z0-9_.:-]{1,100})")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.:-]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Process:
    """Another process: `age` seconds since it started, `heard` since its last renewal."""

    id: str
    name: str
    age: float
    heard: float

    @property
    def lost(self) -> bool:
        """Whether it has missed several renewals."""
        return self.heard > LEASE_S


class Presence:
    """Announces this process in the store at `url` and knows the others of its `role` and fleet."""

    def __init__(self, url: StoreUrl, fleet: str, role: str, *, own_id: str, name: str, log: Log) -> None:
        self._key = f"evenly:{{{fleet}}}:present:{role}"
        self._own_id = own_id
        self._name = (_NOT_IN_NAMES.sub("_", name) or "unnamed")[:100]
        self._began = time.monotonic()
        self._announced: str | None = None
        self._others: list[Process] = []
        self._looked = time.monotonic()
        self._url = url
        self._log = log
        self._silenced = False

    def others(self) -> list[Process]:
        """Return the others, in order of their names. While the store is down, they get older and are kept."""
        passed = time.monotonic() - self._looked
        return [
            Process(id=each.id, name=each.name, age=each.age + passed, heard=each.heard + passed)
            for each in self._others
        ]

    async def run(self) -> None:
        """Announce and look until cancelled, then take the announcement back."""
        client = connect(self._url)
        try:
            while True:
                try:
                    async with asyncio.timeout(_STEP_S):
                        await self._renew(client)
                except NoPermissionError as error:
                    self._refused(error)
                except Exception:  # those who need the store report what is wrong with it
                    self._announced = None  # the next store may have another clock
                await asyncio.sleep(RENEW_S)
        finally:
            with suppress(Exception):
                async with asyncio.timeout(TIMEOUT_S):
                    await self._leave(client)
            with suppress(Exception):
                await client.aclose()

    def _refused(self, error: NoPermissionError) -> None:
        """Report once that others do not see this process: its user in the store lacks a command."""
        if not self._silenced:
            self._log.event("not announced", reason=reason_of(error, self._url))
        self._silenced = True

    async def _renew(self, client: Redis) -> None:
        seconds, micros = await client.time()
        now = seconds + micros / 1_000_000
        if self._announced is None:
            await self._leave(client)
            self._announced = f"{self._own_id} {int(now - time.monotonic() + self._began)} {self._name}"
        async with client.pipeline(transaction=True) as batch:
            batch.zremrangebyscore(self._key, "-inf", now - FORGET_S)
            batch.zremrangebyscore(self._key, now + FORGET_S, "+inf")  # no renewal is in the future
            batch.zadd(self._key, {self._announced: now})
            batch.zremrangebyrank(self._key, 0, -MAX_PROCESSES - 1)
            batch.pexpire(self._key, int(2000 * FORGET_S))
            batch.zrevrangebyscore(self._key, "+inf", "-inf", withscores=True)
            *_, found = await batch.execute()
        self._others = read_processes(found, now, own_id=self._own_id)
        self._looked = time.monotonic()

    async def _leave(self, client: Redis) -> None:
        """Take back what this process announced, also under another start."""
        found: list[Any] = await client.zrevrangebyscore(self._key, "+inf", "-inf")
        own = [each for each in found if each.startswith(self._own_id.encode())]
        if own:
            await client.zrem(self._key, *own)


def read_processes(found: list[tuple[bytes, float]], now: float, *, own_id: str) -> list[Process]:
    """Read announcements, newest first. What is not valid is left out: anyone may have written to the store."""
    read: dict[str, Process] = {}
    for text, renewed in found:
        match = _FORM.fullmatch(text.decode("latin-1"))
        if match is not None and match[1] != own_id and match[1] not in read:
            age, heard = max(now - int(match[2]), 0.0), max(now - renewed, 0.0)
            read[match[1]] = Process(id=match[1], name=match[3], age=age, heard=heard)
    return sorted(read.values(), key=lambda each: (each.name, each.id))


def name_here(port: int) -> str:
    """Return a name for a process of this machine: its host, and the port where its dashboard is."""
    return f"{socket.gethostname()}:{port}"
