"""The balancer's pools follow a real DNS server, its failures, the settings and the operator's hand."""

from __future__ import annotations

import asyncio
import io
import json
import random
from typing import Any

import pytest

from evenly.live.addresses import Address, parse_address
from evenly.live.admin.metrics import balancer_metrics
from evenly.live.balancer import balancer as balancer_module
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.latency import Latency
from evenly.live.balancer.lifecycle import Event
from evenly.live.discovery.answer import Answer
from evenly.live.discovery.by_hand import KEPT_S, ByHand
from evenly.live.discovery.discovery import Discovery
from evenly.live.discovery.followed import Followed
from evenly.live.discovery.lookups import Lookups
from evenly.live.discovery.own_ports import listens_at
from evenly.live.log import Log
from evenly.live.picker.discovered import discovery_parts, discovery_views
from evenly.live.pool_source import PoolSource, parse_pool_or_source
from evenly.live.settings import new_policy, read_settings
from tests.live.discovery.dns_server import DnsServer

WEB = "dns://web.test:80"
ONE, TWO, THREE = "10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"


def source(text: str) -> PoolSource:
    found = parse_pool_or_source(text)
    assert isinstance(found, PoolSource)
    return found


def web(*hosts: str) -> list[str]:
    return [f"web 1 IN A {host.partition(':')[0]}" for host in hosts]


class Scene:
    """A balancer whose pools follow a DNS server. Nothing waits for TTLs, and the clock is set by hand."""

    def __init__(
        self, server: DnsServer, *sources: str, policy: str = "threshold", slow_start: float = 0.0
    ) -> None:
        self.server = server
        self.now = 1000.0
        self.out = io.StringIO()
        settings = read_settings({"listen": "127.0.0.1:0", "pool": ["h:1"], "policy": policy}, None)
        self.balancer = Balancer(
            new_policy(settings),
            name=policy,
            choose=random.Random(1).choice,
            clock=lambda: self.now,
            slow_start=slow_start,
            report=lambda event: None,
        )
        self.discovery = Discovery(
            self.balancer,
            Log(self.out),
            clock=lambda: self.now,
            weighs=policy == "threshold",
            resolver=parse_address(server.address),
        )
        self.discovery.use(map(source, sources or (WEB,)), ())

    def look_up(self, *records: str) -> None:
        """Look all sources up once, with these records in the zone."""
        self.server.publish(*records)
        for followed in self.discovery.followed:
            answer = asyncio.run(Lookups(followed.source, parse_address(self.server.address)).answer())
            self.discovery.take(followed, answer)

    def states(self) -> dict[str, str]:
        """Return the states after health checks, which all pools pass."""
        for pool in self.balancer.pools:
            self.balancer.set_well(pool)
        return {str(pool.address): pool.state.value for pool in self.balancer.pools}

    def counts(self) -> dict[str, int]:
        return {str(pool.address): pool.sessions for pool in self.balancer.pools}

    def by_hand(self, address: str, event: Event) -> None:
        """Do what the admin port does."""
        pool = parse_address(address)
        match event:
            case Event.ADD:
                self.balancer.add(pool, pool)
            case Event.REMOVE:
                self.balancer.remove(pool)
            case Event.DRAIN:
                self.balancer.drain(pool)
            case _:
                self.balancer.undrain(pool)
        self.discovery.note(pool, event)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.getvalue().splitlines()]

    def logged(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.lines() if line["event"] == event]


def test_servers_come_leave_with_their_sessions_and_return_with_them(server: DnsServer) -> None:
    scene = Scene(server)
    scene.look_up(*web(ONE, TWO))
    assert {pool.source for pool in scene.balancer.pools} == {WEB}
    opened = [scene.balancer.open() for _ in range(6)]
    assert scene.counts() == {ONE: 3, TWO: 3}

    scene.look_up(*web(ONE, THREE))
    assert scene.states() == {ONE: "serving", TWO: "leaving", THREE: "serving"}
    assert scene.counts() == {ONE: 3, TWO: 3, THREE: 0}
    more = [scene.balancer.open() for _ in range(3)]
    assert {str(session.pool.address) for session in more if session and session.pool} == {THREE}

    scene.look_up(*web(ONE, TWO, THREE))
    assert scene.states() == {ONE: "serving", TWO: "serving", THREE: "serving"}
    assert scene.counts() == {ONE: 3, TWO: 3, THREE: 3}
    scene.look_up(*web(ONE, THREE))
    for session in opened:
        assert session is not None
        session.close()
    assert scene.counts() == {ONE: 0, THREE: 3}  # without sessions it is forgotten


def test_a_failing_resolver_and_an_empty_answer_change_nothing_and_are_said_once(server: DnsServer) -> None:
    scene = Scene(server)
    scene.look_up(*web(ONE, TWO))
    scene.now += 60
    scene.look_up()
    scene.look_up("web 1 IN TXT nothing")
    assert scene.states() == {ONE: "serving", TWO: "serving"}
    [line] = scene.logged("discovery failing")
    assert (line["source"], line["servers"], line["reason"]) == (WEB, 2, "DNS lists no servers under this name")
    [view] = discovery_views(scene.discovery)
    assert (view.servers, view.failures, view.problem) == (2, 2, line["reason"])
    [part] = discovery_parts(scene.discovery)
    assert (part.name, part.reachable, part.note) == (WEB, False, f"2 servers; {line['reason']}")
    text = "".join(balancer_metrics(scene.balancer, Latency(), discovery=[view]))
    assert f'evenly_discovery_failing{{source="{WEB}"}} 1.0' in text
    assert f'evenly_discovery_failures_total{{source="{WEB}"}} 2.0' in text
    assert f'evenly_discovery_servers{{source="{WEB}"}} 2.0' in text
    assert f'evenly_discovery_age_seconds{{source="{WEB}"}}' in text
    scene.look_up(*web(ONE, TWO))
    assert len(scene.logged("discovery works again")) == 1
    assert discovery_views(scene.discovery)[0].problem == ""


def test_a_name_that_never_resolved_has_no_pools_and_no_age(server: DnsServer) -> None:
    scene = Scene(server)
    scene.look_up()
    [view] = discovery_views(scene.discovery)
    assert (view.servers, view.age, scene.states()) == (0, None, {})
    assert "evenly_discovery_age_seconds{" not in "".join(
        balancer_metrics(scene.balancer, Latency(), discovery=[view])
    )


def test_what_the_operator_drains_or_removes_stays_so(server: DnsServer) -> None:
    """Also when DNS drops the server and lists it again, unless an hour passes meanwhile."""
    scene = Scene(server)
    scene.look_up(*web(ONE, TWO, THREE))
    scene.by_hand(ONE, Event.DRAIN)
    scene.by_hand(TWO, Event.REMOVE)
    both = {ONE: "draining", THREE: "serving"}
    for _ in range(3):
        scene.now += KEPT_S - 1
        scene.look_up(*web(ONE, TWO, THREE))
        assert scene.states() == both
    scene.look_up(*web(THREE))
    assert scene.states() == {THREE: "serving"}
    scene.now += KEPT_S - 100
    scene.look_up(*web(ONE, TWO, THREE))
    assert scene.states() == {THREE: "serving", ONE: "draining"}

    scene.by_hand(ONE, Event.UNDRAIN)
    scene.by_hand(TWO, Event.ADD)
    assert scene.balancer.pool(parse_address(TWO)).source == WEB  # DNS lists it, so it follows DNS again
    scene.look_up(*web(THREE))
    scene.look_up(*web(ONE, TWO, THREE))
    assert set(scene.states().values()) == {"serving"}

    scene.by_hand(TWO, Event.REMOVE)
    scene.look_up(*web(ONE))
    scene.now += KEPT_S
    scene.look_up(*web(ONE, TWO))
    assert scene.states()[TWO] == "serving"  # it may be another server by now


def test_a_pool_with_a_fixed_address_stays_whatever_dns_lists(server: DnsServer) -> None:
    scene = Scene(server)
    scene.balancer.add(Address("one", 80), parse_address(ONE))
    scene.look_up(*web(ONE, TWO))
    assert scene.states() == {"one:80": "serving", TWO: "serving"}
    scene.look_up(*web(TWO, THREE))
    assert scene.states()["one:80"] == "serving"

    scene.discovery.use([source(WEB)], [parse_address(TWO)])  # the settings file names it now
    scene.look_up(*web(THREE))
    assert scene.states() == {"one:80": "serving", TWO: "serving", THREE: "serving"}
    scene.balancer.remove(parse_address(TWO))  # and no longer does
    scene.discovery.use([source(WEB)], [])
    assert TWO not in scene.states()
    scene.look_up(*web(TWO, THREE))
    assert scene.balancer.pool(parse_address(TWO)).source == WEB


def test_a_server_that_two_names_list_is_one_pool(server: DnsServer) -> None:
    other = "srv://api.test"
    scene = Scene(server, WEB, other)
    api = ["api 1 IN SRV 0 1 80 one.test.", "one 1 IN A 10.0.0.1"]
    scene.look_up(*web(ONE, TWO), *api)
    assert scene.states() == {ONE: "serving", TWO: "serving"}
    scene.look_up(*web(TWO), *api)
    assert scene.balancer.pool(parse_address(ONE)).source == other
    assert scene.states() == {ONE: "serving", TWO: "serving"}
    scene.discovery.use([source(WEB)], [])
    assert scene.states() == {TWO: "serving"}


def test_srv_weights_are_followed_but_not_against_the_operator(server: DnsServer) -> None:
    def zone(one: int, two: int) -> list[str]:
        return [f"api 1 IN SRV 0 {one} 80 a.test.", f"api 1 IN SRV 0 {two} 81 a.test.", "a 1 IN A 10.0.0.1"]

    def weights(of: Scene) -> list[float]:
        return [pool.weight for pool in of.balancer.pools]

    scene = Scene(server, "srv://api.test")
    scene.look_up(*zone(10, 10))
    assert weights(scene) == [1.0, 1.0]
    scene.look_up(*zone(10, 1))
    assert weights(scene) == [1.0, 0.1]
    scene.balancer.set_weights({Address("10.0.0.1", 81): 3.0})
    scene.look_up(*zone(10, 1))
    assert weights(scene) == [1.0, 3.0]
    scene.look_up(*zone(10, 5))
    assert weights(scene) == [1.0, 0.5]
    scene.discovery.use([source("srv://api.test=2")], [])
    assert weights(scene) == [1.0, 0.5]  # until the next lookup, and nothing is removed meanwhile
    scene.look_up(*zone(10, 5))
    assert weights(scene) == [2.0, 1.0]

    blind = Scene(server, "srv://api.test", policy="jsq")
    blind.look_up(*zone(10, 1))
    assert weights(blind) == [1.0, 1.0]


def test_answers_with_our_own_address_are_refused(server: DnsServer) -> None:
    scene = Scene(server)
    scene.discovery.own = [Address("0.0.0.0", 80)]
    for _ in range(2):
        scene.look_up(*web("127.0.0.1", TWO))
    assert scene.states() == {TWO: "serving"}
    [line] = scene.logged("servers refused")
    assert line["servers"] == ["127.0.0.1:80"]
    scene.look_up(*web("127.0.0.1"))
    assert scene.states() == {TWO: "serving"}
    assert scene.logged("discovery failing")[-1]["reason"] == "DNS lists only this balancer itself"


def test_which_addresses_are_our_own() -> None:
    mine = Address("127.0.0.1", 80)
    for own in (mine, Address("0.0.0.0", 80), Address("::", 80)):
        assert listens_at(mine, [own])
    assert not listens_at(mine, [Address("127.0.0.1", 81), Address("127.0.0.2", 80)])
    assert not listens_at(Address("192.0.2.1", 80), [Address("0.0.0.0", 80)])  # of no machine


def test_more_servers_than_pools_can_be(server: DnsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(balancer_module, "MAX_POOLS", 2)
    scene = Scene(server)
    for _ in range(2):
        scene.look_up(*web(ONE, TWO, THREE))
    assert scene.states() == {ONE: "serving", TWO: "serving"}
    [line] = scene.logged("pool not added")
    assert (line["pool"], line["reason"]) == (THREE, "There can be at most 2 pools.")
    scene.look_up(*web(TWO, THREE))
    assert scene.states() == {TWO: "serving", THREE: "serving"}


def test_slow_start_for_servers_that_come_later(server: DnsServer) -> None:
    scene = Scene(server, slow_start=10.0)
    scene.look_up(*web(ONE))
    assert scene.states() == {ONE: "serving"}
    asyncio.run(scene.discovery.wait_asked(60.0))
    scene.look_up(*web(ONE, TWO))
    assert scene.states() == {ONE: "serving", TWO: "warming"}


def test_names_are_looked_up_again_when_the_ttl_ends(server: DnsServer) -> None:
    """With the loop that the picker runs, and a source that is added while it runs."""

    async def run() -> None:
        scene = Scene(server)
        server.publish(*web(*(f"10.0.{number // 250}.{number % 250 + 1}" for number in range(600))))
        loop = asyncio.create_task(scene.discovery.run())
        try:
            async with asyncio.timeout(60):
                await scene.discovery.wait_asked(60)
                while len(scene.states()) < 600:  # they are added in several turns
                    await asyncio.sleep(0.01)
                server.publish(*web(ONE, TWO), "api 0 IN SRV 0 1 81 web.test.")
                while set(scene.states()) != {ONE, TWO}:
                    await asyncio.sleep(0.01)
                scene.discovery.use([source("srv://api.test")], [])
                while set(scene.states()) != {"10.0.0.1:81", "10.0.0.2:81"}:
                    await asyncio.sleep(0.01)
        finally:
            loop.cancel()

    asyncio.run(run())


def test_when_to_look_up_again() -> None:
    """By TTL, from 1 s to 30 s; after failures with longer and longer pauses. Chance adds up to a tenth."""
    followed = Followed(source=source(WEB))
    good = Answer(servers={parse_address(ONE): 1.0})
    followed.take(good, 0.0)
    assert [followed.pause(ttl, 0.0) for ttl in (0, 0.5, 7, 600)] == [1.0, 1.0, 7.0, 30.0]
    assert followed.pause(10, 1.0) == 11.0
    pauses = []
    for _ in range(8):
        followed.take(Answer(problem="no"), 0.0)
        pauses.append(followed.pause(7, 0.0))
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]
    followed.take(good, 0.0)
    assert followed.pause(7, 0.0) == 7.0


def test_decisions_by_hand_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenly.live.discovery.by_hand.MAX_POOLS", 2)
    by_hand = ByHand(lambda: 0.0)
    for number in range(4):
        by_hand.note(Address("10.0.0.1", number), Event.REMOVE)
    assert [address.port for address in by_hand.holds] == [2, 3]
