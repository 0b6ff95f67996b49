"""Pools that close connections early: after idle time, or without reading a body."""

from __future__ import annotations

import http.client
import random
import select
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress

import pytest

from tests.live.processes import PATIENCE
from tests.live.rig import Gateway

CLIENTS, REQUESTS = 8, 250
BODY = b"x"
LENGTH = 20 * 2**20  # bytes, of a body that pools reject
UPLOAD = f"POST /upload HTTP/1.1\r\nhost: pools\r\ncontent-length: {LENGTH}\r\n"
TOO_LARGE = b"HTTP/1.1 413 Payload Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
Serve = Callable[[socket.socket], None]


@contextmanager
def pool(serve: Serve) -> Iterator[str]:
    """Run a pool that calls `serve` in a thread for each connection. Yield its address."""

    def run(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            serve(connection)

    def accept() -> None:
        with suppress(OSError):  # closed
            while True:
                threading.Thread(target=run, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listener:
        acceptor = threading.Thread(target=accept)
        acceptor.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            acceptor.join()


@contextmanager
def gateway(*pools: Serve) -> Iterator[int]:
    """Run a gateway in front of pools. Yield its port."""
    with ExitStack() as stack:
        addresses = [stack.enter_context(pool(serve)) for serve in pools]
        words = [word for address in addresses for word in ("--pool", address)]
        started = stack.enter_context(Gateway(*words, "--alpha", "0.5"))
        started.wait()
        yield started.port


def read_head(connection: socket.socket) -> tuple[str, int]:
    """Return the request line and the headers, and how many bytes of the body came with them.

    Return nothing if the connection is closed.
    """
    received = b""
    while b"\r\n\r\n" not in received:
        data = connection.recv(4096)
        if not data:
            return "", 0
        received += data
    head, _, body = received.partition(b"\r\n\r\n")
    return head.decode(), len(body)


class Impatient:
    """A pool that closes idle connections, often just when the next request is on its way.

    A request that finds its connection closed is refused, unread. Each is refused at most once. The pool closes
    a connection if it is asked to, but does not announce it, as some servers do.
    """

    def __init__(self) -> None:
        self.received: Counter[str] = Counter()
        self.refused: set[str] = set()
        self._chance = random.Random(1)

    def serve(self, connection: socket.socket) -> None:
        while line := self._answer(connection):
            closes = line.startswith("POST")
            if closes and not select.select([connection], [], [], 0.02)[0]:
                return
            following = connection.recv(4096, socket.MSG_PEEK).decode().split("\r\n")[0]
            if following and following not in self.refused and (closes or self._chance.random() < 0.2):
                self.refused.add(following)
                return  # with unread data: Envoy sees a reset

    def _answer(self, connection: socket.socket) -> str:
        """Answer a request and return its first line, or nothing if the connection is closed."""
        head, came = read_head(connection)
        if not head:
            return ""
        line = head.split("\r\n")[0]
        if line.startswith("POST") and not came:
            assert connection.recv(1) == BODY
        self.received[line] += 1
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        return line


def send(port: int, method: str, client: int) -> list[int]:
    """Send requests on one connection and return the statuses."""
    body = BODY if method == "POST" else None
    statuses = []
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
        for number in range(REQUESTS):
            connection.request(method, f"/{client}/{number}", body)
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)
    return statuses


@pytest.mark.parametrize("method", [pytest.param("GET", marks=pytest.mark.full), "POST"])
def test_a_stale_connection_costs_no_request(method: str) -> None:
    """A GET is sent again. A POST never meets a stale connection, so none fails and none is received twice."""
    pools = Impatient()
    with gateway(pools.serve, pools.serve) as port, ThreadPoolExecutor(CLIENTS) as clients:
        found = list(clients.map(lambda client: send(port, method, client), range(CLIENTS)))
    assert Counter(status for statuses in found for status in statuses) == {200: CLIENTS * REQUESTS}
    lines = {f"{method} /{client}/{number} HTTP/1.1" for client in range(CLIENTS) for number in range(REQUESTS)}
    assert pools.received == dict.fromkeys(lines, 1)
    assert bool(pools.refused) == (method == "GET")


def reject(connection: socket.socket) -> None:
    """Reject a body without reading it, and close at once."""
    if read_head(connection)[0]:
        connection.sendall(TOO_LARGE)


def reject_politely(connection: socket.socket) -> None:
    """Reject a body, but read it until the client stops, so that the connection is not reset."""
    reject(connection)
    connection.shutdown(socket.SHUT_WR)
    while connection.recv(2**16):
        pass


def test_a_client_that_asks_first_gets_the_rejection_of_its_body() -> None:
    """The pool decides whether the client may send the body. Envoy does not allow it on its own."""
    with gateway(reject) as port:
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
                client.sendall(f"{UPLOAD}expect: 100-continue\r\n\r\n".encode())
                assert client.recv(2**16).startswith(b"HTTP/1.1 413 Payload Too Large\r\n")


@pytest.mark.full
def test_a_pool_that_closes_politely_can_reject_a_body() -> None:
    with gateway(reject_politely) as port:
        for _ in range(5):
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
                client.sendall(f"{UPLOAD}\r\n".encode())
                with suppress(ConnectionResetError, BrokenPipeError):  # the response is there nevertheless
                    for _ in range(LENGTH // 2**16):
                        client.sendall(bytes(2**16))
                assert client.recv(2**16).startswith(b"HTTP/1.1 413 Payload Too Large\r\n")
