"""Clients that break the rules, speak old HTTP, or close early: each gets an answer, and none leaves a session."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.live.processes import PATIENCE
from tests.live.rig import Rig, rig


@pytest.fixture(scope="module")
def live() -> Iterator[Rig]:
    with rig(2, "--policy", "jsq") as built:
        yield built


@pytest.fixture(autouse=True)
def nothing_open(live: Rig) -> Iterator[None]:
    """Begin and end every test without sessions, picked or not."""
    yield
    live.settled(0)
    assert live.unpicked() == 0


class Client:
    """A client that sends and reads bytes."""

    def __init__(self, live: Rig, sent: bytes = b"") -> None:
        self._socket = socket.create_connection(("127.0.0.1", live.port), PATIENCE)
        self._received = b""
        self.send(sent)

    def send(self, sent: bytes) -> None:
        self._socket.sendall(sent)

    def half_close(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._socket.close()

    def until(self, end: bytes) -> str:
        """Return the bytes up to the end, or all if the connection is closed first."""
        while end not in self._received and (data := self._socket.recv(4096)):
            self._received += data
        found, end, self._received = self._received.partition(end)
        return (found + end).decode()

    def exactly(self, size: int) -> str:
        """Return the next bytes. It must not be closed before."""
        while len(self._received) < size:
            data = self._socket.recv(4096)
            assert data
            self._received += data
        found, self._received = self._received[:size], self._received[size:]
        return found.decode()

    def status(self) -> str:
        """Return the status line of the response."""
        return self.until(b"\r\n").strip()


def test_a_bad_request_is_answered(live: Rig) -> None:
    """The picker is alive, but Envoy answers without it."""
    for request_, status in [
        (b"GET / HTTP/1.1\r\nhost: a\r\nno colon\r\n\r\n", "400 Bad Request"),
        (b"GET / HTTP/1.1\r\n\r\n", "400 Bad Request"),
        (
            b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            "400 Bad Request",
        ),
        (b"GET / HTTP/1.1\r\nhost: a\r\nx: %b\r\n\r\n" % (b"a" * 70_000), "431 Request Header Fields Too Large"),
        (b"GET / HTTP/1.1\r\nhost: a\r\n" + 200 * b"x: a\r\n" + b"\r\n", "431 Request Header Fields Too Large"),
    ]:
        with closing(Client(live, request_)) as client:
            assert client.status() == f"HTTP/1.1 {status}"


def test_a_request_that_turns_bad_is_answered(live: Rig) -> None:
    """Its pool serves it already."""
    head = b"POST /slow?seconds=3600 HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n"
    with closing(Client(live, head)) as client:
        live.settled(1)
        client.send(b"no number\r\n")
        assert client.status() == "HTTP/1.1 400 Bad Request"


def test_http_1_0_is_served(live: Rig) -> None:
    """The connection is closed after the response, as old clients expect."""
    for header in [b"", b"host: pools\r\n"]:
        with closing(Client(live, b"GET / HTTP/1.0\r\n" + header + b"\r\n")) as client:
            assert client.status() == "HTTP/1.0 200 OK"
            assert client.until(b"never").partition("\r\n\r\n")[2] in live.truth()


def test_http_1_0_can_keep_its_connection(live: Rig) -> None:
    """It has to ask for that, like `ab -k`."""
    with closing(Client(live)) as client:
        for _ in range(3):
            client.send(b"GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n")
            assert client.status() == "HTTP/1.0 200 OK"
            assert "connection: keep-alive\r\n" in client.until(b"\r\n\r\n")
            assert client.exactly(len(live.pools[0].address)) in live.truth()


def test_an_event_stream_over_http_1_0_is_a_session(live: Rig) -> None:
    """It has no chunks: it ends when the connection is closed."""
    with closing(Client(live, b"GET /events HTTP/1.0\r\n\r\n")) as client:
        assert client.status() == "HTTP/1.0 200 OK"
        pool = client.until(b"\n\n").partition("data: ")[2].strip()
        assert live.settled(1)[pool] == 1
        live.pool(pool).say("hang_up")
        assert client.until(b"never") == ""


def test_the_ping_of_http_is_answered(live: Rig) -> None:
    with closing(Client(live, b"OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n")) as client:
        assert client.status() == "HTTP/1.1 200 OK"
        assert "content-length: 0\r\n" in client.until(b"\r\n\r\n")


def test_a_client_that_half_closes_is_gone(live: Rig) -> None:
    """Envoy cannot tell such a client from one that has vanished. Its session ends at once."""
    with closing(Client(live, b"GET /events HTTP/1.1\r\nhost: a\r\n\r\n")) as client:
        client.until(b"\n\n\r\n")
        live.settled(1)
        client.half_close()
        assert client.until(b"never") == ""
        live.settled(0)
