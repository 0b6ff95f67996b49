"""A pool that counts its own sessions: it serves HTTP/1.1, WebSocket and event streams on a loopback port.

    pool_server.py PORT [CERT KEY [CA]]

With a certificate it speaks TLS, and with authorities it asks clients for certificates that they have signed.
Commands come on standard input, one word per line. Each is answered by a line on standard output, so the counts
can be read while the port refuses connections. The process ends with its parent.

    sessions    the number of requests being served now
    refuse      connections are refused from now on; open ones stay
    listen      connections are accepted again
    sick, well  /health answers 503, or 200
    reset       every request is answered by a reset of its connection from now on
    answer      requests are answered again
    hang_up     the pool ends every session with a close handshake, and answers every request to /held
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import sys
from base64 import b64encode
from hashlib import sha1
from struct import pack
from urllib.parse import SplitResult, parse_qs, urlsplit

_WEBSOCKET_KEY = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CLOSE = bytes([0x88, 0])


class Pool:
    """The state that connections share."""

    def __init__(self, port: int, tls: ssl.SSLContext | None) -> None:
        self.address = f"127.0.0.1:{port}"
        self._tls = tls
        self.well = True
        self.resets = False
        self.open: set[Connection] = set()
        self._port = port
        self._server: asyncio.Server | None = None

    async def listen(self) -> None:
        """Accept connections."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self), "127.0.0.1", self._port, backlog=4096, reuse_address=True, ssl=self._tls
        )

    def refuse(self) -> None:
        """Refuse connections."""
        if self._server is not None:
            self._server.close()

    async def obey(self, command: str) -> str:
        """Carry out a command and return the answer."""
        if command == "listen":
            await self.listen()
        elif command == "refuse":
            self.refuse()
        elif command in {"sick", "well"}:
            self.well = command == "well"
        elif command in {"reset", "answer"}:
            self.resets = command == "reset"
        elif command == "hang_up":
            for connection in tuple(self.open):
                connection.hang_up()
        elif command != "sessions":
            return "unknown"
        return str(len(self.open))


class Connection(asyncio.Protocol):
    """One connection: requests one after the other, or a WebSocket session."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._received = b""
        self._websocket = False
        self._last = b""  # what ends the request that is served, if it is not a WebSocket
        self._later: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Count the request or session as over."""
        self._pool.open.discard(self)
        if self._later is not None:
            self._later.cancel()

    def data_received(self, data: bytes) -> None:
        """Read requests or WebSocket frames."""
        self._received += data
        if self._websocket:
            self._read_frames()
        elif b"\r\n\r\n" in self._received:
            head, rest = self._received.split(b"\r\n\r\n", 1)
            target, headers = _parsed(head.decode("latin-1"))
            length = int(headers.get("content-length", "0"))
            # An answer before the end of the body makes Envoy reset an HTTP/2 stream, for which curl fails.
            if len(rest) >= length:
                self._received = rest[length:]
                self._serve(target, headers)

    def hang_up(self) -> None:
        """End the session with a close frame, the end of the event stream, or the answer that is held."""
        if self._websocket:
            self._write(_CLOSE)
        else:
            self._end(self._last)

    def _serve(self, target: SplitResult, headers: dict[str, str]) -> None:
        if target.path == "/health":
            self._write(_response("200 OK" if self._pool.well else "503 Service Unavailable"))
            return
        if self._pool.resets:
            self._reset()
            return
        self._pool.open.add(self)
        seconds = float(parse_qs(target.query).get("seconds", ["0"])[0])
        if "sec-websocket-key" in headers:
            self._upgrade(headers["sec-websocket-key"])
        elif target.path == "/500":
            self._end(_response("500 Internal Server Error"))
        elif target.path == "/events":
            event = f"data: {self._pool.address}\n\n".encode()
            self._write(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            )
            self._write(b"%x\r\n%b\r\n" % (len(event), event))
            self._last = b"0\r\n\r\n"
        elif target.path == "/held":
            self._last = _response("200 OK", self._pool.address)
        elif seconds:
            answer = _response("200 OK", self._pool.address)
            self._later = asyncio.get_running_loop().call_later(seconds, self._end, answer)
        else:
            self._end(_response("200 OK", self._pool.address))

    def _reset(self) -> None:
        assert self._transport is not None
        linger = pack("ii", 1, 0)
        self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._transport.abort()

    def _upgrade(self, key: str) -> None:
        self._websocket = True
        accept = b64encode(sha1((key + _WEBSOCKET_KEY).encode(), usedforsecurity=False).digest()).decode()
        self._write(
            b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
            b"sec-websocket-accept: %b\r\n\r\n" % accept.encode()
        )
        self._write(_text(self._pool.address.encode()))

    def _read_frames(self) -> None:
        """Echo short masked messages; a close frame is answered and ends the session."""
        while len(self._received) >= 6 and len(self._received) >= (end := 6 + (self._received[1] & 0x7F)):
            frame, self._received = self._received[:end], self._received[end:]
            if frame[0] & 0x0F == 8:
                self._write(_CLOSE)
                assert self._transport is not None
                self._transport.close()
                return
            self._write(_text(bytes(byte ^ frame[2 + i % 4] for i, byte in enumerate(frame[6:]))))

    def _end(self, last: bytes) -> None:
        self._pool.open.discard(self)
        self._write(last)

    def _write(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)


def _parsed(head: str) -> tuple[SplitResult, dict[str, str]]:
    """Return the target of a request and its headers by name."""
    first, *lines = head.split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return urlsplit(first.split(" ")[1]), {name.lower(): value.strip() for name, _, value in pairs}


def _response(status: str, body: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()


def _text(message: bytes) -> bytes:
    return bytes([0x81, len(message)]) + message


def _context(cert: str, key: str, *authorities: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    for file in authorities:
        context.load_verify_locations(file)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


async def _serve_until_input_ends(port: int, *tls: str) -> None:
    pool = Pool(port, _context(*tls) if tls else None)
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    await pool.listen()
    print("ready", flush=True)
    async for line in commands:
        print(await pool.obey(line.decode().strip()), flush=True)


if __name__ == "__main__":
    asyncio.run(_serve_until_input_ends(int(sys.argv[1]), *sys.argv[2:]))
