"""A real gateway whose servers a real DNS server lists, with open WebSocket sessions."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.live.clients import sessions
from tests.live.discovery.dns_server import DnsServer
from tests.live.processes import ask, eventually
from tests.live.rig import Gateway, PoolProcess
from tests.live.test_gateway import children, events

SOURCE = "srv://_ws._tcp.web.test"


def zone(*servers: PoolProcess | Gateway) -> list[str]:
    listed = [f"_ws._tcp.web 0 IN SRV 0 1 {server.port} a.test." for server in servers]
    return [*listed, "a 0 IN A 127.0.0.1"]


def settled(gateway: Gateway, servers: list[PoolProcess], states: dict[str, str]) -> dict[str, int]:
    """Wait until the pools have these states, and as many sessions as they count themselves. Return the counts."""

    def seen() -> tuple[dict[str, str], dict[str, int], dict[str, int]]:
        pools = gateway.state()["pools"]
        counts = {pool["address"]: pool["sessions"] for pool in pools}
        truth = {pool.address: pool.sessions for pool in servers if pool.address in counts}
        return {pool["address"]: pool["state"] for pool in pools}, counts, truth

    return eventually(seen, lambda now: now[0] == states and now[1] == now[2])[1]


def discovery_of(gateway: Gateway) -> dict[str, Any]:
    [found] = gateway.state()["discovery"]
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def servers() -> Iterator[list[PoolProcess]]:
    with ExitStack() as stack:
        started = [stack.enter_context(PoolProcess()) for _ in range(3)]
        for pool in started:
            pool.wait()
        yield started


@pytest.mark.full
def test_sessions_stay_counted_while_dns_changes_fails_and_the_picker_dies(
    tmp_path: Path, servers: list[PoolProcess]
) -> None:
    one, two, three = (pool.address for pool in servers)
    dns = DnsServer(tmp_path)
    with ExitStack() as stack:
        stack.push(dns)  # it is started later
        options = ("--pool", SOURCE, "--resolver", dns.address, "--policy", "jsq", "--slow-start", "0")
        gateway = stack.enter_context(Gateway(*options))
        gateway.wait()  # though no DNS server answers
        eventually(lambda: discovery_of(gateway)["problem"], bool)
        assert discovery_of(gateway)["age"] is None
        assert ask(gateway.port, "/")[0] == 503
        assert ask(gateway.admin, "/readyz")[0] == 503

        dns.write(zone(*servers[:2], gateway))
        dns.start()
        settled(gateway, servers, {one: "serving", two: "serving"})
        assert {pool["source"] for pool in gateway.state()["pools"]} == {SOURCE}
        eventually(lambda: ask(gateway.port, "/health")[0], lambda status: status == 200)
        opened = stack.enter_context(sessions(gateway.port, 6))
        before = settled(gateway, servers, {one: "serving", two: "serving"})

        dns.publish(*zone(servers[1], servers[2]))
        changed = {one: "leaving", two: "serving", three: "serving"}
        assert settled(gateway, servers, changed) == {**before, three: 0}
        eventually(lambda: gateway.state()["envoys"], lambda envoys: not envoys[0]["unknown_pools"])
        more = stack.enter_context(sessions(gateway.port, 3))
        assert one not in {session.pool for session in more}

        dns.publish(*zone(*servers))
        level = settled(gateway, servers, dict.fromkeys((one, two, three), "serving"))
        assert level[one] == before[one]

        assert ask(gateway.admin, f"/pools/{two}", "DELETE")[0] == 200
        assert ask(gateway.admin, f"/pools/{three}/drain", "POST")[0] == 200
        dns.kill()
        eventually(lambda: discovery_of(gateway)["problem"], bool)
        by_hand = {one: "serving", two: "leaving", three: "draining"}
        assert settled(gateway, servers, by_hand) == level

        os.kill(children(gateway.pid)["picker"], signal.SIGKILL)
        eventually(lambda: [line["event"] for line in events(gateway)], lambda seen: "picker is back" in seen)
        assert settled(gateway, servers, by_hand) == level
        dns.start()
        eventually(lambda: discovery_of(gateway)["age"], lambda age: age is not None)
        last = stack.enter_context(sessions(gateway.port, 2))
        assert {session.pool for session in last} == {one}
        assert settled(gateway, servers, by_hand) == {**level, one: level[one] + 2}  # though DNS lists all three
        for session in (*opened, *more, *last):
            session.echo()
        said = {line["event"]: line for line in events(gateway)}
        assert {"discovery failing", "discovery works again", "servers found"} <= said.keys()
        assert said["servers refused"]["servers"] == [f"127.0.0.1:{gateway.port}"]
