"""One HTTP request over one connection, as a client sends it that comes for a session and goes."""

from __future__ import annotations

import asyncio
import http.client
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from evenly.live.addresses import Address

MAX_ANSWER = 2**20  # bytes
TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request."""

    status: int
    body: bytes

    def json(self) -> dict[str, Any]:
        """Return the JSON object in the body; an empty one if there is none."""
        try:
            values = json.loads(self.body)
        except ValueError:
            return {}
        return values if isinstance(values, dict) else {}


async def request(
    server: Address, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
) -> Answer:
    """Send a request and return the answer. Raises OSError if there is none within 10 seconds."""
    sent = b"" if body is None else json.dumps(body).encode()
    lines = [
        f"{method} {path} HTTP/1.1",
        f"Host: {server}",
        "Connection: close",
        f"Content-Length: {len(sent)}",
        *(["Content-Type: application/json"] if sent else []),
        *(f"{name}: {value}" for name, value in (headers or {}).items()),
        "\r\n",
    ]
    async with asyncio.timeout(TIMEOUT_S):  # a TimeoutError is an OSError
        reader, writer = await asyncio.open_connection(*server, limit=MAX_ANSWER)
        try:
            writer.write("\r\n".join(lines).encode() + sent)
            received = await _read(reader)
        finally:
            writer.transport.abort()
    return _parse(received)


async def _read(reader: asyncio.StreamReader) -> bytes:
    """Read until the server closes the connection."""
    received = bytearray()
    while data := await reader.read(2**16):
        received += data
        if len(received) > MAX_ANSWER:
            raise ConnectionError(f"The answer has more than {MAX_ANSWER} bytes.")
    return bytes(received)


class _Received:
    """What `http.client` asks of a socket."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, mode: str) -> io.BytesIO:
        """Return what was received as a file."""
        return io.BytesIO(self._data)


def _parse(received: bytes) -> Answer:
    response = http.client.HTTPResponse(cast(Any, _Received(received)))
    try:
        response.begin()
        return Answer(response.status, response.read())
    except http.client.HTTPException as error:  # broken off, or no HTTP
        raise ConnectionError(f"The answer is not complete: {error!r}.") from None
    finally:
        response.close()
