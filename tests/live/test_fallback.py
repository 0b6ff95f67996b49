"""Where Envoy sends sessions without a picker: never to draining pools, and to failing ones if all fail."""

from __future__ import annotations

import time

import pytest

from evenly.live.envoy.names import MERGE_S
from tests.live.clients import sessions
from tests.live.processes import ask, eventually
from tests.live.rig import PoolProcess, Rig, rig

TRIES = 40


def tell(live: Rig, pool: PoolProcess, verb: str) -> None:
    status, body = ask(live.picker.admin, f"/pools/{pool.address}/{verb}", "POST")
    assert status == 200, body


def wait_until_healthy(live: Rig, count: int) -> None:
    """Wait until Envoy sees `count` pools that neither fail nor drain."""
    eventually(lambda: live.envoys[0].gauge("cluster.pools.membership_healthy"), lambda seen: seen == count)


def statuses(live: Rig) -> set[int]:
    return {ask(live.port, "/")[0] for _ in range(TRIES)}


def test_draining_pools_get_nothing_when_the_picker_is_dead() -> None:
    """Sessions that are open there continue. With a picker or without, new ones get 503 at once."""
    with rig(2) as live, sessions(live.port, 4) as opened:
        for verb, left in (("drain", 0), ("undrain", 2), ("drain", 0)):
            for pool in live.pools:
                tell(live, pool, verb)
            wait_until_healthy(live, left)
        assert statuses(live) == {503}
        live.picker.kill()
        eventually(lambda: statuses(live), lambda seen: seen == {503})
        assert statuses(live) == {503}
        for session in opened:
            session.echo()


@pytest.mark.full
def test_failing_pools_are_tried_when_all_others_drain() -> None:
    """The checks may be wrong, but the operator is not."""
    with rig(3, health_path="/health") as live, sessions(live.port, 6) as opened:
        tell(live, live.pools[0], "drain")
        for pool in live.pools[1:]:
            pool.say("sick")
        wait_until_healthy(live, 0)
        live.picker.kill()
        failing, until = {(200, pool.address) for pool in live.pools[1:]}, time.monotonic() + 10 * MERGE_S
        while time.monotonic() < until:
            assert ask(live.port, "/") in failing
        assert {ask(live.port, "/") for _ in range(TRIES)} == failing
        for session in opened:
            session.echo()


@pytest.mark.full
def test_failing_pools_are_tried_when_there_are_no_others() -> None:
    with rig(2, health_path="/health") as live:
        for pool in live.pools:
            pool.say("sick")
        wait_until_healthy(live, 0)
        for alive in (True, False):
            if not alive:
                live.picker.kill()
            assert statuses(live) == {200}
