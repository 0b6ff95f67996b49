"""Restarts of a dispatcher with its tokens in process: agents bring everything back within two heartbeats."""

from __future__ import annotations

import signal

import pytest

from tests.live.dispatcher.rig import Agents, Dispatcher, fleet
from tests.live.processes import eventually

POOLS = tuple("abcd")


def _fill(dispatcher: Dispatcher, agents: Agents, sessions: int) -> list[dict[str, str]]:
    """Place sessions and let their clients arrive."""
    placed = [dispatcher.post().json() for _ in range(sessions)]
    for session in placed:
        agents.arrive(session)
    dispatcher.wait_for(lambda state: state["sessions"] == sessions and state["expected"] == 0)
    return placed


@pytest.mark.long
@pytest.mark.parametrize("number", [pytest.param(signal.SIGTERM, marks=pytest.mark.full), signal.SIGKILL])
def test_tokens_and_threshold_are_rebuilt_from_the_agents(number: signal.Signals) -> None:
    with fleet(pools=POOLS) as (dispatcher, agents):
        placed = _fill(dispatcher, agents, 40)
        before = dispatcher.state()
        assert dispatcher.kill(number) == (0 if number == signal.SIGTERM else -number)
        dispatcher.start()
        state = dispatcher.wait_for(lambda state: state["sessions"] == 40 and state["threshold"] >= 10)
        assert {pool["name"]: pool["sessions"] for pool in state["pools"]} == {
            pool["name"]: pool["sessions"] for pool in before["pools"]
        }
        # What the agents know of the threshold is what the dispatcher knows.
        eventually(
            lambda: {agents[pool].peer.threshold for pool in POOLS}, lambda seen: seen == {state["threshold"]}
        )
        assert all(len(agents[pool].keys) == 2 for pool in POOLS)
        # New sessions go on as before, and old ones end.
        for session in placed:
            agents.end(session["pool"], session["id"])
        dispatcher.wait_for(lambda state: state["sessions"] == 0)
        assert dispatcher.post().status_code == 201


@pytest.mark.full
def test_two_heartbeats_after_a_start_everything_is_known() -> None:
    """Counted in heartbeats of the agents, not in seconds: each has sent at most three to the new dispatcher."""
    with fleet("--heartbeat=1", "--lease=60", pools=POOLS) as (dispatcher, agents):
        _fill(dispatcher, agents, 20)
        dispatcher.kill()
        before = {pool: agents[pool].peer.sent.heartbeats for pool in POOLS}
        dispatcher.start()
        dispatcher.wait_for(lambda state: state["sessions"] == 20)
        assert all(agents[pool].peer.sent.heartbeats - before[pool] <= 3 for pool in POOLS)


@pytest.mark.full
def test_clients_of_the_dispatcher_before_are_served_and_counted() -> None:
    """Their ids are of an older key: the agent keeps it, and the new dispatcher answers a release with 204."""
    with fleet(pools=POOLS) as (dispatcher, agents):
        arriving, leaving = dispatcher.post().json(), dispatcher.post().json()
        dispatcher.kill()
        dispatcher.start()
        agents.wait_connected(*POOLS)
        eventually(lambda: {agents[pool].welcomes for pool in POOLS}, lambda welcomes: min(welcomes) >= 2)
        agents.arrive(arriving)
        dispatcher.wait_for(lambda state: state["sessions"] == 1 and len(state["pools"]) == len(POOLS))
        with dispatcher.client() as client:
            assert client.delete(f"/v1/sessions/{leaving['id']}").status_code == 204
        assert dispatcher.post().status_code == 201


def test_a_stop_takes_the_agents_along_and_closes_the_ports() -> None:
    with fleet(pools=("a",)) as (dispatcher, agents):
        assert dispatcher.kill(signal.SIGTERM) == 0
        eventually(lambda: agents["a"].connection, lambda connection: connection is None)
        assert "Traceback" not in dispatcher.output()
        assert dispatcher.events("fault") == []
