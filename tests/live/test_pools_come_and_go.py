"""Pools are added, drained, removed, fail and recover at run time, and all sessions stay counted."""

from __future__ import annotations

import itertools
import json
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.live.clients import Traffic, sessions
from tests.live.processes import ask, eventually, free_port
from tests.live.rig import Envoy, Picker, PoolProcess, Rig, rig

JSQ = ("--policy", "jsq")  # where the next session goes is then known


def order(live: Rig, method: str, path: str, body: object = None) -> int:
    return ask(live.picker.admin, path, method, body)[0]


def known_to_envoys(live: Rig) -> list[set[str]]:
    """Return the pools that each Envoy can send to."""
    return [envoy.pools() for envoy in live.envoys]


def wait_asked(envoy: Envoy) -> None:
    """Wait until the picker has asked Envoy for its pools, and has used the answer."""
    connections, looks = "listener.admin.downstream_cx_total", itertools.count(1)
    before = envoy.gauge(connections)
    # Each look of ours is a connection, too. Of two in a row by the picker, one at least asks for the pools.
    eventually(lambda: envoy.gauge(connections) - next(looks), lambda now: now - before >= 3)


def test_a_pool_is_added() -> None:
    """It gets sessions from every Envoy, and the other pools keep theirs."""
    with rig(2, *JSQ, "--slow-start", "0", envoys=2) as live, sessions(live.port, 8), PoolProcess() as new:
        before = live.settled(8)
        new.wait()
        assert order(live, "POST", "/pools", {"address": new.address}) == 201
        live.pools.append(new)
        addresses = {pool.address for pool in live.pools}
        eventually(lambda: known_to_envoys(live), lambda known: known == [addresses, addresses])
        with sessions(live.envoys[1].port, 4) as opened:
            counts = live.settled(12)
            assert {session.pool for session in opened} == {new.address}
            assert counts == {**before, new.address: 4}


def test_all_requests_can_reach_a_pool_when_it_is_no_longer_checked() -> None:
    """Safe methods and others use different clusters of Envoy, and its workers learn of a new pool late."""
    with rig(2, *JSQ, envoys=2) as live, PoolProcess() as new:
        new.wait()
        for pool in live.pools:
            pool.say("reset")
        assert order(live, "POST", "/pools", {"address": new.address}) == 201
        eventually(live.states, lambda states: states[new.address] in {"warming", "serving"})
        for envoy in live.envoys:
            assert [ask(envoy.port, "/")[0] for _ in range(5)] == [200] * 5
        for pool in live.pools:  # other methods are not tried again elsewhere
            assert order(live, "POST", f"/pools/{pool.address}/drain") == 200
        for envoy in live.envoys:
            assert [ask(envoy.port, "/", "POST")[0] for _ in range(5)] == [200] * 5


def test_a_pool_that_is_never_reached_is_checked_and_then_fails_with_a_reason() -> None:
    with rig(1, *JSQ) as live:
        absent = f"127.0.0.1:{free_port()}"
        assert order(live, "POST", "/pools", {"address": absent}) == 201
        eventually(live.states, lambda states: states[absent] == "failing")
        logged = [json.loads(line) for line in live.picker.output().splitlines() if '"pool failing"' in line]
        facts = {"pool": absent, "before": "checking", "reason": "health check failed", "since": None, "lost": 0}
        assert [facts.items() <= line.items() for line in logged] == [True]


def test_a_pool_that_dies_fails_with_the_sessions_that_were_lost() -> None:
    with rig(2, *JSQ) as live, sessions(live.port, 6) as opened:
        victim, count = live.pools[0], live.settled(6)[live.pools[0].address]
        begun = datetime.now(UTC)
        time.sleep(1.5)  # the picker notes the sessions of a pool once in a second, when it asks Envoy
        wait_asked(live.envoys[0])
        victim.kill()
        eventually(live.states, lambda states: states[victim.address] == "failing")
        [line] = [json.loads(line) for line in live.picker.output().splitlines() if '"pool failing"' in line]
        assert (line["before"], line["reason"]) == ("serving", "health check failed")
        assert (line["lost"], line["sessions"], line["level"]) == (count, 0, "warning")
        assert begun < datetime.fromisoformat(line["since"]) < datetime.fromisoformat(line["time"])
        assert len(opened) == 6


def test_a_pool_drains_and_comes_back() -> None:
    """It keeps its sessions and gets no new ones until it is undrained."""
    with rig(3, *JSQ, "--slow-start", "0") as live, sessions(live.port, 12) as opened:
        before = live.settled(12)
        drained = live.pools[1].address
        assert order(live, "POST", f"/pools/{drained}/drain") == 200
        assert live.states()[drained] == "draining"
        with sessions(live.port, 10) as more:
            assert drained not in {session.pool for session in more}
            assert live.settled(22)[drained] == before[drained]
        for session in opened:
            session.echo()
            if session.pool == drained:
                session.close()
        after = live.settled(12 - before[drained])
        assert after == {**before, drained: 0}
        assert order(live, "POST", f"/pools/{drained}/undrain") == 200
        with sessions(live.port, 4) as back:
            assert {session.pool for session in back} == {drained}
            live.settled(12)


def test_a_removed_pool_leaves_when_its_sessions_have_ended() -> None:
    with rig(3) as live, sessions(live.port, 12) as opened:
        before = live.settled(12)
        removed = live.pools[0].address
        assert order(live, "DELETE", f"/pools/{removed}") in {200, 202, 204}
        assert live.states()[removed] == "leaving"
        with sessions(live.port, 6) as more:
            assert removed not in {session.pool for session in more}
            assert live.settled(18)[removed] == before[removed]
        assert live.settled(12) == before
        own = [session for session in opened if session.pool == removed]
        for session in own:
            assert live.states()[removed] == "leaving"
            session.echo()
            session.close()
        rest = {address: count for address, count in before.items() if address != removed}
        eventually(live.counts, lambda counts: counts == rest)
        eventually(lambda: known_to_envoys(live), lambda known: known == [set(rest)])
        assert order(live, "DELETE", f"/pools/{removed}") == 404


def test_the_config_file_changes_under_load(tmp_path: Path) -> None:
    """Pools that it lists are added, those that it no longer lists leave, and no session fails."""
    config = tmp_path / "picker.toml"
    with PoolProcess() as one, PoolProcess() as two, PoolProcess() as three:

        def names(*pools: PoolProcess) -> None:
            config.write_text(f"slow_start = 0\npool = {[pool.address for pool in pools]}\n")

        names(one, two)
        with Picker("--config", str(config)) as picker, Envoy(picker, patient=True) as envoy:
            for process in (one, two, three, picker, envoy):
                process.wait()
            live = Rig([one, two, three], picker, [envoy])
            with sessions(envoy.port, 8) as opened, Traffic(envoy.port) as traffic:
                names(one, two, three)
                eventually(lambda: three.sessions, lambda count: count > 0)
                names(two, three)
                eventually(live.states, lambda states: states.get(one.address) == "leaving")
                eventually(lambda: one.sessions, lambda count: count == 4)
                names(one, two)
                eventually(live.states, lambda states: three.address not in states)
                eventually(lambda: three.sessions, lambda count: count == 0)
                traffic.stop()
                counts = eventually(live.counts, lambda counts: sum(counts.values()) == 8)
                assert counts == {one.address: 4, two.address: 4}
                assert live.truth() == {**counts, three.address: 0}
                for session in opened:
                    session.echo()
            assert traffic.failures == []


def test_a_failing_health_check() -> None:
    """A failing pool gets no picks and keeps its sessions. It gets picks again when it has recovered."""
    with rig(3, *JSQ, "--slow-start", "0", health_path="/health") as live, sessions(live.port, 9) as opened:
        sick = live.pools[2]
        sick.say("sick")
        eventually(live.states, lambda states: states[sick.address] == "failing")
        with sessions(live.port, 8) as more:
            assert sick.address not in {session.pool for session in more}
            assert live.settled(17)[sick.address] == 3
        for session in opened:
            session.echo()
            if session.pool == sick.address:
                session.close()
        live.settled(6)
        sick.say("well")
        eventually(live.states, lambda states: states[sick.address] == "serving")
        with sessions(live.port, 3) as more:
            assert {session.pool for session in more} == {sick.address}
            live.settled(9)


@pytest.mark.full
def test_a_pool_that_recovers_fills_slowly() -> None:
    """Its cap is one session plus a share of the mean, which grows to the whole mean during slow start.

    Sessions arrive as fast as possible, so without the cap the pool would be full at once. They never end, and the
    cap is computed after the state was read, from a start before the true one: it is never too low.
    """
    slow_start = 4.0
    with rig(3, "--slow-start", str(slow_start), health_path="/health") as live, ExitStack() as opened:
        recovering = live.pools[0]
        recovering.say("sick")
        eventually(live.states, lambda states: states[recovering.address] == "failing")
        opened.enter_context(sessions(live.port, 300))
        recovering.say("well")
        started = time.monotonic()
        fill: list[tuple[int, float]] = []
        while True:
            before = time.monotonic()
            state, count, mean = _look(live, recovering)
            if state == "serving":
                assert time.monotonic() - started >= slow_start
                break
            if state == "failing":
                started = before
            else:
                passed = time.monotonic() - started
                fill.append((count, 1 + mean * passed / slow_start))
            opened.enter_context(sessions(live.port, 1))
        assert all(count <= cap for count, cap in fill), fill
        opened.enter_context(sessions(live.port, 150))  # the others have as many each
        assert _look(live, recovering)[1] > 50
        live.settled()


def _look(live: Rig, pool: PoolProcess) -> tuple[str, int, float]:
    """Return the state and the sessions of a pool, and the mean number of sessions of all pools."""
    state = live.picker.state()
    [own] = [entry for entry in state["pools"] if entry["address"] == pool.address]
    return own["state"], own["sessions"], state["sessions"] / len(state["pools"])
