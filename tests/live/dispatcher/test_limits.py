"""What hostile or broken clients can do to the API port: be disconnected, or be told to stop."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from starlette.types import Receive, Scope, Send

from evenly.core.protocol import PoolPeer, dispatcher_peer
from evenly.live.dispatcher.answers import RefusalError
from evenly.live.dispatcher.counters import Counters
from evenly.live.dispatcher.sessions import Sessions
from evenly.live.http import limits
from evenly.live.store.base import FleetSettings
from evenly.live.store.local import LocalStore
from evenly.live.timing import Timing
from tests.live.dispatcher.rig import Agents, Dispatcher, fleet
from tests.live.processes import PATIENCE

HEAD = b"POST /v1/sessions HTTP/1.1\r\nhost: 127.0.0.1\r\n"
Fleet = tuple[Dispatcher, Agents]


@pytest.fixture(scope="module")
def shared() -> Iterator[Fleet]:
    with fleet("--lease=600", pools=("a", "b")) as made:
        yield made


def read_to_end(connection: socket.socket) -> bytes:
    """Return all that comes until the other side closes."""
    found = b""
    try:
        while data := connection.recv(65536):
            found += data
    except ConnectionResetError:
        pass
    return found


def dial(dispatcher: Dispatcher) -> socket.socket:
    return socket.create_connection(("127.0.0.1", dispatcher.listen), PATIENCE)


@pytest.mark.full
def test_clients_that_take_their_time_are_disconnected_and_others_served(shared: Fleet) -> None:
    """Nothing at all, half a header, a header line now and then, half a body, bodies without end."""
    dispatcher, _ = shared
    starts = {
        "nothing": b"",
        "half a request line": b"POST /v1/se",
        "half a header": HEAD + b"x-a: ",
        "half a body": HEAD + b"content-length: 10\r\n\r\n{",
        "a body without end": b"DELETE /v1/sessions/x HTTP/1.1\r\nhost: 127.0.0.1\r\n"
        b"transfer-encoding: chunked\r\n\r\n",
    }
    drops = {"half a header": b"x", "a body without end": b"1\r\nx\r\n"}
    connections = {name: dial(dispatcher) for name in starts}
    closed: dict[str, bytes] = {}

    def drip(name: str, connection: socket.socket) -> None:
        connection.settimeout(0.5)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                connection.sendall(drops.get(name, b""))
                if not connection.recv(65536):
                    closed[name] = b""
                    return
            except TimeoutError:
                continue
            except OSError:
                closed[name] = b""
                return

    for name, connection in connections.items():
        connection.sendall(starts[name])
    threads = [threading.Thread(target=drip, args=item) for item in connections.items()]
    for thread in threads:
        thread.start()
    assert dispatcher.post().status_code == 201
    for thread in threads:
        thread.join(PATIENCE)
    for connection in connections.values():
        connection.close()
    assert closed.keys() == starts.keys()
    assert dispatcher.post().status_code == 201
    assert dispatcher.events("fault") == []


def test_a_client_that_goes_before_its_request_is_complete_takes_no_place(shared: Fleet) -> None:
    dispatcher, _ = shared
    before = dispatcher.state()["expected"]
    for _ in range(5):
        with dial(dispatcher) as connection:
            connection.sendall(HEAD + b"content-length: 20\r\n\r\n{}")
    assert dispatcher.post().status_code == 201  # the others came first
    assert dispatcher.state()["expected"] == before + 1
    assert dispatcher.events("fault") == []


def test_endless_headers_are_cut_off(shared: Fleet) -> None:
    dispatcher, _ = shared
    with dial(dispatcher) as connection:
        connection.sendall(HEAD)
        with pytest.raises(ConnectionError):
            for number in range(100_000):
                connection.sendall(f"x-{number}: {'y' * 1000}\r\n".encode())


@pytest.mark.parametrize("chunked", [False, True])
def test_large_bodies_are_rejected(shared: Fleet, chunked: bool) -> None:
    dispatcher, _ = shared
    with dial(dispatcher) as connection:
        if chunked:
            chunk = b"1000\r\n" + b" " * 4096 + b"\r\n"
            connection.sendall(HEAD + b"transfer-encoding: chunked\r\n\r\n" + 17 * chunk)
        else:
            connection.sendall(HEAD + b"content-length: 70000\r\n\r\n" + b" " * 70_000)
        answer = read_to_end(connection)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in answer
    assert b'"too_large"' in answer


def test_requests_that_are_no_http_are_rejected(shared: Fleet) -> None:
    dispatcher, _ = shared
    for text in (b"nonsense\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/9.9\r\n\r\n", b"\x00" * 100):
        with dial(dispatcher) as connection:
            connection.sendall(text)
            assert read_to_end(connection).startswith(b"HTTP/1.1 400 ")
    assert dispatcher.events("fault") == []


def test_pipelined_requests_are_answered_in_order(shared: Fleet) -> None:
    dispatcher, _ = shared
    with dial(dispatcher) as connection:
        last = HEAD + b"connection: close\r\ncontent-length: 0\r\n\r\n"
        connection.sendall(20 * (HEAD + b"content-length: 0\r\n\r\n") + last)
        assert read_to_end(connection).count(b"HTTP/1.1 201 ") == 21


@pytest.mark.full
def test_a_flood_of_keys_does_not_fill_the_memory() -> None:
    """More keys than answers are kept. A key of 200 characters and its answer take about a kilobyte."""
    with fleet("--lease=600", pools=("a", "b")) as (dispatcher, _):
        body = b'{"count": 1}'
        more = b"content-type: application/json\r\ncontent-length: 12\r\n"

        def flood(first: int, last: int) -> None:
            """Send requests in bursts on one connection."""
            with dial(dispatcher) as connection, connection.makefile("rb") as answers:
                for start in range(first, last, 50):
                    burst = [
                        HEAD + f"idempotency-key: {number:0200}\r\n".encode() + more + b"\r\n" + body
                        for number in range(start, start + 50)
                    ]
                    connection.sendall(b"".join(burst))
                    for _ in burst:
                        lines = iter(answers.readline, b"\r\n")
                        head = b"".join(lines)
                        assert head.startswith(b"HTTP/1.1 201 ")
                        length = int(head.partition(b"content-length: ")[2].split(b"\r\n")[0])
                        answers.read(length)

        flood(0, 5_000)
        before = dispatcher.memory()
        flood(5_000, 20_000)
        assert dispatcher.memory() - before < 15_000 * 4096


def test_places_within_a_lease_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes memory until its lease ends. Requests that get no place, and repeated ones, do not count."""
    monkeypatch.setattr(dispatcher_peer, "MAX_PLACES", 3)
    now = 0.0
    settings = FleetSettings(alpha="0.5", lease=10, silence=80, memory=10, heartbeat=2)
    store = LocalStore(settings, term=1, clock=lambda: now)
    sessions = Sessions(store, Counters())

    async def status(key: bytes | None = None) -> int:
        try:
            return (await sessions.pick({} if key is None else {b"idempotency-key": key}, b"")).status
        except RefusalError as refusal:
            return refusal.answer().status

    async def play() -> None:
        nonlocal now
        assert [await status() for _ in range(5)] == [503] * 5  # no pools
        await store.register("a", incarnation=1, address="ws://a.example", capacity=None)
        await store.receive(PoolPeer("a", incarnation=1).heartbeat())
        assert [await status(b"k") for _ in range(5)] == [201] * 5
        assert [await status() for _ in range(3)] == [201, 201, 429]
        now = 10.0
        assert await status() == 201
        with pytest.raises(RefusalError):  # of another parser; ours lets no such byte through
            await sessions.go(b"\xff", b"", websocket=False)
        assert [pool.expected for pool in (await store.state()).pools] == [1]

    asyncio.run(play())


@pytest.mark.full
def test_endless_trailers_take_no_memory() -> None:
    """A chunked body may end with headers, and the parser has no limit on them."""
    with fleet(pools=("a",)) as (dispatcher, _):
        before = dispatcher.memory()
        for _ in range(3):
            with dial(dispatcher) as connection:
                connection.sendall(HEAD + b"transfer-encoding: chunked\r\n\r\n0\r\n")
                lines = b"".join(b"a%d: x\r\n" % number for number in range(10_000))
                with suppress(OSError):  # we are cut off
                    for _ in range(100):
                        connection.sendall(lines)
                assert b"201" not in read_to_end(connection)
        assert dispatcher.memory() - before < 30_000_000


async def _ended_by_the_server(openings: dict[str, tuple[bytes, bytes]], timing: Timing) -> set[str]:
    """Serve in this loop, and connect with each opening and the bytes that follow it now and then.

    Return the names of those that the server has ended.
    """
    import uvicorn

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    class Limited(limits.LimitedProtocol):
        pass

    Limited.timing = timing
    config = uvicorn.Config(app, lifespan="off", log_config=None)
    config.load()
    state = uvicorn.server.ServerState()
    loop = asyncio.get_running_loop()
    ended = set[str]()

    async def client(name: str, opening: bytes, drop: bytes) -> None:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(opening)
        with suppress(ConnectionError):
            while not (reader.at_eof() or reader.exception()):
                writer.write(drop)
                with suppress(TimeoutError):
                    await asyncio.wait_for(reader.read(1000), 0.02)
        ended.add(name)
        writer.close()

    async with await loop.create_server(
        lambda: Limited(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    ) as server:
        clients = [asyncio.create_task(client(name, *sent)) for name, sent in openings.items()]
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while len(ended) < len(openings):
                    for connection in list(state.connections):
                        assert isinstance(connection, Limited)
                        connection.abort_if_overdue(loop.time())
                    await asyncio.sleep(0.02)
        for task in clients:
            task.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
    return ended


def test_slow_clients_and_idle_connections_are_disconnected() -> None:
    """With short limits. Empty lines are allowed before a request: they end uvicorn's timer, but begin nothing."""
    chunked = b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
    openings = {
        "nothing": (b"", b""),
        "half a request line": (b"POST /v1/se", b""),
        "half a header": (HEAD + b"x-a: ", b"x"),
        "half a body": (HEAD + b"content-length: 10\r\n\r\n{", b""),
        "a body without end": (chunked, b"1\r\nx\r\n"),
        "idle": (b"GET / HTTP/1.1\r\nhost: a\r\n\r\n", b""),
        "idle, with empty lines": (b"GET / HTTP/1.1\r\nhost: a\r\n\r\n", b"\r\n"),
    }
    timing = Timing(request_s=0.2, keep_alive_s=0.2)
    assert asyncio.run(_ended_by_the_server(openings, timing)) == openings.keys()


def test_an_offer_to_switch_protocols_is_ignored(shared: Fleet) -> None:
    """Java's client offers HTTP/2 with its first request. The body of that request must still count."""
    dispatcher, _ = shared
    body = b'{"exclude": ["a", "b"]}'
    upgrade = b"connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
    head = HEAD + upgrade + b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
    for parts in ([head + body], [head, body]):
        with dial(dispatcher) as connection, connection.makefile("rb") as answers:
            for part in parts:
                connection.sendall(part)
                time.sleep(0.05)  # so that they come apart
            assert answers.readline().startswith(b"HTTP/1.1 503 ")
