"""Envoy closes the picker's stream when the session ends, whatever its kind, and never before.

Envoy does not promise this, so a version that behaves differently must fail here.
"""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import StreamEnded

from tests.live.clients import Session, sessions
from tests.live.processes import PATIENCE
from tests.live.rig import Rig, rig

QUIET = 3.0  # seconds


@pytest.fixture(scope="module")
def live() -> Iterator[Rig]:
    with rig(2, "--policy", "jsq") as built:
        yield built


@pytest.fixture(autouse=True)
def nothing_open(live: Rig) -> Iterator[None]:
    """Begin and end every test without sessions.

    A session whose stream ended first would show up as unpicked.
    """
    live.settled(0)
    unpicked = live.unpicked()
    yield
    live.settled(0)
    assert live.unpicked() == unpicked


@pytest.fixture
def session(live: Rig) -> Iterator[Session]:
    with sessions(live.port, 1) as [opened]:
        live.settled(1)
        yield opened


def two_event_streams(connection: socket.socket) -> H2Connection:
    """Open two streams of one HTTP/2 connection, with identifiers 1 and 3."""
    client = H2Connection()
    client.initiate_connection()
    request = {":method": "GET", ":scheme": "http", ":authority": "pools", ":path": "/events"}
    for stream in (1, 3):
        client.send_headers(stream, list(request.items()), end_stream=True)
    connection.sendall(client.data_to_send())
    return client


def test_the_client_closes_a_websocket(live: Rig, session: Session) -> None:
    session.close()
    live.settled(0)


def test_the_pool_closes_a_websocket(live: Rig, session: Session) -> None:
    live.pool(session.pool).say("hang_up")
    session.end_of_server()
    live.settled(0)


def test_the_client_of_a_websocket_vanishes(live: Rig, session: Session) -> None:
    session.abort()
    live.settled(0)


def test_an_event_stream_ends_and_its_connection_does_not(live: Rig) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", live.port, timeout=PATIENCE)) as connection:
        for _ in range(2):
            connection.request("GET", "/events")
            answer = connection.getresponse()
            address = answer.readline().decode().removeprefix("data: ").strip()
            live.settled(1)
            live.pool(address).say("hang_up")
            assert answer.read() == b"\n"
            live.settled(0)


def test_the_client_of_an_event_stream_vanishes(live: Rig) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", live.port, timeout=PATIENCE)) as connection:
        connection.request("GET", "/events")
        connection.getresponse().readline()
        live.settled(1)
    live.settled(0)


def test_a_request_is_answered(live: Rig) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", live.port, timeout=PATIENCE)) as connection:
        connection.request("GET", "/held")
        [serving] = [address for address, count in live.settled(1).items() if count]
        live.pool(serving).say("hang_up")
        assert connection.getresponse().read().decode() in live.truth()
        live.settled(0)


def test_streams_of_one_http2_connection_end(live: Rig) -> None:
    """Each is a session of its own, and they are at different pools."""
    with socket.create_connection(("127.0.0.1", live.port), PATIENCE) as connection:
        client = two_event_streams(connection)
        assert set(live.settled(2).values()) == {1}
        for pool, left in zip(live.pools, (1, 0), strict=True):
            pool.say("hang_up")
            while not any(isinstance(event, StreamEnded) for event in client.receive_data(connection.recv(4096))):
                pass
            live.settled(left)


def test_the_client_resets_a_stream_of_http2(live: Rig) -> None:
    """The connection lives on, with another stream."""
    with socket.create_connection(("127.0.0.1", live.port), PATIENCE) as connection:
        client = two_event_streams(connection)
        live.settled(2)
        client.receive_data(connection.recv(4096))
        client.reset_stream(1, ErrorCodes.CANCEL)
        connection.sendall(client.data_to_send())
        live.settled(1)
    live.settled(0)


def test_quiet_sessions_stay(live: Rig) -> None:
    with (
        socket.create_connection(("127.0.0.1", live.port), PATIENCE) as connection,
        sessions(live.port, 2) as opened,
    ):
        two_event_streams(connection)
        counts = live.settled(4)
        until = time.monotonic() + QUIET
        while time.monotonic() < until:
            assert live.counts() == counts
            time.sleep(0.05)
        for session in opened:
            session.echo()
