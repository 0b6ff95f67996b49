"""Small HTTP/1.1 requests over asyncio, byte by byte: attacks need requests that no library would send."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from dataclasses import dataclass

from evenly.live.addresses import Address

TIMEOUT_S = 10.0
NO_ANSWER = f"no answer within {TIMEOUT_S:g} s"


@dataclass(frozen=True)
class Answer:
    """A response. The status is 0 if there was none; `text` then says why."""

    status: int
    text: str


async def exchange(server: Address, request: bytes, *, half_close: bool = False) -> Answer:
    """Send these bytes over a new connection; return the response."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            reader, writer = await asyncio.open_connection(*server)
            try:
                return await _exchange(reader, writer, request, half_close)
            finally:
                writer.transport.abort()
    except TimeoutError:
        return Answer(0, NO_ANSWER)
    except OSError as error:
        return Answer(0, error.strerror or str(error))


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes, half_close: bool
) -> Answer:
    with suppress(OSError):  # it may answer and close before it has read everything
        writer.write(request)
        await writer.drain()
        if half_close:
            writer.write_eof()
    return await read_answer(reader)


async def exchange_reading_on(server: Address, request: bytes) -> Answer:
    """Send these bytes, and read the response even if not all of them could be sent. Streams would give up."""
    loop = asyncio.get_running_loop()
    received = asyncio.StreamReader()
    with socket.socket() as client:
        client.setblocking(False)
        await loop.sock_connect(client, server)
        sending = asyncio.ensure_future(loop.sock_sendall(client, request))
        with suppress(OSError):  # a TimeoutError is one, too
            async with asyncio.timeout(TIMEOUT_S):
                while data := await loop.sock_recv(client, 2**16):
                    received.feed_data(data)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
    received.feed_eof()
    return await read_answer(received)


async def read_answer(reader: asyncio.StreamReader) -> Answer:
    """Read one response, by its length or until the end."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError as error:
        return Answer(0, "an empty reply" if not error.partial else f"half a reply: {error.partial!r}")
    except ConnectionError as error:
        return Answer(0, error.strerror or str(error))
    fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
    if fields.get("transfer-encoding") == "chunked" or "content-length" not in fields:
        body = await reader.read(-1)
    else:
        body = await reader.readexactly(int(fields["content-length"]))
    return Answer(int(head.split(" ", 2)[1]), body.decode(errors="replace"))


def request(method: str, path: str, body: bytes = b"", *, host: str = "pools", **fields: str) -> bytes:
    """Return an HTTP/1.1 request for one exchange. In names of fields, `_` stands for `-`."""
    lines = [f"{method} {path} HTTP/1.1", f"host: {host}", "connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    if body or method == "POST":
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


async def fetch(server: Address, path: str, method: str = "GET", body: bytes = b"") -> Answer:
    """Send a plain request, as an honest client of the admin port does."""
    kind = {"content_type": "application/json"} if body else {}
    return await exchange(server, request(method, path, host=str(server), body=body, **kind))
