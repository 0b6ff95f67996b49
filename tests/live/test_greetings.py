"""Servers that speak first, seen by a picker that wants pools with HTTP/1.1."""

from __future__ import annotations

import asyncio
import io
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from math import inf
from pathlib import Path

import pytest

from evenly.core import make_policy
from evenly.live.addresses import Address
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.pool import LivePool
from evenly.live.log import Log
from evenly.live.picker import greetings
from evenly.live.picker.greetings import Greetings
from tests.live.certificates import Authority
from tests.live.processes import PATIENCE, free_port

SETTINGS = bytes(3) + b"\x04" + bytes(5)  # of HTTP/2, empty


class Scene:
    """Pools at ports of this process, a balancer, and what the log says."""

    def __init__(self) -> None:
        self.lines = io.StringIO()
        self.balancer = Balancer(
            make_policy("jsq"),
            name="jsq",
            choose=lambda pools: pools[0],
            clock=lambda: 0.0,
            slow_start=0.0,
            report=lambda _: None,
        )
        self.greetings = Greetings(self.balancer, Log(self.lines))

    def add(self, port: int) -> LivePool:
        address = Address("127.0.0.1", port)
        self.balancer.add(address, address, slowly=False)
        return next(pool for pool in self.balancer.pools if pool.address == address)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.greetings.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def server(port: int, says: bytes, visits: list[int] | None = None) -> AsyncIterator[None]:
    """A server that says this to every connection, before it is asked."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if visits is not None:
            visits.append(port)
        writer.write(says)
        await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", port, reuse_address=True):
        yield


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not true():
            await asyncio.sleep(0.01)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_LOOK_S", "_AGAIN_S"):
        monkeypatch.setattr(greetings, name, 0.05)


def test_only_servers_that_say_something_else_first_are_unfit() -> None:
    async def judged() -> tuple[list[bool], str]:
        scene, visits = Scene(), list[int]()
        said = (SETTINGS, b"SSH-2.0-x\r\n", b"", b"HTTP/1.1 503 Full\r\n", b"HT")
        ports = [free_port() for _ in said]
        pools = [scene.add(port) for port in (*ports, free_port())]  # nothing listens on the last one
        servers = [server(port, words, visits) for port, words in zip(ports, said, strict=True)]
        async with servers[0], servers[1], servers[2], servers[3], servers[4], scene.running():
            await until(lambda: all(scene.greetings._next.get(pool) == inf for pool in pools[2:5]))  # judged fit
            await until(lambda: all(map(scene.greetings.greets, pools[:2])) and visits.count(ports[0]) > 2)
            return [scene.greetings.greets(pool) for pool in pools], scene.lines.getvalue()

    verdicts, log = asyncio.run(judged())
    assert verdicts == [True, True, False, False, False, False]
    assert log.count("pool speaks another protocol") == 2  # once for each, though they are asked again
    assert log.count('"speaks": "HTTP/2"') == log.count('"speaks": "not HTTP/1.1"') == 1


def test_a_server_of_tls_is_unfit_and_one_of_http_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(greetings, "_GREETING_S", 0.1)  # neither of them speaks first
    monkeypatch.setattr(greetings, "_HELLO_S", PATIENCE)  # and both answer
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pair = Authority(tmp_path, "authority").sign("pool")
    context.load_cert_chain(pair.cert, pair.key)

    async def judged() -> tuple[bool, bool, str]:
        scene, asked = Scene(), list[bytes]()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.append(await reader.read(100))
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        start = partial(asyncio.start_server, serve, "127.0.0.1", reuse_address=True)
        ports = [free_port(), free_port()]
        pools = [scene.add(port) for port in ports]
        async with await start(ports[0], ssl=context), await start(ports[1]), scene.running():
            await until(lambda: bool(asked) and scene.greetings._next.get(pools[1], 0.0) == inf)
            await until(lambda: scene.greetings.greets(pools[0]))
            tls, http = (scene.greetings.greets(pool) for pool in pools)
            return tls, http, scene.lines.getvalue()

    tls, http, log = asyncio.run(judged())
    assert (tls, http) == (True, False)
    assert log.count('"speaks": "TLS"') == 1


@pytest.mark.full
def test_a_pool_is_examined_again_when_its_server_may_be_another() -> None:
    async def seen() -> list[bool]:
        scene, port, verdicts = Scene(), free_port(), []
        pool = scene.add(port)
        async with scene.running():
            async with server(port, SETTINGS):
                await until(lambda: scene.greetings.greets(pool))
                scene.balancer.set_failing(pool, "down")  # as the fleet does then
            await asyncio.sleep(0.2)
            verdicts.append(scene.greetings.greets(pool))  # it cannot be reached, which proves nothing
            async with server(port, b""):
                await until(lambda: not scene.greetings.greets(pool))
            scene.balancer.set_failing(pool, "down")  # its health checks fail while the server is replaced
            await until(lambda: pool not in scene.greetings._next)
            async with server(port, SETTINGS):
                scene.balancer.set_well(pool)
                await until(lambda: scene.greetings.greets(pool))
            scene.balancer.remove(pool.address)
            await until(lambda: not scene.greetings.greets(pool))
        return verdicts

    assert asyncio.run(seen()) == [True]
