"""The agents' WebSocket: hello and welcome, rejected frames, replaced and silent connections, many at once."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from evenly.core.protocol import PoolPeer
from evenly.core.protocol.codec import VERSION, encode_to_dispatcher
from evenly.live.store.base import FleetSettings
from evenly.live.store.local import LocalStore
from tests.live.dispatcher.rig import Agents, Dispatcher, fleet
from tests.live.processes import PATIENCE, eventually

HELLO = {
    "type": "hello", "version": VERSION, "pool": "x", "incarnation": 1, "address": "ws://x.example",
    "capacity": None,
}  # fmt: skip
BEAT = encode_to_dispatcher(PoolPeer("x", incarnation=1).heartbeat())


@pytest.fixture(scope="module")
def dispatcher() -> Iterator[Dispatcher]:
    with Dispatcher() as made:
        yield made


def changed(values: dict[str, Any], **changes: object) -> str:
    return json.dumps({**values, **changes})


async def _dial(dispatcher: Dispatcher) -> ClientConnection:
    return await connect(dispatcher.agents_url, compression=None, ping_interval=None, proxy=None)


def closed_after(dispatcher: Dispatcher, *frames: str | bytes) -> tuple[int, str]:
    """Send frames until the dispatcher closes; return the code and the reason."""

    async def play() -> tuple[int, str]:
        connection = await _dial(dispatcher)
        async with connection, asyncio.timeout(PATIENCE):
            try:
                for frame in frames:
                    await connection.send(frame)
                while True:
                    await connection.recv()
            except ConnectionClosed as error:
                assert error.rcvd is not None
                return error.rcvd.code, error.rcvd.reason

    return asyncio.run(play())


@pytest.mark.parametrize(
    ("frames", "code", "reason"),
    [
        ((BEAT,), 1008, "first message must be a hello"),
        (("[" * 4000,), 1008, "JSON object"),
        (("nonsense",), 1008, "JSON object"),
        ((b"{}",), 1008, "text frame"),
        ((changed(HELLO, version=1),), 1008, "must be 2, not 1: upgrade evenly where the agent runs."),
        ((changed(HELLO, version=3),), 1008, "must be 2, not 3: upgrade this dispatcher."),
        ((changed(HELLO, more=1),), 1008, "hello"),
        ((changed(HELLO, pool="../x"),), 1008, "name of a pool"),
        ((changed(HELLO, address="ftp://x"),), 1008, "URL"),
        ((changed(HELLO, capacity=-1),), 1008, "capacity"),
        ((json.dumps(HELLO), '{"kind":"token"}'), 1008, "all fields"),
        ((json.dumps(HELLO), changed(json.loads(BEAT), tasks=-1)), 1008, "tasks"),
        ((json.dumps(HELLO), changed(json.loads(BEAT), arrived=[[2, 1]])), 1008, "arrived"),
        ((json.dumps(HELLO), changed(HELLO, pool="y")), 1008, "cannot change its pool"),
        (("x" * 8193,), 1009, ""),
    ],
)
def test_bad_frames_close_the_connection(
    dispatcher: Dispatcher, frames: tuple[str | bytes, ...], code: int, reason: str
) -> None:
    found = closed_after(dispatcher, *frames)
    assert found[0] == code
    assert reason in found[1]
    dispatcher.wait_for(lambda state: state["agents"] == 0)
    assert dispatcher.events("fault") == []


@pytest.mark.full
def test_a_connection_without_hello_is_closed(dispatcher: Dispatcher) -> None:
    assert closed_after(dispatcher) == (1008, "A hello must come within 5 seconds.")


def test_other_paths_have_no_websocket(dispatcher: Dispatcher) -> None:
    async def play() -> None:
        async with connect(f"ws://127.0.0.1:{dispatcher.listen}/v1/other", proxy=None):
            pass

    with pytest.raises(InvalidStatus) as error:
        asyncio.run(play())
    assert error.value.response.status_code == 404
    assert json.loads(error.value.response.body)["code"] == "not_found"
    assert dispatcher.events("fault") == []


def test_an_agent_that_falls_silent_is_disconnected_and_its_pool_goes(dispatcher: Dispatcher) -> None:
    async def play() -> None:
        connection = await _dial(dispatcher)
        async with connection, asyncio.timeout(PATIENCE):
            await connection.send(changed(HELLO, pool="quiet"))
            assert json.loads(await connection.recv())["type"] == "welcome"
            await connection.send(BEAT)
            with pytest.raises(ConnectionClosed):
                while True:
                    await connection.recv()

    asyncio.run(play())
    dispatcher.wait_for(lambda state: not state["pools"])
    reasons = [event["reason"] for event in dispatcher.events("agent disconnected") if event["pool"] == "quiet"]
    assert reasons == ["silent"]


@pytest.mark.full
def test_an_agent_that_does_not_read_is_disconnected_and_delays_no_other() -> None:
    """Its heartbeats are answered into a buffer that fills."""
    with fleet("--heartbeat=20", "--lease=60", pools=("a",)) as (dispatcher, _):
        with socket.create_connection(("127.0.0.1", dispatcher.listen), PATIENCE) as connection:
            connection.sendall(
                b"GET /v1/agents HTTP/1.1\r\nhost: 127.0.0.1\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
                b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            )
            assert b"101" in connection.recv(4096)
            peer = PoolPeer("deaf", incarnation=1)
            connection.sendall(_frame(changed(HELLO, pool="deaf")))
            deadline = time.monotonic() + PATIENCE
            with pytest.raises(ConnectionError):
                while time.monotonic() < deadline:
                    beats = [_frame(encode_to_dispatcher(peer.heartbeat())) for _ in range(100)]
                    connection.sendall(b"".join(beats))
        eventually(
            lambda: [event["reason"] for event in dispatcher.events("agent disconnected")],
            lambda reasons: reasons == ["it does not read"],
        )
        assert dispatcher.post().status_code == 201


def _frame(text: str) -> bytes:
    """Return a masked text frame; the mask is zero, so that the text stays readable."""
    data = text.encode()
    length = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + len(data).to_bytes(2)
    return b"\x81" + length + bytes(4) + data


def test_a_newer_connection_of_a_pool_replaces_the_older() -> None:
    with fleet(pools=("a",)) as (dispatcher, agents):
        agents.begin("a", "one")
        dispatcher.wait_for(lambda state: state["sessions"] == 1)

        async def play() -> str:
            connection = await _dial(dispatcher)
            async with connection, asyncio.timeout(PATIENCE):
                await connection.send(changed(HELLO, pool="a", incarnation=2**62, address="ws://other.example"))
                return str(json.loads(await connection.recv())["type"])

        assert asyncio.run(play()) == "welcome"
        eventually(lambda: agents["a"].welcomes, lambda welcomes: welcomes >= 2)  # it has come back
        assert dispatcher.wait_for(lambda state: state["agents"] == 1)["pools"]
        assert any(event["replaced"] for event in dispatcher.events("agent connected"))
        eventually(lambda: dispatcher.pool("a")["address"], lambda address: address == "ws://a.example:9000")


def test_a_pool_whose_agent_has_gone_gets_no_sessions_and_comes_back() -> None:
    with fleet(pools=("a", "b")) as (dispatcher, agents):
        eventually(lambda: len(dispatcher.events("pool added")), lambda added: added == 2)
        agents.stop("a")
        dispatcher.wait_for(lambda state: [pool["name"] for pool in state["pools"]] == ["b"])
        assert {dispatcher.post().json()["pool"] for _ in range(5)} == {"b"}
        eventually(lambda: len(dispatcher.events("pool gone")), lambda gone: gone == 1)
        agents.start("a")
        eventually(lambda: dispatcher.pool("a").get("state"), lambda state: state == "serving")


@pytest.mark.full
def test_a_pool_that_leaves_gets_no_sessions() -> None:
    with fleet(pools=("a", "b")) as (dispatcher, agents):
        agents.begin("a", "one")
        agents.run(agents["a"].leave())
        eventually(lambda: dispatcher.pool("a")["state"], lambda state: state == "leaving")
        assert {dispatcher.post().json()["pool"] for _ in range(5)} == {"b"}
        assert dispatcher.pool("a")["sessions"] == 1
        assert dispatcher.state()["messages"]["leaves"] >= 1


def test_a_second_hello_changes_address_and_capacity() -> None:
    with fleet(pools=("a",)) as (dispatcher, agents):
        agents.begin("a", "one")
        hello = {**HELLO, "pool": "a", "address": "https://new.example/base", "capacity": 1}
        agents.run(agents["a"].say(json.dumps(hello)))
        pool = eventually(lambda: dispatcher.pool("a"), lambda pool: pool["state"] == "full")
        assert (pool["address"], pool["capacity"]) == ("https://new.example/base", 1)


@pytest.mark.full
def test_two_hundred_agents_connect_at_once() -> None:
    pools = tuple(f"pool-{number}" for number in range(200))
    with Dispatcher("--heartbeat=2", "--lease=60") as dispatcher, Agents(dispatcher.agents_url) as agents:
        agents.start(*pools)
        dispatcher.wait_for(lambda state: len(state["pools"]) == state["agents"] == 200)
        sessions = [session for _ in range(4) for session in dispatcher.post({"count": 100}).json()["sessions"]]
        assert len({session["id"] for session in sessions}) == 400
        state = dispatcher.state()
        assert max(pool["expected"] for pool in state["pools"]) <= 3
        assert dispatcher.events("fault") == []


def test_the_store_keeps_the_addresses_of_pools_that_have_connected() -> None:
    """Many may connect before the first of them sends a message."""
    settings = FleetSettings(alpha="0.5", lease=10, silence=8, memory=10, heartbeat=2)

    async def play() -> None:
        store = LocalStore(settings, term=1, clock=lambda: 0.0)
        for number in range(300):
            await store.register(f"p{number}", incarnation=1, address=f"ws://p{number}", capacity=None)
        await store.tick()
        await store.receive(PoolPeer("p7", incarnation=1).heartbeat())
        (place,) = await store.place(count=1, exclude=frozenset(), key=None)
        assert place.address == "ws://p7"
        for number in range(300):
            await store.disconnected(f"p{number}")
        await store.tick()
        assert len(store._addresses) == 1

    asyncio.run(play())


@pytest.mark.full
def test_frames_of_later_versions_are_ignored_and_versions_of_the_far_future_rejected() -> None:
    with Dispatcher() as dispatcher:

        async def play() -> str:
            async with asyncio.timeout(PATIENCE), await _dial(dispatcher) as connection:
                await connection.send(changed(HELLO))
                assert json.loads(await connection.recv())["type"] == "welcome"
                await connection.send('{"type": "future", "more": 1}')
                await connection.send(BEAT)
                assert "threshold" in json.loads(await connection.recv())
                await connection.send(
                    json.dumps({**json.loads(BEAT), "sequence": 2, "version": (2**31 - 2) * 2**32})
                )
                with pytest.raises(ConnectionClosed) as closed:
                    while True:
                        await connection.recv()
                assert closed.value.rcvd is not None
                return closed.value.rcvd.reason

        assert "far future" in asyncio.run(play())
