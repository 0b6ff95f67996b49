"""The middleware learns of a disconnect by itself, and applications receive as they would without it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from evenly.live.agents import EvenlyMiddleware
from tests.live.agents.asgi_rig import rig
from tests.live.agents.support import asynchronous, until

CONNECT = {"type": "websocket.connect"}
ACCEPT = {"type": "websocket.accept"}
DISCONNECT = {"type": "websocket.disconnect", "code": 1000}


def text(word: str) -> dict[str, str]:
    return {"type": "websocket.receive", "text": word}


@pytest.mark.parametrize("end", ["close", "abort"])
@asynchronous
async def test_a_session_ends_with_its_client_although_the_application_receives_nothing(end: str) -> None:
    async with rig() as pool:
        client = await pool.websocket("/idle")
        await pool.settled(1)
        if end == "close":
            await client.close()
        else:
            client.transport.abort()
        await pool.settled(0)
        assert pool.game.running == 1


@asynchronous
async def test_a_session_ends_with_its_client_although_messages_are_left_unread() -> None:
    async with rig() as pool:
        client = await pool.websocket("/talk")
        await pool.settled(1)
        for _ in range(20):
            await client.send("unread")
        client.transport.abort()
        await pool.settled(0)
        assert pool.game.running == 1


@asynchronous
async def test_a_client_that_gives_up_during_the_handshake_takes_no_place() -> None:
    async with rig(capacity=1) as pool:
        first = asyncio.create_task(pool.websocket("/hesitate").connect())
        await until(lambda: pool.game.running == 1)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await pool.settled(0)
        async with pool.websocket("/echo"):
            await pool.settled(1)
        assert pool.game.running == 1


@asynchronous
async def test_a_client_that_sends_too_fast_is_held_up() -> None:
    """The server must not read what the application does not receive, except for one message."""
    size, count = 100_000, 1000
    async with rig() as pool, pool.websocket("/idle") as client:

        async def flood() -> None:
            for _ in range(count):
                await client.send(b"x" * size)

        sending = asyncio.create_task(flood())
        await until(lambda: client.transport.get_write_buffer_size() > 0)
        await asyncio.sleep(0.3)
        assert not sending.done()
        sending.cancel()
        client.transport.abort()
        await asyncio.gather(sending, return_exceptions=True)


@asynchronous
async def test_messages_come_in_order_and_a_canceled_receive_loses_none() -> None:
    heard: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401
        if scope["type"] != "websocket":
            raise ValueError
        await receive()
        await send(ACCEPT)
        while True:
            try:
                message = await asyncio.wait_for(receive(), 0.0005)
            except TimeoutError:
                continue
            if message["type"] == "websocket.disconnect":
                return
            heard.append(message["text"])

    sent = [str(number) for number in range(500)]
    async with rig(app) as pool:
        async with pool.websocket("/") as client:
            for word in sent:
                await client.send(word)
                if int(word) % 5 == 0:
                    await asyncio.sleep(0.001)
        await pool.settled(0)
    assert heard == sent


@asynchronous
async def test_what_an_application_leaves_behind_learns_of_the_end() -> None:
    """Tasks that receive at once, also after the application has returned, end with the connection."""
    tasks: list[asyncio.Task[Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401
        if scope["type"] != "websocket":
            raise ValueError
        await receive()
        await send(ACCEPT)
        tasks.append(asyncio.create_task(receive()))
        if scope["path"] == "/close":
            tasks.append(asyncio.create_task(receive()))  # uvicorn tells it twice then
            await send({"type": "websocket.close"})
            await tasks[0]

    for path in ("/return", "/close"):
        tasks.clear()
        async with rig(app) as pool:
            client = await pool.websocket(path)
            with pytest.raises(ConnectionClosed):
                await client.recv()
            await until(lambda: all(task.done() for task in tasks))
            assert {task.result()["type"] for task in tasks} == {"websocket.disconnect"}


class FakeServer:
    """The receiving side of a server, with what the middleware has taken from it."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[Any] = asyncio.Queue()
        self.taken: list[Any] = []
        self.sent: list[Any] = []
        self.messages.put_nowait(CONNECT)

    async def receive(self) -> Any:  # noqa: ANN401
        message = await self.messages.get()
        self.taken.append(message)
        if isinstance(message, BaseException):
            raise message
        return message

    async def send(self, message: Any) -> None:  # noqa: ANN401
        self.sent.append(message)


@asynccontextmanager
async def faked(
    app: Callable[[Any, Any, Any], Awaitable[None]],
) -> AsyncIterator[tuple[FakeServer, EvenlyMiddleware, asyncio.Task[None]]]:
    """Run an application behind the middleware, and check that no task is left."""
    before = asyncio.all_tasks()
    server = FakeServer()
    middleware = EvenlyMiddleware(app, pool="a", address="ws://h", dispatchers=["http://127.0.0.1:1"])
    scope = {"type": "websocket", "headers": [], "query_string": b""}
    running = asyncio.create_task(middleware(scope, server.receive, server.send))
    try:
        yield server, middleware, running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await middleware.agent.close()
    assert (middleware.agent.sessions, middleware._held) == (0, 0)
    assert asyncio.all_tasks() == before


@asynchronous
async def test_one_message_is_read_ahead_and_the_handshake_does_not_count() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401
        await send(ACCEPT)  # without having received anything, which servers allow
        await go.wait()
        heard.extend([await receive() for _ in range(4)])

    go, heard = asyncio.Event(), list[Any]()
    async with faked(app) as (server, middleware, running):
        await until(lambda: middleware.agent.sessions == 1)
        for message in (text("a"), text("b"), DISCONNECT):
            server.messages.put_nowait(message)
        await until(lambda: len(server.taken) == 2)
        for _ in range(10):
            await asyncio.sleep(0)
        assert server.taken == [CONNECT, text("a")]
        assert middleware.agent.sessions == 1
        go.set()
        await running
        assert heard == [CONNECT, text("a"), text("b"), DISCONNECT]


@asynchronous
async def test_after_the_disconnect_the_application_receives_from_the_server() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401
        await receive()
        await send(ACCEPT)
        heard.extend(await asyncio.gather(receive(), receive()))
        heard.append(await receive())

    heard: list[Any] = []
    async with faked(app) as (server, middleware, running):
        await until(lambda: middleware.agent.sessions == 1)
        server.messages.put_nowait(DISCONNECT)
        await until(lambda: middleware.agent.sessions == 0)
        server.messages.put_nowait({**DISCONNECT, "code": 1005})
        server.messages.put_nowait({**DISCONNECT, "code": 1006})
        await running
        assert [message["code"] for message in heard] == [1000, 1005, 1006]


@asynchronous
async def test_an_exception_of_the_server_reaches_the_application() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401
        await receive()
        await send(ACCEPT)
        heard.append(await receive())
        with pytest.raises(RuntimeError, match="of the server"):
            await receive()
        heard.append(await receive())

    heard: list[Any] = []
    async with faked(app) as (server, _, running):
        for message in (text("a"), RuntimeError("of the server"), text("b")):
            server.messages.put_nowait(message)
        await running
        assert heard == [text("a"), text("b")]


@pytest.mark.parametrize("wait", [False, True])
@asynchronous
async def test_an_application_that_ends_at_once_leaves_no_task(wait: bool) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401
        if wait:
            await receive()
            await send({"type": "websocket.http.response.start", "status": 404, "headers": []})
            await send({"type": "websocket.http.response.body", "body": b""})
        raise RuntimeError("of the application")

    async with faked(app) as (_, _, running):
        with pytest.raises(RuntimeError, match="of the application"):
            await running
