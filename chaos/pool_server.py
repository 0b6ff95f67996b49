"""A pool under siege: it counts its own sessions, holds requests, and closes connections when told to.

It serves WebSocket sessions that echo, `/` (200 with its address, after the body), `/hang` (no answer) and
`/early` (413 before the body, and a close; for `/early/polite` it reads on until the client stops).

Commands come on standard input, one per line. Each is answered by one line of JSON with the numbers of sessions
open now, of requests in `/hang`, and of requests since the start:

    count           only the numbers
    idle SECONDS    close connections this long after a response; 0 keeps them open

The process ends with its parent. It uses the standard library only, so that twenty start in a moment.
"""

from __future__ import annotations

import asyncio
import json
import sys
from base64 import b64encode
from hashlib import sha1

_WEBSOCKET_KEY = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CLOSE = bytes([0x88, 0])


class Pool:
    """The state that connections share."""

    def __init__(self, port: int) -> None:
        self.address = f"127.0.0.1:{port}"
        self.idle = 0.0
        self.open: set[Connection] = set()
        self.hanging: set[Connection] = set()
        self.served = 0

    def obey(self, command: str) -> str:
        """Carry out a command and return the numbers."""
        word, _, value = command.partition(" ")
        if word == "idle":
            self.idle = float(value)
        return json.dumps({"sessions": len(self.open), "hanging": len(self.hanging), "served": self.served})


class Connection(asyncio.Protocol):
    """One connection: requests one after the other, or a WebSocket session."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._received = b""
        self._path = ""
        self._body_left: int | None = None  # None between requests
        self._websocket = False
        self._transport: asyncio.Transport | None = None
        self._close_later: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Count the request or session out."""
        self._pool.open.discard(self)
        self._pool.hanging.discard(self)
        if self._close_later is not None:
            self._close_later.cancel()

    def data_received(self, data: bytes) -> None:
        """Read frames of a session, or bodies and heads of requests."""
        self._received += data
        if self._websocket:
            self._read_frames()
            return
        while True:
            if self._body_left is not None:
                taken = min(self._body_left, len(self._received))
                self._received = self._received[taken:]
                self._body_left -= taken
                if self._body_left or self in self._pool.hanging:
                    return
                self._answer()
            if b"\r\n\r\n" not in self._received:
                return
            head, self._received = self._received.split(b"\r\n\r\n", 1)
            self._begin(head.decode("latin-1").split("\r\n"))
            if self._websocket:
                self._read_frames()
                return

    def _begin(self, head: list[str]) -> None:
        if self._close_later is not None:
            self._close_later.cancel()
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        self._path = head[0].split(" ")[1]
        self._pool.open.add(self)
        self._pool.served += 1
        if "sec-websocket-key" in headers:
            self._upgrade(headers["sec-websocket-key"])
            return
        self._body_left = int(headers.get("content-length", "0"))
        if self._path == "/hang":
            self._pool.hanging.add(self)
        elif self._path.startswith("/early"):
            self._reject(politely=self._path.endswith("/polite"))

    def _answer(self) -> None:
        self._body_left = None
        self._pool.open.discard(self)
        body = self._pool.address.encode()
        self._write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
        if self._pool.idle:
            loop = asyncio.get_running_loop()
            self._close_later = loop.call_later(self._pool.idle, self._transport_close)

    def _reject(self, *, politely: bool) -> None:
        self._pool.open.discard(self)
        self._write(b"HTTP/1.1 413 Payload Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        if politely:
            assert self._transport is not None
            self._transport.write_eof()
        else:
            self._transport_close()

    def _upgrade(self, key: str) -> None:
        self._websocket = True
        accept = b64encode(sha1((key + _WEBSOCKET_KEY).encode(), usedforsecurity=False).digest()).decode()
        self._write(
            b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
            b"sec-websocket-accept: %b\r\n\r\n" % accept.encode()
        )
        self._write(_text(self._pool.address.encode()))

    def _read_frames(self) -> None:
        """Echo short masked messages. A close frame is answered and ends the session."""
        while len(self._received) >= 6 and len(self._received) >= (end := 6 + (self._received[1] & 0x7F)):
            frame, self._received = self._received[:end], self._received[end:]
            if frame[0] & 0x0F == 8:
                self._write(_CLOSE)
                self._transport_close()
                return
            self._write(_text(bytes(byte ^ frame[2 + i % 4] for i, byte in enumerate(frame[6:]))))

    def _write(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)

    def _transport_close(self) -> None:
        assert self._transport is not None
        self._transport.close()


def _text(message: bytes) -> bytes:
    return bytes([0x81, len(message)]) + message


async def _serve_until_input_ends(port: int) -> None:
    pool = Pool(port)
    loop = asyncio.get_running_loop()
    commands = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    await loop.create_server(lambda: Connection(pool), "127.0.0.1", port, backlog=4096, reuse_address=True)
    print("ready", flush=True)
    async for line in commands:
        print(pool.obey(line.decode().strip()), flush=True)


if __name__ == "__main__":
    asyncio.run(_serve_until_input_ends(int(sys.argv[1])))
