"""The middleware in a real uvicorn, with real clients that come, go, and die."""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.middleware import Middleware
from starlette.staticfiles import StaticFiles
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from evenly.live.agents import EvenlyMiddleware
from evenly.live.session_id import sign
from tests.live.agents.asgi_rig import rig
from tests.live.agents.asgi_server import Game, Passing, serving, starlette_app, without_lifespan
from tests.live.agents.dispatcher import SmallDispatcher
from tests.live.agents.support import asynchronous, until, until_async


@asynchronous
async def test_a_websocket_is_a_session_from_accept_to_close() -> None:
    async with rig() as pool:
        async with pool.websocket("/echo") as client:
            await pool.settled(1)
            await client.send("hello")
            assert await client.recv() == "hello"
        await pool.settled(0)


@asynchronous
async def test_the_agent_starts_with_the_server_and_leaves_with_it() -> None:
    async with rig() as pool:
        await pool.settled(0)  # without any request


@asynchronous
async def test_an_application_without_lifespan_is_announced_too() -> None:
    async with rig(without_lifespan, lifespan="auto") as pool:
        await pool.settled(0)  # without any request
        async with pool.websocket("/"):
            await pool.settled(1)
        await pool.settled(0)


@asynchronous
async def test_a_server_without_lifespan_starts_the_agent_with_the_first_request() -> None:
    async with rig(without_lifespan, lifespan="off") as pool, pool.http() as client:
        assert pool.dispatcher.hellos == []
        assert (await client.get("/")).text == "hello"
        await pool.settled(0)


@asynchronous
async def test_startup_failures_of_the_application_are_not_hidden() -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no database"})
        raise RuntimeError("no database")

    sent: list[Any] = []

    async def receive() -> dict[str, str]:
        return {"type": "lifespan.startup"}

    async def send(message: Any) -> None:  # noqa: ANN401
        sent.append(message)

    middleware = EvenlyMiddleware(broken, pool="a", address="ws://h", dispatchers=["http://127.0.0.1:1"])
    with pytest.raises(RuntimeError, match="no database"):
        await middleware({"type": "lifespan"}, receive, send)
    assert [each["type"] for each in sent] == ["lifespan.startup.failed"]
    assert middleware.agent.dispatcher is None


@pytest.mark.parametrize("where", ["query", "header"])
@asynchronous
async def test_the_session_id_of_a_websocket_is_its_ticket(where: str) -> None:
    async with rig() as pool:
        await pool.settled(0)
        lease = await pool.place()
        path = f"/echo?a=b&evenly-session={lease}&c=d" if where == "query" else "/echo"
        headers = {"evenly-session": lease} if where == "header" else {}
        async with pool.websocket(path, additional_headers=headers):
            await pool.settled(1)
            await until_async(pool.open_tickets, lambda count: count == 0)


@pytest.mark.parametrize("path", ["/reject", "/fail"])
@asynchronous
async def test_a_rejected_handshake_is_no_session_but_its_ticket_is_given_back(path: str) -> None:
    async with rig() as pool:
        await pool.settled(0)
        lease = await pool.place()
        with pytest.raises(InvalidStatus):
            await pool.websocket(f"{path}?evenly-session={lease}")
        await until_async(pool.open_tickets, lambda count: count == 0)
        assert pool.agent.sent.refusals == 1
        await pool.settled(0)


@asynchronous
async def test_a_websocket_that_crashes_or_closes_is_no_session_any_more() -> None:
    async with rig() as pool:
        for word in ("crash", "close"):
            async with pool.websocket("/echo") as client:
                await pool.settled(1)
                await client.send(word)
                with pytest.raises(ConnectionClosed):
                    await client.recv()
                await pool.settled(0)
        assert pool.game.running == 1  # the one that cleans up for long


@asynchronous
async def test_a_killed_websocket_client_is_no_session_any_more() -> None:
    async with rig() as pool:
        for path in ("/echo", "/concurrent"):
            client = await pool.websocket(path)
            await pool.settled(1)
            client.transport.abort()
            await pool.settled(0)


@asynchronous
async def test_a_session_ends_with_its_client_although_the_application_goes_on() -> None:
    async with rig() as pool:
        for kind in ("websocket", "http"):
            if kind == "websocket":
                transport: asyncio.WriteTransport = (await pool.websocket("/linger")).transport
            else:
                _, writer = await asyncio.open_connection("127.0.0.1", pool.port)
                writer.write(b"GET /linger HTTP/1.1\r\nHost: a\r\nevenly-session: x\r\n\r\n")
                transport = writer.transport
            await pool.settled(1)
            transport.abort()
            await pool.settled(0)
        assert pool.game.running == 2


@asynchronous
async def test_a_handshake_that_may_be_accepted_takes_a_place() -> None:
    async with rig(capacity=1) as pool:
        first = asyncio.create_task(pool.websocket("/hesitate").connect())
        await until(lambda: pool.game.running == 1)
        with pytest.raises(InvalidStatus):
            await pool.websocket("/echo")
        assert pool.agent.sessions == 0
        pool.game.finish.set()
        async with await first:
            await pool.settled(1)
        await pool.settled(0)


@asynchronous
async def test_a_streamed_response_is_a_session_and_a_plain_one_is_not() -> None:
    async with rig() as pool, pool.http() as client:
        assert (await client.get("/plain")).text == "hello"
        assert pool.agent.sessions == 0  # although its background task runs
        async with client.stream("GET", "/stream") as response:
            lines = response.aiter_lines()  # the response is closed once this is gone
            assert await anext(lines) == "begun"
            await pool.settled(1)
            pool.game.finish.set()
            assert {line async for line in lines} <= {"more"}
        await pool.settled(0)


@asynchronous
async def test_a_killed_client_of_a_stream_is_no_session_any_more() -> None:
    async with rig() as pool:
        reader, writer = await asyncio.open_connection("127.0.0.1", pool.port)
        writer.write(b"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
        await reader.readuntil(b"begun")
        await pool.settled(1)
        writer.transport.abort()
        await pool.settled(0)
        await until(lambda: pool.game.running == 0)


@asynchronous
async def test_a_stream_that_crashes_is_no_session_any_more() -> None:
    async with rig() as pool, pool.http() as client:
        with pytest.raises(httpx.RemoteProtocolError):
            await client.get("/stream?crash")
        await pool.settled(0)


@asynchronous
async def test_a_request_with_a_session_id_is_a_session_from_the_start() -> None:
    async with rig() as pool, pool.http() as client:
        await pool.settled(0)
        lease = await pool.place()
        request = asyncio.create_task(client.get("/slow", headers={"evenly-session": lease}))
        await pool.settled(1)
        await until_async(pool.open_tickets, lambda count: count == 0)
        pool.game.finish.set()
        assert (await request).text == "done"
        await pool.settled(0)


@asynchronous
async def test_responses_in_one_part_are_not_streams_behind_other_middleware() -> None:
    game = Game()
    app = starlette_app(game)
    app.user_middleware.append(Middleware(Passing))
    async with rig(app, capacity=1) as pool, pool.http() as client:
        game.finish.set()
        async with pool.websocket("/echo"):
            await pool.settled(1)
            assert (await client.get("/plain")).text == "hello"  # although the pool is full


@asynchronous
async def test_a_large_file_is_no_session_but_one_with_an_id_is(tmp_path: Path) -> None:
    content = random.Random(1).randbytes(5_000_000)
    (tmp_path / "map.bin").write_bytes(content)
    game = Game()
    app = starlette_app(game)
    app.mount("/files", StaticFiles(directory=tmp_path))
    app.user_middleware.append(Middleware(Passing))
    path = "/files/map.bin"
    async with rig(app, capacity=1) as pool, pool.http() as client:
        async with pool.websocket("/echo"):
            await pool.settled(1)
            assert (await client.get(path)).content == content  # although the pool is full
            assert (await client.get(path, headers={"evenly-session": "x"})).status_code == 503
        await pool.settled(0)
        async with client.stream("GET", path) as response:  # too much for the buffers: it is being sent
            assert (response.status_code, pool.agent.sessions, pool.middleware._held) == (200, 0, 0)
        async with client.stream("GET", path, headers={"evenly-session": "x"}) as response:
            assert response.status_code == 200
            await pool.settled(1)
            assert await response.aread() == content
        await pool.settled(0)


@asynchronous
async def test_add_middleware_of_starlette() -> None:
    async with SmallDispatcher() as dispatcher:
        app = starlette_app(Game())
        app.add_middleware(
            EvenlyMiddleware, pool="game-1", address="ws://127.0.0.1:7000", dispatchers=[dispatcher.url]
        )
        async with serving(app) as port, connect(f"ws://127.0.0.1:{port}/echo", proxy=None):

            async def sessions() -> int:
                pool = await dispatcher.pool("game-1")
                return -1 if pool is None else pool.sessions

            await until_async(sessions, lambda count: count == 1)
        await until(lambda: dispatcher.frames[-1]["kind"] == "leave")


@asynchronous
async def test_a_full_pool_turns_clients_away(caplog: pytest.LogCaptureFixture) -> None:
    async with rig(capacity=1) as pool, pool.http() as client:
        caplog.set_level(logging.ERROR, logger="uvicorn.error")
        await pool.settled(0)
        lease, other = await pool.place(), sign(pool.dispatcher.store.key, "game-1", 7, 0)
        async with pool.websocket("/echo"):
            await pool.settled(1)
            with pytest.raises(InvalidStatus) as refused:
                await pool.websocket(f"/echo?evenly-session={lease}")
            assert refused.value.response.status_code == 503
            assert refused.value.response.headers["retry-after"] == "1"
            await until_async(pool.open_tickets, lambda count: count == 0)
            assert [each.getMessage() for each in caplog.records if each.name == "uvicorn.error"] == []
            for path in ("/stream", f"/plain?evenly-session={other}"):
                answer = await client.get(path)
                assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            pool.game.finish.set()
            assert (await client.get("/plain")).status_code == 200
            assert (await client.get("/no-such-path")).status_code == 404
            await pool.settled(1)
        await pool.settled(0)
        async with pool.websocket("/echo"):
            await pool.settled(1)


@asynchronous
async def test_without_the_extension_a_full_pool_closes_the_handshake() -> None:
    sent: list[Any] = []

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:  # noqa: ANN401
        sent.append(message)

    middleware = EvenlyMiddleware(
        without_lifespan, pool="a", address="ws://h", dispatchers=["http://127.0.0.1:1"], capacity=1
    )
    middleware.agent.begin()
    await middleware({"type": "websocket", "headers": [], "query_string": b""}, receive, send)
    assert [each["type"] for each in sent] == ["websocket.close"]
    await middleware.agent.close()


@asynchronous
async def test_the_capacity_is_never_exceeded_and_no_place_is_lost() -> None:
    """Many clients come at once, and are closed, killed or cancelled in any order."""
    rng = random.Random(2)
    most = 0
    async with rig(capacity=8) as pool:

        async def client(number: int) -> None:
            nonlocal most
            path = rng.choice(["/echo", "/concurrent", "/reject", "/fail", "/stream", "/plain"])
            end = rng.choice(["close", "abort", "cancel"])
            await asyncio.sleep(rng.random() / 2)
            if path in ("/stream", "/plain"):
                reader, writer = await asyncio.open_connection("127.0.0.1", pool.port)
                writer.write(b"GET %s HTTP/1.1\r\nHost: a\r\nevenly-session: x\r\n\r\n" % path.encode())
                try:
                    await reader.read(10)
                    most = max(most, pool.agent.sessions)
                finally:  # also if this task is cancelled
                    writer.transport.abort() if end == "abort" else writer.close()
                return
            with suppress(InvalidStatus, ConnectionClosed):
                websocket: ClientConnection = await pool.websocket(path)
                try:
                    most = max(most, pool.agent.sessions)
                    await asyncio.sleep(rng.random() / 10)
                    if end == "close":
                        await websocket.close()
                finally:  # also if this task is cancelled: a client that lives on would be a session
                    websocket.transport.abort()

        tasks = [asyncio.create_task(client(number)) for number in range(300)]
        for task in rng.sample(tasks, 60):
            asyncio.get_running_loop().call_later(rng.random(), task.cancel)
        pool.game.finish.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        await pool.settled(0)
        assert 1 < most <= 8


@asynchronous
async def test_a_cancelled_application_and_one_that_accepts_too_late_leak_nothing() -> None:
    late = asyncio.Event()
    tasks: list[asyncio.Task[None]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401
        if scope["path"] == "/late":

            async def accept_later() -> None:
                await late.wait()
                await send({"type": "websocket.accept"})

            tasks.append(asyncio.create_task(accept_later()))
            return
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.accept"})
        await asyncio.Event().wait()

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:  # noqa: ANN401
        pass

    middleware = EvenlyMiddleware(app, pool="a", address="ws://h", dispatchers=["http://127.0.0.1:1"], capacity=2)
    scope = {"type": "websocket", "headers": [], "query_string": b""}
    running = asyncio.create_task(middleware({**scope, "path": "/"}, receive, send))
    await until(lambda: middleware.agent.sessions == 1)
    await middleware({**scope, "path": "/late"}, receive, send)
    late.set()
    await asyncio.gather(*tasks)
    assert (middleware.agent.sessions, middleware._held) == (1, 0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert (middleware.agent.sessions, middleware._held) == (0, 0)
    await middleware.agent.close()
