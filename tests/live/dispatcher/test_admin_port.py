"""The dispatcher's admin port: state, metrics, draining, probes, its page, and the log."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from evenly.live.dispatcher.views import POOL_EXAMPLE, STATE_EXAMPLE, FleetPoolView, FleetView
from tests.live.dispatcher.rig import Agents, Dispatcher, fleet
from tests.live.processes import eventually

Fleet = tuple[Dispatcher, Agents]


@pytest.fixture(scope="module")
def shared() -> Iterator[Fleet]:
    with fleet("--lease=600", "--fleet=games") as made:
        yield made


def metrics(dispatcher: Dispatcher) -> dict[tuple[str, ...], float]:
    answer = dispatcher.admin("GET", "/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_the_state_has_what_the_picker_shows_and_more(shared: Fleet) -> None:
    dispatcher, agents = shared
    before = dispatcher.state()
    session = dispatcher.post().json()
    agents.arrive(session)
    state = dispatcher.wait_for(lambda state: state["sessions"] == 1)
    assert {"threshold", "pools", "tokens", "messages"} <= state.keys()
    assert state.keys() == STATE_EXAMPLE.keys()
    assert state["fleet"] == "games"
    assert state["store"] == {"kind": "embedded", "available": True, "outages": 0}
    assert (state["alpha"], state["agents"], len(state["pools"])) == (0.5, 3, 3)
    assert sum(state["picks"].values()) == sum(before["picks"].values()) + 1
    expected = {pool["name"]: pool["expected"] for pool in before["pools"]}
    pool = dispatcher.pool(session["pool"])
    assert pool == {
        "name": session["pool"],
        "address": session["address"],
        "sessions": 1,
        "expected": expected[session["pool"]],
        "capacity": None,
        "state": "serving",
        "connected": True,
    }
    agents.end(session["pool"], session["id"])


def test_the_examples_have_the_form_of_the_answers() -> None:
    assert FleetView.model_validate(STATE_EXAMPLE).model_dump(mode="json") == STATE_EXAMPLE
    assert FleetPoolView.model_validate(POOL_EXAMPLE).model_dump(mode="json") == POOL_EXAMPLE


def test_the_metrics_agree_with_the_state(shared: Fleet) -> None:
    dispatcher, _ = shared
    with dispatcher.client() as client:
        assert client.get("/v1/nothing").status_code == 404
        place = client.post("/v1/sessions").json()
        assert client.delete(f"/v1/sessions/{place['id']}").status_code == 204

    def pair() -> tuple[dict[str, Any], dict[tuple[str, ...], float], dict[str, Any]]:
        return dispatcher.state(), metrics(dispatcher), dispatcher.state()

    state, seen, _ = eventually(pair, lambda pair: pair[0] == pair[2])  # nothing came in between
    for pool in state["pools"]:
        assert seen["evenly_pool_sessions", pool["name"]] == pool["sessions"]
        assert seen["evenly_pool_expected_sessions", pool["name"]] == pool["expected"]
        assert seen["evenly_pool_state", *sorted((pool["name"], pool["state"]))] == 1
    assert seen[("evenly_threshold",)] == state["threshold"]
    assert seen[("evenly_alpha",)] == 0.5
    assert seen["evenly_tokens", "green"] == state["tokens"]["green"]
    assert seen["evenly_tokens", "yellow"] == state["tokens"]["yellow"]
    for kind, count in state["picks"].items():
        assert seen["evenly_picks_total", kind] == count
    for kind, count in state["messages"].items():
        assert seen["evenly_messages_total", kind] == count
    assert seen["evenly_errors_total", "not_found"] == state["errors"]["not_found"] == 1
    assert seen[("evenly_expired_total",)] == state["expired"]
    assert seen[("evenly_released_total",)] == state["released"] == 1
    assert seen[("evenly_agents",)] == 3
    assert seen[("evenly_store_available",)] == 1
    assert seen[("evenly_pick_seconds_count",)] == sum(state["picks"].values())
    assert seen["evenly_pick_seconds_bucket", "+Inf"] == seen[("evenly_pick_seconds_count",)]


def test_a_drained_pool_gets_no_sessions_until_it_is_undrained(shared: Fleet) -> None:
    dispatcher, agents = shared
    agents.begin("a", "one")
    dispatcher.wait_for(lambda state: state["sessions"] == 1)
    answer = dispatcher.admin("POST", "/pools/a/drain")
    assert (answer.status_code, answer.json()["state"]) == (200, "draining")
    assert dispatcher.admin("POST", "/pools/a/drain").status_code == 200
    assert {dispatcher.post().json()["pool"] for _ in range(10)} == {"b", "c"}
    agents.stop("a")
    agents.start("a")  # it restarts, and stays drained
    eventually(lambda: dispatcher.pool("a").get("state"), lambda state: state == "draining")
    for pool in ("b", "c"):
        dispatcher.admin("POST", f"/pools/{pool}/drain")
    assert dispatcher.post().json()["code"] == "all_full_or_draining"
    eventually(lambda: dispatcher.admin("GET", "/readyz").status_code, lambda status: status == 503)
    reason = dispatcher.admin("GET", "/readyz").json()["detail"]
    assert reason == "No pool can be picked: all are full, draining, leaving or silent."
    for pool in ("a", "b", "c"):
        assert dispatcher.admin("POST", f"/pools/{pool}/undrain").json()["state"] == "serving"
    eventually(lambda: dispatcher.admin("GET", "/readyz").json(), lambda ready: ready == {"status": "ready"})
    assert len(dispatcher.events("pool drained")) == 4


def test_unknown_pools_and_bad_names_are_rejected(shared: Fleet) -> None:
    dispatcher, _ = shared
    answer = dispatcher.admin("POST", "/pools/other/drain")
    assert (answer.status_code, answer.json()) == (404, {"detail": "There is no pool other now."})
    answer = dispatcher.admin("POST", "/pools/other/undrain")
    assert (answer.status_code, answer.content) == (204, b"")  # it holds for when the pool comes
    for change in ("drain", "undrain"):
        assert dispatcher.admin("POST", f"/pools/-x/{change}").status_code == 422
        assert dispatcher.admin("POST", f"/pools/{'x' * 101}/{change}").status_code == 422


def test_probes_and_documentation(shared: Fleet) -> None:
    dispatcher, _ = shared
    assert dispatcher.admin("GET", "/healthz").json() == {"status": "alive"}
    eventually(lambda: dispatcher.admin("GET", "/readyz").json(), lambda ready: ready == {"status": "ready"})
    page = dispatcher.admin("GET", "/docs").text
    for path in dispatcher.admin("GET", "/openapi.json").json()["paths"]:
        assert path in page
    with Dispatcher() as empty:
        assert empty.admin("GET", "/readyz").json()["detail"].startswith("No pool can be picked: no agent")


def test_changes_are_logged() -> None:
    with fleet("--lease=600", pools=("a", "b")) as (dispatcher, agents):
        connected = dispatcher.events("agent connected")
        assert {event["pool"] for event in connected} == {"a", "b"}
        eventually(lambda: len(dispatcher.events("pool added")), lambda added: added == 2)
        dispatcher.post({"count": 10})
        changes = eventually(lambda: dispatcher.events("threshold changed"), bool)
        assert changes[0]["before"] < changes[0]["threshold"]
        dispatcher.admin("POST", "/pools/a/drain")
        eventually(lambda: dispatcher.events("pool draining"), bool)
        agents.run(agents["b"].leave())
        (leaving,) = eventually(lambda: dispatcher.events("pool leaving"), bool)
        assert (leaving["pool"], leaving["before"]) == ("b", "serving")
        agents.stop("b")
        eventually(lambda: dispatcher.events("agent disconnected"), bool)


@pytest.mark.full
def test_alpha_is_recommended_for_the_number_of_pools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By `nice python -m evenly tune`. Here a script called `nice` comes first on the path."""
    script, calls = tmp_path / "nice", tmp_path / "calls"
    script.write_text(f'#!/bin/sh\necho "$@" >> {calls}\necho \'{{"recommended": 0.75}}\'\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with Dispatcher() as dispatcher, Agents(dispatcher.agents_url) as agents:
        dispatcher.kill()
        dispatcher.command = tuple(option for option in dispatcher.command if option != "--alpha=0.5")
        dispatcher.start()
        agents.start(*"abcdefgh")
        dispatcher.wait_for(lambda state: state["alpha"] == 0.75)
        changed = eventually(lambda: dispatcher.events("alpha changed"), bool)
        assert (changed[-1]["before"], changed[-1]["alpha"]) == (0.5, 0.75)
        assert changed[-1]["reason"].startswith("recommended for ")
        eventually(calls.read_text, lambda text: "-m evenly tune --json --pools=8 --load-max=10.0" in text)
