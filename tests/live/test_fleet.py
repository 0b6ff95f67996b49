"""A fleet of Envoys, polled at admin ports that respond as the test decides."""

from __future__ import annotations

import asyncio
import io
import json
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from evenly.core import LearningRule, RandomRouting, ThresholdPolicy
from evenly.live.addresses import Address
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.pool import LivePool
from evenly.live.envoy.admin_client import BadResponseError, Host, fetch_hosts
from evenly.live.envoy.fleet import EnvoyFleet
from evenly.live.envoy.reconcile import EnvoyCounts
from evenly.live.log import Log
from tests.live.processes import PATIENCE
from tests.live.sent_items import SentItems

POOL = Address("127.0.0.1", 9001)
OTHER = Address("127.0.0.1", 9002)
NONSENSE = b"HTTP/1.1 200 OK\r\n\r\nnonsense"


class AdminPort:
    """An admin port of an Envoy. `response` is what it sends, `requests` what it has received."""

    def __init__(self) -> None:
        self.response = b""
        self.requests: list[bytes] = []
        self._connections: set[asyncio.Task[None] | None] = set()
        self.show()

    def show(self, active: int = 0, *, failing: bool = False, pools: tuple[Address, ...] = (POOL,)) -> None:
        """Show these pools, each with `active` open requests."""
        hosts = [
            {
                "address": {"socket_address": {"address": pool.host, "port_value": pool.port}},
                "stats": [{"name": "rq_active", "value": str(active)}],
                "health_status": {"failed_active_health_check": failing},
            }
            for pool in pools
        ]
        body = json.dumps({"cluster_statuses": [{"name": "pools", "host_statuses": hosts}]}).encode()
        self.response = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    async def start(self) -> None:
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = Address("127.0.0.1", self.server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        self.server.close()
        await until(lambda: not self._connections)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(asyncio.current_task())
        with suppress(ConnectionError, EOFError):
            try:
                self.requests.append(await reader.readuntil(b"\r\n\r\n"))
                await self.respond(reader, writer)
            finally:
                writer.close()
                await writer.wait_closed()
        self._connections.discard(asyncio.current_task())

    async def respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send the response."""
        writer.write(self.response)

    async def polled(self) -> None:
        """Wait until a response sent after this call has been used: the next request follows it.

        The response to that next request may still be in flight. It is used at whatever time the clock shows then.
        """
        seen = len(self.requests)
        await until(lambda: len(self.requests) >= seen + 2)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.005)


class Scene:
    """A fleet with a clock that is set by hand, and one or more Envoys that use it."""

    def __init__(self, envoys: int = 1, *, learned: bool = False) -> None:
        self.now = 0.0
        self.lines = io.StringIO()
        self.balancer = Balancer(
            ThresholdPolicy(0, LearningRule("0.6")) if learned else RandomRouting(),
            name="policy",
            choose=random.Random(1).choice,
            clock=lambda: self.now,
            slow_start=0.0,
            report=lambda event: None,
        )
        self.pool = self.balancer.add(POOL, POOL)
        self.fleet = EnvoyFleet(self.balancer, Log(self.lines), lambda: self.now)
        self.ports = [AdminPort() for _ in range(envoys)]

    async def start(self) -> None:
        for port in self.ports:
            await port.start()
            assert self.fleet.register(str(port.address).encode(), SentItems()) is not None

    async def polled(self) -> None:
        for port in self.ports:
            await port.polled()

    def envoy(self) -> EnvoyCounts:
        [envoy] = self.fleet.all
        return envoy

    def events(self, name: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.lines.getvalue().splitlines()]
        return [{key: line[key] for key in line if key != "time"} for line in lines if line["event"] == name]


def run(scene: Scene, play: Callable[[Scene], Awaitable[None]]) -> None:
    """Run a play with the scene's Envoys, and stop everything after it."""

    async def all_of_it() -> None:
        await scene.start()
        try:
            await play(scene)
        finally:
            await scene.fleet.close()
            for port in scene.ports:
                await port.stop()

    asyncio.run(all_of_it())


@pytest.mark.parametrize(("failing", "envoys", "fails"), [(1, 1, True), (1, 2, False), (2, 3, True)])
def test_a_pool_fails_if_more_than_half_of_the_envoys_report_so(failing: int, envoys: int, fails: bool) -> None:
    async def play(scene: Scene) -> None:
        await scene.polled()
        assert not scene.pool.failing
        for port in scene.ports[:failing]:
            port.show(failing=True)
        await scene.polled()
        assert scene.pool.failing == fails
        for port in scene.ports:
            port.show()
        await scene.polled()
        assert not scene.pool.failing

    run(Scene(envoys), play)


def test_an_envoy_that_does_not_know_a_pool_has_no_say_in_its_health() -> None:
    async def play(scene: Scene) -> None:
        stranger = scene.ports[1]
        stranger.show(pools=())
        await scene.polled()
        scene.ports[0].show(failing=True)
        await scene.polled()
        assert scene.pool.failing
        unknown = {envoy.admin: scene.fleet.unknown_pools(envoy) for envoy in scene.fleet.all}
        assert unknown == {scene.ports[0].address: [], stranger.address: [scene.pool]}

    run(Scene(2), play)


def test_unpicked_sessions_are_the_sum_over_all_envoys() -> None:
    async def play(scene: Scene) -> None:
        first, second = scene.ports
        first.show(3)
        second.show(4)
        await scene.polled()
        assert scene.pool.unpicked == 7
        first.show(0)
        await until(lambda: scene.pool.unpicked == 4)
        second.show(0)
        await until(lambda: scene.pool.unpicked == 0)
        ends = [(line["before"], line["sessions"]) for line in scene.events("unpicked sessions")]
        assert ends in ([(0, 3), (3, 7), (4, 0)], [(0, 4), (4, 7), (4, 0)])  # a decrease to 4 is not logged

    run(Scene(2), play)


def test_the_first_response_of_an_envoy_raises_the_threshold_to_the_mean() -> None:
    async def play(scene: Scene) -> None:
        scene.ports[0].show(7)
        await scene.polled()
        assert scene.balancer.threshold == 7
        scene.ports[0].show(9)
        await until(lambda: scene.pool.unpicked == 9)
        await scene.polled()
        assert scene.balancer.threshold == 7  # from now on it learns

    run(Scene(learned=True), play)


def test_an_envoy_that_refuses_connections_is_lost_with_its_unpicked_sessions() -> None:
    async def play(scene: Scene) -> None:
        [port] = scene.ports
        port.show(5)
        await scene.polled()
        envoy, refusals = scene.envoy(), []
        assert envoy.unpicked.total() == 5
        forget_checks = envoy.refused

        def refused() -> None:
            refusals.append(envoy.hosts is not None)
            forget_checks()

        envoy.refused = refused  # type: ignore[method-assign]
        port.server.close()
        await until(lambda: scene.envoy().hosts is None)
        assert refusals.count(True) == 3  # two in a row, and the loss itself
        assert (scene.pool.unpicked, scene.envoy().unpicked.total()) == (0, 0)
        [line] = scene.events("envoy lost")
        assert (line["admin"], line["unpicked"]) == (str(port.address), 5)
        assert "refused" in line["reason"].lower() or "Connect call failed" in line["reason"]

    run(Scene(), play)


def test_an_envoy_that_is_silent_keeps_its_sessions_for_a_while_and_is_forgotten_later() -> None:
    async def play(scene: Scene) -> None:
        [port] = scene.ports
        port.show(5)
        await scene.polled()
        good, port.response = port.response, NONSENSE
        await scene.polled()  # no good response is in flight when the clock moves
        scene.now = 5.0
        await scene.polled()
        assert scene.pool.unpicked == 5
        scene.now = 5.1
        await scene.polled()
        assert (scene.pool.unpicked, scene.envoy().hosts) == (0, None)
        assert len(scene.events("envoy lost")) == 1
        port.response = good
        await scene.polled()
        scene.now = 100.0
        await scene.polled()
        assert scene.pool.unpicked == 5
        assert [line["pools"] for line in scene.events("envoy reachable")] == [1, 1]
        port.response = NONSENSE
        await scene.polled()
        scene.now = 160.0
        await scene.polled()
        assert len(scene.fleet.all) == 1
        scene.now = 160.1
        await until(lambda: not scene.fleet.all)

    run(Scene(), play)


def test_the_counts_of_a_pool_that_is_gone_are_dropped() -> None:
    async def play(scene: Scene) -> None:
        other = scene.balancer.add(OTHER, OTHER)
        scene.balancer.drain(POOL)
        session = scene.balancer.open(via=scene.envoy())
        assert session is not None
        session.close()
        assert scene.envoy().snapshot().started == {other: 1}
        scene.balancer.remove(OTHER)
        await until(lambda: not scene.envoy().snapshot().started)

    run(Scene(), play)


def test_an_envoy_that_never_responds_is_forgotten_unless_it_has_sessions() -> None:
    async def play(scene: Scene) -> None:
        [port] = scene.ports
        await scene.polled()
        session = scene.balancer.open(via=scene.envoy())
        assert session is not None
        scene.now = 10.1
        await scene.polled()
        assert len(scene.fleet.all) == 1
        session.close()
        scene.now = 10.0
        await scene.polled()
        assert len(scene.fleet.all) == 1
        scene.now = 10.1
        await until(lambda: not scene.fleet.all)
        assert scene.events("envoy lost") == []
        await until(lambda: not scene.fleet._tasks)  # else every Envoy that ever came would take memory
        asked = len(port.requests)
        assert scene.fleet.register(str(port.address).encode(), SentItems()) is not None
        await until(lambda: len(port.requests) > asked)

    scene = Scene()
    scene.ports[0].response = NONSENSE
    run(scene, play)


# --- the client of one admin port ------------------------------------------------------------------------------


def fetched(port: AdminPort, seconds: float = PATIENCE) -> dict[Address, Host]:
    async def ask() -> dict[Address, Host]:
        await port.start()
        try:
            return await fetch_hosts(port.address, seconds)
        finally:
            await port.stop()

    return asyncio.run(ask())


def test_a_response_that_cannot_be_parsed_is_rejected() -> None:
    for response in [
        b"",
        b"\r\n",
        NONSENSE,
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}",
        b"HTTP/9 x\r\n\r\n",
    ]:
        port = AdminPort()
        port.response = response
        with pytest.raises(BadResponseError):
            fetched(port)


class EndlessPort(AdminPort):
    async def respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(bytes(2**20))
            await writer.drain()


def test_a_response_that_is_too_long_is_rejected() -> None:
    with pytest.raises(BadResponseError, match="more than 67108864 bytes"):
        fetched(EndlessPort())


class HangingPort(AdminPort):
    async def respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()


def test_an_admin_port_that_hangs_is_given_up() -> None:
    with pytest.raises(TimeoutError):
        fetched(HangingPort(), 0.05)


def test_a_fault_of_ours_is_logged_and_polling_continues() -> None:
    async def play(scene: Scene) -> None:
        def fail(pool: LivePool, count: int) -> None:
            raise ZeroDivisionError("of ours")

        scene.balancer.set_unpicked = fail  # type: ignore[method-assign]
        await scene.polled()
        assert scene.events("fault")[0] == {
            "event": "fault",
            "level": "error",
            "where": "EnvoyFleet._take_in",
            "error": "ZeroDivisionError('of ours')",
        }
        await scene.polled()

    run(Scene(), play)


def test_announcements_that_are_rejected_are_logged_once_each_and_not_without_end() -> None:
    scene = Scene()

    async def play(scene: Scene) -> None:
        for _ in range(2):
            assert scene.fleet.register(b"envoy.example:" + b"9" * 200, SentItems()) is None
        [line] = scene.events("envoy not believed")
        assert len(line["announced"]) == 100
        for number in range(100):
            assert scene.fleet.register(f"envoy-{number}:80".encode(), SentItems()) is None
        assert len(scene.events("envoy not believed")) == 64

    run(scene, play)
