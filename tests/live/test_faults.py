"""Counts under faults: whatever dies, stalls or refuses, the picker's counts end up equal to the pools' own."""

from __future__ import annotations

import re
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.live.clients import Session, Traffic, sessions
from tests.live.processes import PATIENCE, ask, eventually
from tests.live.rig import rig

CLIENTS = 4
_WHOLE_ANSWER = re.compile(rb"HTTP/1.1 200 .*\r\n\r\n127\.0\.0\.1:\d{5}", re.DOTALL)


def traffic_flows(traffic: Traffic, more: int = 50) -> None:
    """Wait for `more` sessions to succeed."""
    before = traffic.succeeded
    eventually(lambda: traffic.succeeded, lambda count: count >= before + more)


@pytest.mark.long
def test_the_picker_is_killed_under_load() -> None:
    """Sessions continue and new ones begin. After the restart all are counted, picked or not."""
    with rig(3) as live, sessions(live.port, 30) as before, Traffic(live.port) as traffic:
        traffic_flows(traffic)
        dying = time.monotonic()
        live.picker.kill()
        dead = time.monotonic()
        traffic_flows(traffic)
        with sessions(live.port, 10) as meanwhile:
            live.picker.start()
            live.picker.wait()
            traffic.stop()
            live.settled(40)
            assert live.picker.state()["unpicked_sessions"] >= 40
            for session in before + meanwhile:
                session.echo()
        live.settled(30)
    assert traffic.failures_apart_from(dying, dead) == []


@pytest.mark.full
def test_the_picker_freezes() -> None:
    """Sessions begin without it, and it catches up when it continues."""
    with rig(3, patient=False) as live, sessions(live.port, 9), Traffic(live.port) as traffic:
        traffic_flows(traffic)
        live.picker.send(signal.SIGSTOP)
        try:
            traffic_flows(traffic)
            with sessions(live.port, 6) as meanwhile:
                live.picker.send(signal.SIGCONT)
                traffic_flows(traffic)
                traffic.stop()
                live.settled(15)
                for session in meanwhile:
                    session.echo()
        finally:
            live.picker.send(signal.SIGCONT)
        live.settled(9)
    assert traffic.failures == []


@pytest.mark.long
def test_an_envoy_is_killed() -> None:
    """Its sessions end and are no longer counted. Sessions of the other Envoy are not affected."""
    with rig(3, envoys=2) as live:
        one, other = live.envoys
        with sessions(one.port, 20), sessions(other.port, 16) as kept, Traffic(other.port) as traffic:
            traffic_flows(traffic)
            one.kill()
            traffic_flows(traffic)
            traffic.stop()
            live.settled(16)
            for session in kept:
                session.echo()
            one.start()
            one.wait()
            with sessions(one.port, 5):
                live.settled(21)
            live.settled(16)
        assert live.unpicked() == 0
    assert traffic.failures == []


@pytest.mark.full
def test_an_envoy_that_starts_does_not_mark_pools_as_failing() -> None:
    """Envoy reports pools as failing until its first check of them is answered."""
    with rig(5) as live:
        for _ in range(10):
            live.envoys[0].kill()
            live.envoys[0].start()
            live.envoys[0].wait()
        eventually(live.picker.state, lambda state: [envoy["reachable"] for envoy in state["envoys"]] == [True])
        assert '"pool failing"' not in live.picker.output()
        assert set(live.states().values()) == {"serving"}


@pytest.mark.full
def test_the_picker_and_an_envoy_are_killed() -> None:
    """Sessions that a new picker knows only from an Envoy's admin port are forgotten with that Envoy."""
    with rig(3, envoys=2) as live:
        one, other = live.envoys
        with sessions(one.port, 20), sessions(other.port, 16):
            live.picker.kill()
            live.picker.start()
            live.picker.wait()
            live.settled(36)
            one.kill()
            live.settled(16)
        live.settled(0)


@pytest.mark.full
def test_a_picker_sees_all_envoys_as_one() -> None:
    """Sessions through any Envoy are spread as if there were one."""
    with rig(5, "--policy", "jsq", envoys=2) as live, sessions(live.envoys[0].port, 13):
        for _ in range(12):
            live.settled(13)
            with sessions(live.envoys[1].port, 1), sessions(live.envoys[0].port, 1):
                counts = live.settled(15)
                assert set(counts.values()) == {3}


@pytest.mark.long
def test_a_pool_is_killed() -> None:
    """Only its own sessions are lost. It gets no more picks, until it is back."""
    with rig(3, "--slow-start", "1") as live, sessions(live.port, 30) as opened:
        victim = live.pools[0]
        left = [session for session in opened if session.pool != victim.address]
        with Traffic(live.port, clients=CLIENTS) as traffic:
            traffic_flows(traffic)
            victim.kill()
            dead = time.monotonic()
            eventually(live.states, lambda states: states[victim.address] == "failing")
            moved = live.picker.state()["moved_sessions"]
            traffic_flows(traffic)
            assert live.picker.state()["moved_sessions"] <= moved + CLIENTS  # those already in progress
        assert [failure for failure in traffic.failures if failure.asked > dead] == []
        live.settled(len(left))
        for session in left:
            session.echo()
        victim.start()
        victim.wait()
        with Traffic(live.port) as traffic:
            eventually(live.states, lambda states: states[victim.address] == "serving")
            eventually(live.truth, lambda truth: truth[victim.address] > 0)
        assert traffic.failures == []
        live.settled(len(left))
        assert live.unpicked() == 0


def test_clients_vanish() -> None:
    """Before they have an answer, or with a session open."""
    with rig(3) as live, sessions(live.port, 60) as opened:
        hasty = [Session(live.port) for _ in range(200)]
        for session in [*hasty, *opened[20:]]:
            session.abort()
        live.settled(20)
        for session in opened[:20]:
            session.echo()
        assert live.unpicked() == 0


@pytest.mark.full
def test_a_pool_answers_500() -> None:
    with rig(2) as live, sessions(live.port, 4):
        with ThreadPoolExecutor(4) as clients:
            answers = list(clients.map(lambda _: ask(live.port, "/500")[0], range(100)))
        assert answers == [500] * 100
        live.settled(4)
        assert live.unpicked() == 0


def test_a_pool_hangs_up_on_requests() -> None:
    """A request that the pool may have processed is retried only if its method is safe.

    It is not counted after it failed.
    """
    with rig(2) as live, sessions(live.port, 4):
        live.pools[0].say("reset")
        assert {ask(live.port, "/")[0] for _ in range(40)} == {200}
        assert {ask(live.port, "/", "POST")[0] for _ in range(40)} == {200, 503}
        live.settled(4)
        assert live.unpicked() == 0


def test_a_retry_moves_a_session() -> None:
    """The health check keeps its open connection, so the pool is picked although it refuses connections."""
    with rig(3, "--policy", "jsq", health_path="/health") as live, sessions(live.port, 9) as opened:
        refusing = live.pools[0]
        refusing.say("refuse")
        for session in opened:
            if session.pool == refusing.address:
                session.close()
        live.settled(6)
        for moved in range(1, 5):
            with sessions(live.port, 1) as [retried]:
                assert retried.pool != refusing.address
                live.settled(7)
                assert live.picker.state()["moved_sessions"] == moved
        live.settled(6)
        assert live.states()[refusing.address] == "serving"
        refusing.say("listen")
        with sessions(live.port, 3) as fresh:
            assert {session.pool for session in fresh} == {refusing.address}
            live.settled(9)
        assert live.unpicked() == 0


@pytest.mark.full
def test_a_pool_that_refuses_costs_no_session() -> None:
    """For a retry, Envoy itself would choose the pool that refuses, because it has no sessions."""
    with rig(2, "--policy", "jsq", health_path="/health") as live:
        live.pools[0].say("refuse")
        with sessions(live.port, 2):
            for _ in range(300):
                with sessions(live.port, 1) as [session]:
                    assert session.pool == live.pools[1].address
            live.settled(2)


@pytest.mark.full
def test_two_thousand_open_sessions() -> None:
    """Each session counts from its pick, so bursts leave the pools even.

    A session that has not reached its pool after four seconds is given up, and found again later. Bursts of 100
    stay far below that, also on a busy machine.
    """
    with rig(5) as live, ExitStack() as stack:
        opened = [session for _ in range(20) for session in stack.enter_context(sessions(live.port, 100))]
        counts = live.settled(2000)
        assert max(counts.values()) - min(counts.values()) <= 2, counts
        assert live.unpicked() == 0
        for session in opened[::2]:
            session.close()
        live.settled(1000)


@pytest.mark.full
def test_ten_thousand_sessions_leave_nothing_behind() -> None:
    """The picker grows by less than 2 MiB: a stream, session or header kept for each would take more."""
    with rig(3) as live:
        streams = live.envoys[0].gauge("cluster.picker.upstream_rq_active")
        _short_sessions(live.port, 3000)
        live.settled(0)
        memory = live.picker.memory()
        _short_sessions(live.port, 10_000)
        live.settled(0)
        assert live.picker.memory() - memory < 2 * 2**20
        assert live.envoys[0].gauge("cluster.picker.upstream_rq_active") == streams
        assert sum(live.picker.state()["picks"].values()) == 13_000
        assert live.unpicked() == 0


def _short_sessions(port: int, count: int, connections: int = 20) -> None:
    """Send `count` requests over a few connections, one at a time on each."""
    request = b"GET / HTTP/1.1\r\nhost: pools\r\n\r\n"
    clients = [socket.create_connection(("127.0.0.1", port), PATIENCE) for _ in range(connections)]
    try:
        for _ in range(count // connections):
            for client in clients:
                client.sendall(request)
            for client in clients:
                answer = b""
                while not _WHOLE_ANSWER.fullmatch(answer):
                    answer += client.recv(4096)
    finally:
        for client in clients:
            client.close()
