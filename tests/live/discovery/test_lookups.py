"""Lookups against a real DNS server: addresses, SRV records, sizes, and everything that goes wrong."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from evenly.live.addresses import Address, parse_address
from evenly.live.discovery.answer import Answer
from evenly.live.discovery.lookups import Lookups
from evenly.live.pool_source import PoolSource, parse_pool_or_source
from tests.live.discovery.dns_server import DnsServer


def source(text: str) -> PoolSource:
    found = parse_pool_or_source(text)
    assert isinstance(found, PoolSource)
    return found


def lookups(text: str, server: DnsServer) -> Lookups:
    return Lookups(source(text), parse_address(server.address))


def look_up(text: str, server: DnsServer) -> Answer:
    return asyncio.run(lookups(text, server).answer())


def servers(*texts: str, weight: float = 1.0) -> dict[Address, float]:
    return {parse_address(text): weight for text in texts}


def test_all_a_and_aaaa_records_and_the_smaller_ttl(server: DnsServer) -> None:
    server.publish("web 7 IN A 10.0.0.2", "web 7 IN A 10.0.0.1", "web 5 IN AAAA fd00::1")
    answer = look_up("dns://WEB.test.:80=4", server)
    assert answer == Answer(servers=servers("10.0.0.1:80", "10.0.0.2:80", "[fd00::1]:80", weight=4.0), ttl=5.0)


def test_an_alias_with_a_shorter_ttl(server: DnsServer) -> None:
    server.publish("www 3 IN CNAME web.test.", "web 60 IN A 10.0.0.1")
    assert look_up("dns://www.test:80", server) == Answer(servers=servers("10.0.0.1:80"), ttl=3.0)


def test_addresses_that_no_server_can_have_are_left_out(server: DnsServer) -> None:
    bad = ("0.0.0.0", "224.0.0.1", "255.255.255.255", "240.0.0.1")
    server.publish(
        *(f"web 1 IN A {host}" for host in bad),
        *(f"web 1 IN AAAA {host}" for host in ("::", "ff02::1", "fe80::1", "::ffff:10.0.0.7")),
    )
    assert look_up("dns://web.test:80", server).servers == servers("10.0.0.7:80")


def test_srv_records_of_the_lowest_priority_with_their_ports(server: DnsServer) -> None:
    """Weights are relative to the largest. A target with IPv4 and IPv6 is one server."""
    server.publish(
        "_ws._tcp.web 9 IN SRV 1 10 8001 a.test.",
        "_ws._tcp.web 9 IN SRV 1 5 8002 b.test.",
        "_ws._tcp.web 9 IN SRV 1 0 8003 a.test.",
        "_ws._tcp.web 9 IN SRV 2 10 8004 c.test.",
        "a 8 IN A 10.0.0.1",
        "a 8 IN AAAA fd00::1",
        "b 4 IN AAAA fd00::2",
        "c 1 IN A 10.0.0.3",
    )
    answer = look_up("srv://_ws._tcp.web.test=2", server)
    expected = {"10.0.0.1:8001": 2.0, "[fd00::2]:8002": 1.0, "10.0.0.1:8003": 0.1}
    assert answer.servers == {parse_address(text): weight for text, weight in expected.items()}
    assert (answer.ttl, answer.problem) == (4.0, "")


def test_equal_srv_weights_count_as_one(server: DnsServer) -> None:
    """CoreDNS divides 100 by the number of servers: the weight must not change when their number does."""
    for weight in (33, 0, 1):
        server.publish(
            f"web 1 IN SRV 0 {weight} 80 a.test.", f"web 1 IN SRV 0 {weight} 81 a.test.", "a 1 IN A 10.0.0.1"
        )
        assert look_up("srv://web.test", server).servers == servers("10.0.0.1:80", "10.0.0.1:81")


def test_srv_targets_that_do_not_exist_are_left_out(server: DnsServer) -> None:
    server.publish("web 1 IN SRV 0 1 80 a.test.", "web 1 IN SRV 0 1 80 no.test.", "a 1 IN A 10.0.0.1")
    assert look_up("srv://web.test", server).servers == servers("10.0.0.1:80")
    server.publish("web 1 IN SRV 0 0 0 .")  # no such service
    assert look_up("srv://web.test", server).problem


def test_no_name_and_no_records_are_a_problem_not_an_answer(server: DnsServer) -> None:
    for text in ["dns://web.test:80", "srv://web.test"]:
        for records in ((), ("web 1 IN TXT nothing",)):
            server.publish(*records)
            answer = look_up(text, server)
            assert not answer.servers
            assert answer.problem == "DNS lists no servers under this name"


def test_names_of_other_zones_and_a_dead_server_are_a_problem(server: DnsServer) -> None:
    assert look_up("dns://web.elsewhere:80", server).problem
    server.kill()
    try:
        answer = look_up("dns://web.test:80", server)
    finally:
        server.start()
    assert not answer.servers
    assert server.address.replace(":", "@") in answer.problem


def test_a_server_that_hangs_is_a_problem_and_the_last_records_stay(server: DnsServer) -> None:
    server.publish("web 1 IN A 10.0.0.1", "web 1 IN AAAA fd00::1")

    async def both() -> tuple[Answer, Answer]:
        followed = lookups("dns://web.test:80", server)
        first = await followed.answer()
        server.send(signal.SIGSTOP)
        try:
            return first, await followed.answer()
        finally:
            server.send(signal.SIGCONT)

    first, second = asyncio.run(both())
    assert (first.problem, second.problem) == ("", "no DNS server answered within 3 s")
    assert second.servers == first.servers == servers("10.0.0.1:80", "[fd00::1]:80")


def test_udp_is_used_where_tcp_never_worked(tmp_path: Path) -> None:
    """Also: addresses that come with SRV records are used."""
    with DnsServer(tmp_path, tcp=False, minimal=False) as server:
        server.publish("web 5 IN A 10.0.0.1", "api 9 IN SRV 0 0 81 web.test.")
        assert look_up("dns://web.test:80", server) == Answer(servers=servers("10.0.0.1:80"), ttl=5.0)
        found = lookups("srv://api.test", server)
        assert asyncio.run(found.answer()) == Answer(servers=servers("10.0.0.1:81"), ttl=5.0)
        assert {kind for _, kind in found._last} == {"SRV"}  # no other lookup


def test_udp_is_not_used_once_tcp_has_worked(tmp_path: Path) -> None:
    """Over UDP, some servers may be missing from the answer."""
    (tmp_path / "udp").mkdir()
    with DnsServer(tmp_path) as server:
        server.publish("web 5 IN A 10.0.0.1")
        found = lookups("dns://web.test:80", server)
        assert not asyncio.run(found.answer()).problem
    with DnsServer(tmp_path / "udp", tcp=False, port=server.port) as server:
        server.publish("web 5 IN A 10.0.0.2")
        answer = asyncio.run(found.answer())
    assert answer.servers == servers("10.0.0.1:80")
    assert "Connect call failed" in answer.problem


def test_search_domains_of_resolv_conf(server: DnsServer, tmp_path: Path) -> None:
    """As in Kubernetes: a name with fewer dots than ndots is tried with the search domains first."""
    server.publish("web.shop.svc 1 IN A 10.0.0.1")
    config = tmp_path / "resolv.conf"
    config.write_text("search other.svc.test svc.test\nnameserver 127.0.0.1\noptions ndots:5\n")

    async def answer(text: str) -> Answer:
        found = Lookups(source(text), None, config=str(config))
        resolver = found._resolver()
        resolver.port = server.port
        resolver.nameservers = ["127.0.0.1"]
        return await found._addresses(resolver)

    assert asyncio.run(answer("dns://web.shop:80")).servers == servers("10.0.0.1:80")
    assert asyncio.run(answer("dns://web.shop.:80")).problem


def test_a_machine_without_dns_servers(tmp_path: Path) -> None:
    for text in ["", "search test\n"]:
        config = tmp_path / "resolv.conf"
        config.write_text(text)
        answer = asyncio.run(Lookups(source("dns://web.test:80"), None, config=str(config)).answer())
        assert answer.problem
