"""When Envoy lets go of the picker's stream: at the end of the session, whatever its kind, and never before.

This is how Envoy behaves and not what it promises, hence a version that behaves otherwise must fail here.
"""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import httpx
import pytest
from h2.connection import H2Connection
from h2.errors import ErrorCodes

from tests.live.clients import Session, sessions
from tests.live.processes import PATIENCE
from tests.live.rig import PoolProcess, Rig, rig

SOON = 1.0  # seconds in which an end is heard of; it takes about two milliseconds
QUIET = 3.0


@pytest.fixture(scope="module")
def live() -> Iterator[Rig]:
    with rig(2) as built:
        yield built


@pytest.fixture(autouse=True)
def nothing_open(live: Rig) -> Iterator[None]:
    """Every test begins and ends without sessions.

    Sessions whose stream ended before them would come to light as unpicked.
    """
    live.settled(0)
    yield
    live.settled(0)
    assert live.all_picked()


@pytest.fixture
def session(live: Rig) -> Iterator[Session]:
    with sessions(live.port, 1) as [opened]:
        live.settled(1)
        yield opened


def pool_of(live: Rig, session: Session) -> PoolProcess:
    return next(pool for pool in live.pools if pool.address == session.pool)


def over_http2() -> httpx.Client:
    return httpx.Client(http1=False, http2=True, trust_env=False, timeout=PATIENCE)


def test_the_client_closes_a_websocket(live: Rig, session: Session) -> None:
    session.close()
    live.settled(0, SOON)


def test_the_pool_closes_a_websocket(live: Rig, session: Session) -> None:
    pool_of(live, session).say("hang_up")
    session.end_of_server()
    live.settled(0, SOON)


def test_the_client_of_a_websocket_vanishes(live: Rig, session: Session) -> None:
    session.abort()
    live.settled(0, SOON)


def test_an_event_stream_ends(live: Rig) -> None:
    with over_http2() as client, client.stream("GET", f"http://127.0.0.1:{live.port}/events") as answer:
        events = answer.iter_lines()
        address = next(events).removeprefix("data: ")
        live.settled(1)
        next(pool for pool in live.pools if pool.address == address).say("hang_up")
        assert list(events) == [""]
        live.settled(0, SOON)


def test_the_client_of_an_event_stream_vanishes(live: Rig) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", live.port, timeout=PATIENCE)) as connection:
        connection.request("GET", "/events")
        connection.getresponse().readline()
        live.settled(1)
    live.settled(0, SOON)


def test_the_client_resets_a_stream_of_http2(live: Rig) -> None:
    """The connection lives on, with another stream."""
    client = H2Connection()
    with socket.create_connection(("127.0.0.1", live.port), PATIENCE) as connection:
        client.initiate_connection()
        request = {":method": "GET", ":scheme": "http", ":authority": "pools", ":path": "/events"}
        for stream in (1, 3):
            client.send_headers(stream, list(request.items()), end_stream=True)
        connection.sendall(client.data_to_send())
        live.settled(2)
        client.receive_data(connection.recv(4096))
        client.reset_stream(1, ErrorCodes.CANCEL)
        connection.sendall(client.data_to_send())
        live.settled(1, SOON)
    live.settled(0, SOON)


def test_requests_of_a_connection_that_stays_open(live: Rig) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", live.port, timeout=PATIENCE)) as connection:
        for _ in range(2):
            connection.request("GET", "/slow?seconds=0.7")
            live.settled(1)
            assert connection.getresponse().read().decode() in live.truth()
            live.settled(0, SOON)


def test_requests_of_one_http2_connection(live: Rig) -> None:
    """Each is a session of its own."""
    with over_http2() as client:
        url = f"http://127.0.0.1:{live.port}/slow?seconds="
        client.get(f"{url}0.01")
        long, short = (threading.Thread(target=client.get, args=(f"{url}{time}",)) for time in (2.5, 1))
        long.start()
        short.start()
        live.settled(2)
        short.join()
        live.settled(1, SOON)
        long.join()
        live.settled(0, SOON)


def test_a_quiet_session_stays(live: Rig) -> None:
    with over_http2() as client, client.stream("GET", f"http://127.0.0.1:{live.port}/events") as answer:
        events = answer.iter_lines()  # which would end the request when it is forgotten
        next(events)
        with sessions(live.port, 2) as opened:
            counts = live.settled(3)
            assert sorted(counts.values()) == [1, 2]
            until = time.monotonic() + QUIET
            while time.monotonic() < until:
                assert live.counts() == counts
                time.sleep(0.05)
            for session in opened:
                session.echo()
