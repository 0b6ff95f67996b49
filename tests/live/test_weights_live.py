"""Pools with weights behind a real gateway: sessions in proportion, changed weights, a restart of the picker."""

from __future__ import annotations

import json
import os
import random
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from evenly.core import LearningRule, UtilityThreshold
from tests.live.clients import Session
from tests.live.processes import PATIENCE, eventually
from tests.live.rig import READY, Gateway, PoolProcess
from tests.live.test_gateway import children

ALPHA = "0.6"


def predicted(weights: list[float], first: list[int], more: int) -> list[int]:
    """Return what core does with `more` sessions, which does not depend on the random choices."""
    found = set()
    for seed in range(10):
        policy = UtilityThreshold(0, LearningRule(ALPHA))
        for pool, (weight, sessions) in enumerate(zip(weights, first, strict=True)):
            policy.join(pool, sessions, weight)
        policy.fit(sum(first), {weight: weights.count(weight) for weight in weights})
        for _ in range(more):
            policy.arrive(random.Random(seed).choice)
        found.add(tuple(policy.tasks(pool) for pool in range(len(weights))))
    [only] = found
    return list(only)


@pytest.mark.long
def test_a_gateway_follows_weights_through_a_reload_and_a_restart(tmp_path: Path) -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(PoolProcess()) for _ in range(4)]
        for server in servers:
            server.wait()
        config = tmp_path / "evenly.toml"

        def write(*weights: float) -> None:
            pools = [f"{server.address}={weight:g}" for server, weight in zip(servers, weights, strict=True)]
            config.write_text(f"pool = {json.dumps(pools)}\nalpha = {ALPHA}\n")

        write(1, 1, 4, 4)
        gateway = stack.enter_context(Gateway("--config", str(config), patient=True))
        gateway.wait()
        sessions: list[Session] = []
        stack.callback(lambda: [*map(Session.abort, sessions)])

        def open_sessions(count: int) -> list[int]:
            """Open sessions one by one; return how many the pools serve, which is what the gateway counts."""
            sessions.extend(Session(gateway.port).wait() for _ in range(count))
            seen = eventually(counts, lambda found: found == [server.sessions for server in servers])
            assert sum(seen) == len(sessions)
            return seen

        def counts() -> list[int]:
            return [pool["sessions"] for pool in gateway.state()["pools"]]

        def weights() -> list[float]:
            return [pool["weight"] for pool in gateway.state()["pools"]]

        # In proportion, exactly.
        assert open_sessions(50) == predicted([1, 1, 4, 4], [0] * 4, 50) == [5, 5, 20, 20]
        state = gateway.state()
        assert (state["policy"], state["unpicked_sessions"]) == ("threshold-utility", 0)
        assert [(each["weight"], each["pools"]) for each in state["classes"]] == [(1, 2), (4, 2)]
        light, heavy = (each["threshold"] for each in state["classes"])
        assert (light, heavy) in {(4, 20), (5, 20), (5, 21)}  # the places at which 50 sessions can end
        assert envoy_weights(gateway) == {server.address: w for server, w in zip(servers, SHARES, strict=True)}

        # A bad file changes nothing, a good one the weights. Open sessions stay.
        write(1, 1, -4, 4)
        eventually(lambda: logged(gateway, "settings not used"), bool)
        assert weights() == [1, 1, 4, 4]
        write(1, 1, 1, 4)
        eventually(weights, lambda found: found == [1, 1, 1, 4])
        assert counts() == [5, 5, 20, 20]
        after = open_sessions(30)
        assert after == predicted([1, 1, 1, 4], [5, 5, 20, 20], 30)
        assert after[2] == 20  # more than its share now, so it gets none

        # A weight that was changed at the admin port outlives the picker.
        url = f"http://127.0.0.1:{gateway.admin}/pools/{servers[0].address}/weight"
        assert httpx.put(url, json={"weight": 0}, timeout=PATIENCE).status_code == 422
        assert httpx.put(url, json={"weight": 4}, timeout=PATIENCE).json()["weight"] == 4
        os.kill(children(gateway.pid)["picker"], signal.SIGKILL)
        eventually(lambda: logged(gateway, "picker is back"), bool)
        eventually(counts, lambda found: found == after)
        assert weights() == [4, 1, 1, 4]
        found = {each["weight"]: each["threshold"] for each in gateway.state()["classes"]}
        assert found == {1: 8, 4: 32}  # the 80 sessions in proportion
        for session in sessions:
            session.echo()


SHARES = [25_000, 25_000, 100_000, 100_000]


def envoy_weights(gateway: Gateway) -> dict[str, int]:
    """Return the weights that Envoy would use without the picker."""
    [envoy] = gateway.state()["envoys"]
    transport = httpx.HTTPTransport(uds=envoy["admin"].removeprefix("unix:"))
    with httpx.Client(transport=transport, timeout=PATIENCE) as client:
        clusters = client.get("http://localhost/clusters?format=json").json()["cluster_statuses"]
    [pools] = [cluster for cluster in clusters if cluster["name"] == "pools"]
    sockets = [(host["address"]["socket_address"], host["weight"]) for host in pools["host_statuses"]]
    return {f"{socket['address']}:{socket['port_value']}": weight for socket, weight in sockets}


def logged(gateway: Gateway, event: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in gateway.output().splitlines() if not line.startswith(READY)]
    return [line for line in lines if line["event"] == event]
