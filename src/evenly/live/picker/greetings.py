"""Finds servers that cannot be pools with HTTP/1.1: they speak before they are spoken to, or they speak TLS.

A server of HTTP/1.1 waits for a request. A server of gRPC sends the settings of HTTP/2 first, and servers of mail,
shells and databases greet too. A server of TLS waits, but answers the first message of a handshake in kind.
Envoy's check of such a pool only opens a connection, which all of them accept.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from contextlib import suppress
from functools import cache
from math import inf

from evenly.live.addresses import Address
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.pool import LivePool
from evenly.live.log import Log

_LOOK_S = 0.25
_CONNECT_S = 1.0
_GREETING_S = 2.0  # a server that has not spoken by then waits for a request
_HELLO_S = 1.0  # for the answer to the first message of a handshake
_AGAIN_S = 2.0  # for a pool that has greeted: its server may have been replaced
_AT_ONCE = 50
_HTTP1 = b"HTTP/"  # some servers refuse a connection with a response, without a request
_TLS = (b"\x16\x03", b"\x15\x03")  # records of TLS: a handshake, an alert
_SETTINGS, _FRAME = b"\x04\x00\x00\x00\x00\x00", slice(3, 9)  # the header of HTTP/2's first frame, less its length


class Greetings:
    """Examines each pool when it comes and when it recovers. Does not judge a pool that it cannot reach."""

    def __init__(self, balancer: Balancer, log: Log) -> None:
        self._balancer = balancer
        self._log = log
        self._next: dict[LivePool, float] = {}  # when to examine it again
        self._greeting: set[LivePool] = set()

    def greets(self, pool: LivePool) -> bool:
        """Return whether the pool has spoken first, so that it cannot be one with HTTP/1.1."""
        return pool in self._greeting

    async def run(self) -> None:
        """Examine pools until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_S)
            await asyncio.gather(*map(self._examine, self._due()))

    def _due(self) -> list[LivePool]:
        pools = self._balancer.pools
        for pool in self._next.keys() - {*pools}:
            self._forget(pool)
        for pool in pools:
            if pool.failing and pool not in self._greeting:  # its health checks fail; another server may follow
                self._forget(pool)
        now = time.monotonic()
        due = (pool for pool in pools if self._next.get(pool, 0.0) <= now)
        return [pool for pool in due if pool in self._greeting or not pool.failing][:_AT_ONCE]

    def _forget(self, pool: LivePool) -> None:
        self._next.pop(pool, None)
        self._greeting.discard(pool)

    async def _examine(self, pool: LivePool) -> None:
        said = await _greeting(pool.endpoint)
        if said is None:
            self._next[pool] = time.monotonic() + _AGAIN_S
            return
        greets = bool(said) and not said.startswith(_HTTP1[: len(said)])
        if greets and pool not in self._greeting:
            speaks = "HTTP/2" if said[_FRAME] == _SETTINGS else "TLS" if said[:2] in _TLS else "not HTTP/1.1"
            self._log.event("pool speaks another protocol", pool=pool.address, speaks=speaks)
            self._greeting.add(pool)
        elif not greets:
            self._greeting.discard(pool)
        self._next[pool] = time.monotonic() + _AGAIN_S if greets else inf


async def _greeting(endpoint: Address) -> bytes | None:
    """Return what the server says first, or in TLS; empty if it waits for a request; None if it is not reached."""
    try:
        async with asyncio.timeout(_CONNECT_S):
            reader, writer = await asyncio.open_connection(*endpoint)
    except OSError:
        return None
    try:
        async with asyncio.timeout(_GREETING_S):
            return await reader.read(9)
    except TimeoutError:
        return await _answer_in_tls(reader, writer)
    except OSError:
        return None
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def _answer_in_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """Begin a TLS handshake; return the first bytes of the answer if that is in TLS too, else nothing."""
    with suppress(OSError):  # most servers of HTTP/1.1 close the connection
        writer.write(_client_hello())
        async with asyncio.timeout(_HELLO_S):
            answer = await reader.read(9)
        return answer if answer[:2] in _TLS else b""
    return b""


@cache
def _client_hello() -> bytes:
    sent = ssl.MemoryBIO()
    handshake = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), sent, server_hostname="pool")
    with suppress(ssl.SSLWantReadError):
        handshake.do_handshake()
    return sent.read()
