"""Clients of the live balancer: WebSocket sessions on plain sockets, so that thousands are cheap."""

from __future__ import annotations

import random
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from struct import pack
from types import TracebackType
from typing import Self

from tests.live.processes import PATIENCE

_HELLO = (
    b"GET /session HTTP/1.1\r\nhost: pools\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
_CLOSE = bytes([0x88, 0x80, 0, 0, 0, 0])


class SessionFailedError(Exception):
    """A session did not begin, or did not live until its end."""


class Session:
    """A WebSocket session: requested by the constructor, open after `wait`. `head` is that of the response."""

    def __init__(self, port: int, cookie: str = "", tls: ssl.SSLContext | None = None) -> None:
        self.pool = ""
        self.head = ""
        self._received = b""
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        with self._closed_on_error():
            if tls is not None:
                self._socket = tls.wrap_socket(self._socket, server_hostname="localhost")
            self._socket.sendall(_HELLO[:-2] + f"cookie: {cookie}\r\n\r\n".encode() if cookie else _HELLO)

    def wait(self) -> Self:
        """Wait until the pool greets with its address."""
        with self._closed_on_error():
            self._begin()
        return self

    def _begin(self) -> None:
        while b"\r\n\r\n" not in self._received:
            self._receive()
        head, self._received = self._received.split(b"\r\n\r\n", 1)
        if not head.startswith(b"HTTP/1.1 101 "):
            raise SessionFailedError(head.decode("latin-1").split("\r\n")[0])
        self.head = head.decode("latin-1")
        self.pool = self._message().decode()

    def echo(self) -> None:
        """Check that the session is alive."""
        self._socket.sendall(b"\x81\x84\0\0\0\0ping")
        if (answer := self._message()) != b"ping":
            raise SessionFailedError(f"The answer was {answer!r}.")

    def close(self) -> None:
        """End the session with a close handshake."""
        with self._closed_on_error():
            self._socket.sendall(_CLOSE)
            self._wait_for_close()
        self._socket.close()

    def end_of_server(self) -> None:
        """Wait until the pool ends the session, and complete the close handshake."""
        self._wait_for_close()
        self._socket.sendall(_CLOSE)
        self._socket.close()

    def abort(self) -> None:
        """Reset the connection, as if the client had vanished."""
        if self._socket.fileno() >= 0:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))
            self._socket.close()

    @contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        """Close the socket of a session that did not begin, or did not end well."""
        try:
            yield
        except BaseException:
            self._socket.close()
            raise

    def _wait_for_close(self) -> None:
        while self._frame()[0] != 0x88:
            pass

    def _message(self) -> bytes:
        kind, message = self._frame()
        if kind != 0x81:
            raise SessionFailedError(f"A frame of kind {kind:#x} came instead of a message.")
        return message

    def _frame(self) -> tuple[int, bytes]:
        while len(self._received) < 2 or len(self._received) < (end := 2 + self._received[1]):
            self._receive()
        frame, self._received = self._received[:end], self._received[end:]
        return frame[0], frame[2:]

    def _receive(self) -> None:
        data = self._socket.recv(4096)
        if not data:
            raise SessionFailedError("The connection was closed.")
        self._received += data


@contextmanager
def sessions(port: int, count: int) -> Iterator[list[Session]]:
    """Open `count` sessions. All are requested before the first answer is read."""
    opened: list[Session] = []
    try:
        for _ in range(count):
            opened.append(Session(port))
        yield [session.wait() for session in opened]
    finally:
        for session in opened:
            session.abort()


@dataclass(frozen=True)
class Failure:
    """A failed session: when it was requested, when its last step began and failed, and why."""

    asked: float
    since: float
    until: float
    reason: str


class Traffic:
    """Threads that open sessions, hold them for a moment and close them, again and again."""

    def __init__(self, *ports: int, clients: int = 4, stay: float = 0.03) -> None:
        self.succeeded = 0
        self.failures: list[Failure] = []
        self._stay = stay
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(ports[i % len(ports)], random.Random(i)))
            for i in range(clients)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Close the open sessions."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def failures_apart_from(self, since: float, until: float) -> list[Failure]:
        """Return the failures of sessions that were not in progress at any time from `since` to `until`."""
        return [failure for failure in self.failures if failure.until < since or failure.since > until]

    def _run(self, port: int, chance: random.Random) -> None:
        while not self._over.is_set():
            asked = since = time.monotonic()
            session = None
            try:
                session = Session(port)
                session.wait()
                self._over.wait(chance.expovariate(1 / self._stay))
                since = time.monotonic()
                session.echo()
                session.close()
                self.succeeded += 1
            except (OSError, SessionFailedError) as error:
                self.failures.append(Failure(asked, since, time.monotonic(), repr(error)))
            finally:
                if session is not None:
                    session.abort()
