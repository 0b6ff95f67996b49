"""Sessions that a picker did not place, found through the admin ports of Envoys."""

from __future__ import annotations

import asyncio
import json
import random
import time
from typing import Any

import pytest

from evenly.core import RandomRouting
from evenly.errors import InputError
from evenly.live.addresses import Address
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.lifecycle import State
from evenly.live.balancer.pool import LivePool
from evenly.live.balancer.session import Session
from evenly.live.envoy.admin_address import parse_announcement
from evenly.live.envoy.admin_client import BadResponseError, Host, parse_hosts
from evenly.live.envoy.fleet import MAX_ENVOYS, EnvoyFleet
from evenly.live.envoy.reconcile import EnvoyCounts
from evenly.live.log import Log
from evenly.live.wire.streams import Stream
from tests.live.processes import PATIENCE, free_port

ADMIN = Address("127.0.0.1", 9901)


def make_balancer(*ports: int) -> Balancer:
    made = Balancer(
        RandomRouting(),
        name="random",
        choose=random.Random(1).choice,
        clock=lambda: 0.0,
        slow_start=0.0,
        report=lambda event: None,
    )
    for port in ports:
        made.add(Address("127.0.0.1", port), Address("127.0.0.1", port))
    return made


def pool(port: int) -> LivePool:
    return make_balancer(port).pools[0]


def open_session(balancer: Balancer, envoy: EnvoyCounts) -> Session:
    session = balancer.open(via=envoy)
    assert session is not None
    return session


def answers(envoy: EnvoyCounts, where: LivePool, *actives: int) -> list[int]:
    """Return the unpicked sessions after each of these answers, with no other changes in between."""
    found = []
    for active in actives:
        envoy.compare(envoy.snapshot(), {where.endpoint: Host(active, failing=False)}, [where], 0.0)
        found.append(envoy.unpicked[where])
    return found


def test_later_answers_move_the_count_when_three_agree() -> None:
    envoy, where = EnvoyCounts(ADMIN), pool(1)
    assert answers(envoy, where, 0, 2, 2, 2, 2) == [0, 0, 0, 2, 2]
    assert answers(envoy, where, 1, 2, 1, 1, 2, 1, 1, 1) == [2] * 7 + [1]


def test_of_answers_that_differ_the_nearest_counts() -> None:
    envoy, where = EnvoyCounts(ADMIN), pool(1)
    assert answers(envoy, where, 0, 5, 2, 3) == [0, 0, 0, 2]


def test_fewer_open_sessions_than_picked_are_not_a_debt() -> None:
    """A session that was picked a moment ago is not open at the pool yet."""
    envoy, balancer = EnvoyCounts(ADMIN), make_balancer(1)
    [where] = balancer.pools
    for _ in range(3):
        open_session(balancer, envoy)
    assert answers(envoy, where, 1, 1, 1, 3, 3) == [0] * 5


def test_reported_sessions_are_not_counted_twice() -> None:
    envoy, balancer = EnvoyCounts(ADMIN), make_balancer(1)
    [where] = balancer.pools
    opened = [open_session(balancer, envoy) for _ in range(3)]
    assert answers(envoy, where, 5, 5) == [2, 2]
    assert (envoy.picked, envoy.sessions) == (3, 5)
    for session in opened:
        session.close()
    assert answers(envoy, where, 2, 2) == [2, 2]
    assert envoy.sessions == 2


@pytest.mark.parametrize("hidden", [0, 5])
def test_any_coming_and_going_while_a_question_travels_leaves_the_count_alone(hidden: int) -> None:
    """Sessions start and end before, at and after the moment at which Envoy looks; the hidden ones stay."""
    generator = random.Random(hidden)
    envoy, balancer = EnvoyCounts(ADMIN), make_balancer(1)
    [where] = balancer.pools
    assert answers(envoy, where, hidden) == [hidden]
    opened: list[Session] = []

    def bustle() -> None:
        for _ in range(generator.randrange(6)):
            if opened and generator.random() < 0.5:
                opened.pop().close()
            else:
                opened.append(open_session(balancer, envoy))

    for _ in range(2000):
        before = envoy.snapshot()
        bustle()
        seen = {where.endpoint: Host(len(opened) + hidden, failing=False)}
        bustle()
        envoy.compare(before, seen, [where], 0.0)
        assert envoy.unpicked[where] == hidden


def test_sessions_that_do_not_reach_their_pool_are_released_after_all_retries() -> None:
    """Envoy tried another pool, and neither has answered: there they are unpicked, here they are not counted."""
    envoy, balancer = EnvoyCounts(ADMIN), make_balancer(1)
    [where], other = balancer.pools, pool(2)
    sessions = [open_session(balancer, envoy) for _ in range(5)]
    for tenth in range(45):
        seen = {where.endpoint: Host(3, failing=False), other.endpoint: Host(2, failing=False)}
        envoy.compare(envoy.snapshot(), seen, [where, other], tenth / 10)
        away = [session for session in sessions if session.pool is None]
        assert away == ([] if tenth <= 40 else sessions[:2])  # the oldest
    assert (envoy.unpicked[where], envoy.unpicked[other], envoy.sessions) == (0, 2, 5)
    assert (where.sessions, envoy.picked) == (3, 3)
    sessions[0].served_by(where.endpoint)  # it was there after all
    assert (where.sessions, envoy.picked, sessions[0].pool) == (4, 4, where)


def test_confirmed_sessions_are_not_released() -> None:
    """They have been answered by the pool, so they are there, whatever the admin port shows."""
    envoy, balancer = EnvoyCounts(ADMIN), make_balancer(1)
    [where] = balancer.pools
    sessions = [open_session(balancer, envoy) for _ in range(3)]
    for session in sessions[:2]:
        session.served_by(where.endpoint)
    for tenth in range(60):
        envoy.compare(envoy.snapshot(), {where.endpoint: Host(0, failing=False)}, [where], tenth / 10)
    assert [session.pool for session in sessions] == [where, where, None]


def test_sessions_on_their_way_are_not_released() -> None:
    """There is always one session on its way, but never the same one."""
    envoy, balancer = EnvoyCounts(ADMIN), make_balancer(1)
    [where] = balancer.pools
    sessions = []
    for tenth in range(100):
        sessions.append(open_session(balancer, envoy))
        on_the_way = tenth % 10 != 9
        seen = {where.endpoint: Host(len(sessions) - on_the_way, failing=False)}
        envoy.compare(envoy.snapshot(), seen, [where], tenth / 10)
    assert all(session.pool is where for session in sessions)


def test_an_envoy_that_is_gone_takes_its_hidden_sessions_along() -> None:
    envoy, balancer = EnvoyCounts(ADMIN), make_balancer(1)
    [where] = balancer.pools
    open_session(balancer, envoy)
    answers(envoy, where, 4)
    envoy.lost()
    assert (envoy.unpicked[where], envoy.sessions, envoy.hosts) == (0, 1, None)
    assert answers(envoy, where, 6) == [5]


def verdicts(envoy: EnvoyCounts, where: LivePool, *reports: tuple[float, bool]) -> list[bool | None]:
    found = []
    for now, failing in reports:
        envoy.compare(envoy.snapshot(), {where.endpoint: Host(0, failing=failing)}, [where], now)
        found.append(envoy.fails(where.endpoint, now))
    return found


def test_health_checks_of_an_envoy_that_starts_count_only_after_a_while() -> None:
    """It calls every pool failing until then. A pool dead from the start is known soon enough."""
    envoy, where = EnvoyCounts(ADMIN), pool(1)
    assert verdicts(envoy, where, (0.0, True), (0.9, True), (1.1, True)) == [None, None, True]
    assert verdicts(envoy, where, (1.2, False), (1.3, True)) == [False, True]
    envoy.refused()
    assert verdicts(envoy, where, (1.4, True), (1.5, False)) == [None, False]
    envoy.lost()
    assert envoy.fails(where.endpoint, 2.0) is None
    assert verdicts(envoy, where, (3.0, True), (3.5, True), (4.5, True)) == [None, None, True]


def test_an_admin_port_by_number_is_admin_address() -> None:
    for announced, peer in [
        ("127.0.0.1:9901", "127.0.0.1"),
        ("[::1]:9901", "::ffff:127.0.0.1"),
        ("10.0.0.7:9901", "10.0.0.7"),
        ("10.0.0.7:9901", "127.0.0.1"),
    ]:
        assert str(parse_announcement(announced, peer, None)) == announced


def test_from_another_machine_neither_loopback_nor_names_are_admin_address() -> None:
    for announced in [
        *(
            "127.0.0.1:9901",
            "127.8.8.8:1",
            "[::1]:9901",
            "[::ffff:127.0.0.1]:9901",
        ),  # of this machine, from another
        *("localhost:9901", "LOCALHOST:1", "127.1:9901", "2130706433:9901", "a..b:80", "envoy.example:9901"),
        *("0.0.0.0:9901", "[::]:9901", "10.0.0.7:0", "nonsense", ""),
    ]:
        with pytest.raises(InputError):
            parse_announcement(announced, "10.0.0.7", None)


class Clock:
    """A clock that the test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Local:
    """A connection from this machine."""

    last_received = 0.0
    peer = "127.0.0.1"

    def enqueue(self, stream: Stream, item: bytes | int) -> None:
        raise NotImplementedError

    def flush(self) -> None:
        raise NotImplementedError


async def polled_while_a_pool_goes() -> list[int]:
    """Return the number of pools after each answer. A pool with two unpicked sessions is removed, and they end."""
    balancer = make_balancer(1, 2)
    envoys = EnvoyFleet(balancer, Log(None), Clock())
    envoy = envoys.register(f"127.0.0.1:{free_port()}".encode(), Local())
    assert envoy is not None
    [leaving, staying] = balancer.pools
    found = []
    for active in (2, 0, 0, 0):
        hosts = {leaving.endpoint: Host(active, failing=not active), staying.endpoint: Host(0, failing=False)}
        envoys._take_in(envoy, envoy.snapshot(), hosts)
        if active:
            balancer.remove(leaving.address)
        found.append(len(balancer.pools))
    await envoys.close()
    return found


def test_a_pool_that_goes_with_an_answer_is_not_judged_by_it() -> None:
    assert asyncio.run(polled_while_a_pool_goes()) == [2, 2, 2, 1]


async def waits_for_checks() -> list[bool]:
    """Return whether the wait is over: without Envoys, before a check, after one, and when the time is up."""
    clock, balancer = Clock(), make_balancer(1, 2)
    envoys, envoy = EnvoyFleet(balancer, Log(None), clock), EnvoyCounts(ADMIN)
    checked, slow = balancer.pools
    await envoys.wait_checked(checked)
    found = [checked.state is State.CHECKING]
    envoys._known[b"an Envoy"] = envoy  # which no task polls
    envoys._take_in(envoy, envoy.snapshot(), {})
    waits = [asyncio.create_task(envoys.wait_checked(pool)) for pool in (checked, slow)]
    await asyncio.sleep(0.1)
    found.append(any(wait.done() for wait in waits))
    for clock.now in (0.1, 0.9):
        envoys._take_in(envoy, envoy.snapshot(), {checked.endpoint: Host(0, failing=False)})
    await asyncio.wait_for(waits[0], PATIENCE)
    found += [checked.state is State.SERVING, waits[1].done()]
    clock.now = 2.1
    await asyncio.wait_for(waits[1], PATIENCE)
    return [*found, slow.state is State.CHECKING]


def test_a_new_pool_is_waited_for_until_its_first_checks_or_two_seconds() -> None:
    assert asyncio.run(waits_for_checks()) == [True, False, True, False, True]


async def crowd(clock: Clock) -> None:
    log = Log(None)
    envoys = EnvoyFleet(make_balancer(), log, clock)
    *announced, one_more = [f"127.0.0.1:{free_port()}".encode() for _ in range(MAX_ENVOYS + 1)]
    for admin in announced:
        assert envoys.register(admin, Local()) is not None
    assert envoys.register(one_more, Local()) is None
    assert log.recent[-1][2:] == ("no more envoys", {"most": MAX_ENVOYS})
    deadline = time.monotonic() + PATIENCE
    while envoys.register(one_more, Local()) is None:
        assert time.monotonic() < deadline
        clock.now += 11.0  # an Envoy that did not answer since then is forgotten
        await asyncio.sleep(0.01)
    await envoys.close()


def test_the_number_of_envoys_is_limited_until_those_that_never_answer_are_forgotten() -> None:
    asyncio.run(crowd(Clock()))


def clusters(*hosts: dict[str, Any], name: str = "pools") -> bytes:
    return json.dumps({"cluster_statuses": [{"name": "picker"}, {"name": name, "host_statuses": hosts}]}).encode()


def host(port: object = 9001, stats: object = (), **health: object) -> dict[str, Any]:
    where = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
    return {"address": where, "stats": stats, "health_status": health}


def test_hosts_are_read_from_envoys_answer() -> None:
    busy = host(9001, [{"name": "cx_active", "value": "9"}, {"name": "rq_active", "type": "GAUGE", "value": "3"}])
    idle = host(9002, [{"name": "rq_active", "type": "GAUGE"}], failed_active_health_check=True)
    assert parse_hosts(clusters(busy, idle)) == {
        Address("127.0.0.1", 9001): Host(3, failing=False),
        Address("127.0.0.1", 9002): Host(0, failing=True, why="health check failed"),
    }
    slow = host(9001, failed_active_health_check=True, active_hc_timeout=True)
    assert parse_hosts(clusters(slow)) == {Address("127.0.0.1", 9001): Host(0, True, "health check timed out")}
    ejected = host(9001, failed_outlier_check=True)
    assert parse_hosts(clusters(ejected)) == {Address("127.0.0.1", 9001): Host(0, True, "ejected as an outlier")}
    assert parse_hosts(clusters(busy, name="other")) == {}
    assert parse_hosts(b"{}") == {}


def test_a_pool_must_be_in_both_clusters_if_there_are_two() -> None:
    """Safe methods use the one, all others the other. An Envoy of others may have one."""

    def parsed(once: list[dict[str, Any]]) -> Host:
        both = [{"name": "pools", "host_statuses": [host(9001)]}, {"name": "pools-once", "host_statuses": once}]
        return parse_hosts(json.dumps({"cluster_statuses": both}).encode())[Address("127.0.0.1", 9001)]

    active = [{"name": "rq_active", "value": "2"}]
    assert parsed([host(9001, active)]) == Host(2, False)
    assert parsed([host(9001, active, failed_active_health_check=True)]) == Host(2, True, "health check failed")
    assert parsed([host(9002)]) == parsed([]) == Host(0, True, "Envoy does not have it yet")


def test_a_pool_is_reached_when_the_workers_of_its_envoy_know_it() -> None:
    envoy, where = EnvoyCounts(ADMIN), pool(1)
    reached = []
    for now, failing in ((0.0, True), (0.1, False), (0.15, False), (0.25, False), (0.3, True), (0.4, False)):
        verdicts(envoy, where, (now, failing))
        reached.append(envoy.reaches(where.endpoint, now))
    assert reached == [False, False, False, True, False, False]


def test_answers_that_are_no_answers_are_refused() -> None:
    for answer in [
        b"",
        b"[]",
        b"<html>",
        b'{"cluster_statuses": [{}]}',
        clusters({}),
        clusters(host("x")),
        clusters(host(70000)),
        clusters(host(1, [{"name": "rq_active", "value": "many"}])),
        clusters(host(1, [{"name": "rq_active", "value": "-1"}])),
        clusters(host(1, [{"name": "rq_active", "value": "99999999999"}])),
    ]:
        with pytest.raises(BadResponseError):
            parse_hosts(answer)
