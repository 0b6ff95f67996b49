"""Picks and releases over HTTP: answers, repeated requests, several at once, pools to avoid, leases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import httpx
import pytest

from evenly.live.session_id import read, sign
from evenly.live.signing import new_key
from tests.live.dispatcher.rig import Agents, Dispatcher, fleet
from tests.live.processes import eventually

Fleet = tuple[Dispatcher, Agents]


@pytest.fixture(scope="module")
def shared() -> Iterator[Fleet]:
    """A fleet whose places are kept for long."""
    with fleet("--lease=600") as made:
        yield made


def code(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json()) == {"code", "detail"}
    assert answer.json()["detail"].endswith(".")
    return answer.status_code, answer.json()["code"]


def test_a_pick_names_a_pool_its_address_and_the_end_of_the_lease(shared: Fleet) -> None:
    dispatcher, _ = shared
    before = datetime.now(UTC).timestamp()
    answer = dispatcher.post()
    after = datetime.now(UTC).timestamp()
    assert answer.status_code == 201
    session = answer.json()
    assert set(session) == {"id", "pool", "address", "expires_in", "expires_at", "color", "threshold"}
    assert session["pool"] in "abc"
    assert session["address"] == f"ws://{session['pool']}.example:9000"
    assert 599 < session["expires_in"] <= 600
    assert session["expires_at"].endswith("Z")
    expires = datetime.fromisoformat(session["expires_at"]).timestamp()
    assert before + 599 < expires <= after + 600.001
    assert session["color"] in ("green", "yellow", None)
    assert answer.headers["cache-control"] == "no-store"


def test_the_id_carries_the_threshold_to_the_pool() -> None:
    with fleet("--lease=600", "--alpha=0.9") as (dispatcher, _):
        places = [dispatcher.post().json() for _ in range(12)]
        named = [read(place["id"]) for place in places]
        assert [each and each.threshold for each in named] == [place["threshold"] for place in places]
        with dispatcher.client() as client:
            answer = client.get("/v1/go/x")
        redirected = read(answer.headers["location"].rpartition("=")[2])
        assert redirected is not None
        assert redirected.threshold == dispatcher.state()["threshold"] > 1


def test_a_client_that_arrives_is_expected_no_more(shared: Fleet) -> None:
    dispatcher, agents = shared
    session = dispatcher.post().json()
    pool = session["pool"]
    before = dispatcher.pool(pool)
    agents.arrive(session)
    seen = eventually(lambda: dispatcher.pool(pool), lambda now: now["sessions"] == before["sessions"] + 1)
    assert seen["expected"] == before["expected"] - 1
    agents.end(pool, session["id"])
    eventually(lambda: dispatcher.pool(pool)["sessions"], lambda now: now == before["sessions"])


def test_a_repeated_key_gets_the_same_answer(shared: Fleet) -> None:
    dispatcher, _ = shared
    first = dispatcher.post({"exclude": ["a"]}, idempotency_key="one")
    again = dispatcher.post({"exclude": ["a"]}, idempotency_key="one")
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json()["id"] == again.json()["id"]
    assert again.json()["expires_in"] <= first.json()["expires_in"]
    assert dispatcher.post({"exclude": ["a"]}, idempotency_key="two").json()["id"] != first.json()["id"]


def test_a_key_of_another_request_is_rejected(shared: Fleet) -> None:
    dispatcher, _ = shared
    assert dispatcher.post(idempotency_key="reused").status_code == 201
    assert code(dispatcher.post({"exclude": ["a"]}, idempotency_key="reused")) == (422, "key_reused")
    assert code(dispatcher.post({"count": 2}, idempotency_key="reused")) == (422, "key_reused")


def test_concurrent_requests_with_one_key_get_one_place(shared: Fleet) -> None:
    dispatcher, _ = shared
    before = dispatcher.state()["expected"]
    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(lambda _: dispatcher.post({"count": 2}, idempotency_key="race"), range(48)))
    assert {answer.status_code for answer in answers} == {201}
    ids = {tuple(session["id"] for session in answer.json()["sessions"]) for answer in answers}
    assert len(ids) == 1
    assert dispatcher.state()["expected"] == before + 2


def test_several_places_at_once(shared: Fleet) -> None:
    dispatcher, _ = shared
    answer = dispatcher.post({"count": 100})
    sessions = answer.json()["sessions"]
    assert (answer.status_code, set(answer.json())) == (201, {"sessions"})
    assert len({session["id"] for session in sessions}) == 100
    counts = Counter(session["pool"] for session in sessions)
    assert set(counts) == {"a", "b", "c"}
    assert len(dispatcher.post({"count": 1}).json()["sessions"]) == 1


def test_excluded_pools_are_not_picked(shared: Fleet) -> None:
    dispatcher, _ = shared
    picked = {dispatcher.post({"exclude": ["a", "c", "unknown"]}).json()["pool"] for _ in range(10)}
    assert picked == {"b"}
    assert code(dispatcher.post({"exclude": ["a", "b", "c"]})) == (503, "all_full_or_draining")
    assert dispatcher.post({"exclude": ["a", "b", "c"]}).headers["retry-after"] == "1"


def test_bodies_that_are_not_valid_are_rejected(shared: Fleet) -> None:
    rows: list[object] = [
        {"exclude": "a"},
        {"exclude": [1]},
        {"exclude": ["x" * 101]},
        {"exclude": [f"p{number}" for number in range(101)]},
        {"count": 0},
        {"count": 101},
        {"count": True},
        {"count": 1.5},
        {"unknown": 1},
        [],
    ]
    dispatcher, _ = shared
    for body in rows:
        assert code(dispatcher.post(body)) == (422, "invalid_request")


def test_bodies_that_are_no_json_are_rejected(shared: Fleet) -> None:
    dispatcher, _ = shared
    for body in [b"{", b"\xff", b"[" * 60_000, b'{"count": NaN}', b'{"count": 1}x']:
        with dispatcher.client() as client:
            assert code(client.post("/v1/sessions", content=body)) == (422, "invalid_request")


def test_keys_that_are_not_valid_are_rejected(shared: Fleet) -> None:
    dispatcher, _ = shared
    for key in ["", "x" * 201, "two words", "caf\xe9"]:
        with dispatcher.client() as client:
            answer = client.post("/v1/sessions", headers={b"Idempotency-Key": key.encode("latin-1")})
        assert code(answer) == (422, "invalid_request")


def test_the_longest_key_and_all_of_ascii_are_accepted(shared: Fleet) -> None:
    dispatcher, _ = shared
    visible = "".join(map(chr, range(33, 127)))
    assert dispatcher.post(idempotency_key=visible + "x" * (200 - len(visible))).status_code == 201


def test_a_released_place_is_free_and_releases_can_be_repeated(shared: Fleet) -> None:
    dispatcher, _ = shared
    session = dispatcher.post().json()
    before = dispatcher.state()
    with dispatcher.client() as client:
        answers = [client.delete(f"/v1/sessions/{session['id']}") for _ in range(3)]
    assert [(answer.status_code, answer.content) for answer in answers] == [(204, b"")] * 3
    after = dispatcher.state()
    assert (after["expected"], after["released"]) == (before["expected"] - 1, before["released"] + 1)


def test_a_forged_id_changes_nothing(shared: Fleet) -> None:
    """It is answered like an expired one: after a restart, honest clients hold ids of an older key."""
    dispatcher, _ = shared
    session = dispatcher.post().json()
    before = dispatcher.state()
    named = read(session["id"])
    assert named is not None
    forged = sign(new_key(), *named)
    changed = session["id"][:-1] + ("A" if session["id"][-1] != "A" else "B")
    with dispatcher.client() as client:
        assert client.delete(f"/v1/sessions/{forged}").status_code == 204
        assert client.delete(f"/v1/sessions/{changed}").status_code == 204
    after = dispatcher.state()
    assert (after["expected"], after["released"]) == (before["expected"], before["released"])


def test_text_that_is_no_id_is_rejected(shared: Fleet) -> None:
    dispatcher, _ = shared
    for text in ["", "x", "a.b", "a/b", "%00", "a." + "A" * 35, "a." + "A" * 37, "-." + "A" * 36]:
        with dispatcher.client() as client:
            assert code(client.delete(f"/v1/sessions/{text}")) == (422, "invalid_request")


def test_a_session_that_has_begun_is_not_ended_by_a_release(shared: Fleet) -> None:
    dispatcher, agents = shared
    session = dispatcher.post().json()
    agents.arrive(session)
    before = eventually(lambda: dispatcher.pool(session["pool"]), lambda pool: pool["sessions"] > 0)
    with dispatcher.client() as client:
        assert client.delete(f"/v1/sessions/{session['id']}").status_code == 204
    assert dispatcher.pool(session["pool"])["sessions"] == before["sessions"]
    agents.end(session["pool"], session["id"])


def test_other_methods_and_paths(shared: Fleet) -> None:
    rows: list[tuple[str, str, tuple[int, str]]] = [
        ("GET", "/v1/sessions", (405, "method_not_allowed")),
        ("DELETE", "/v1/sessions", (405, "method_not_allowed")),
        ("POST", "/v1/sessions/a", (405, "method_not_allowed")),
        ("POST", "/v1/go/a", (405, "method_not_allowed")),
        ("POST", "/healthz", (405, "method_not_allowed")),
        ("GET", "/v1/go", (404, "not_found")),
        ("GET", "/v2", (404, "not_found")),
        ("GET", "/V1/sessions", (404, "not_found")),
        ("GET", "/v1/agents", (426, "upgrade_required")),
    ]
    dispatcher, _ = shared
    for method, path, wanted in rows:
        with dispatcher.client() as client:
            answer = client.request(method, path)
        assert code(answer) == wanted
        assert ("allow" in answer.headers) == (wanted[0] == 405)


def test_places_without_clients_expire() -> None:
    with fleet("--lease=1", pools=("a", "b")) as (dispatcher, _):
        assert dispatcher.post({"count": 10}).status_code == 201
        state = dispatcher.wait_for(lambda state: state["expired"] == 10)
        assert (state["expected"], state["sessions"]) == (0, 0)


def test_full_pools_are_not_picked_and_a_refusal_frees_the_place() -> None:
    with fleet("--lease=60", pools=("a", "b"), capacity=2) as (dispatcher, agents):
        assert code(dispatcher.post({"count": 5})) == (503, "all_full_or_draining")
        assert dispatcher.state()["expected"] == 0  # all or none
        sessions = dispatcher.post({"count": 4}).json()["sessions"]
        assert Counter(session["pool"] for session in sessions) == {"a": 2, "b": 2}
        assert code(dispatcher.post()) == (503, "all_full_or_draining")
        assert {pool["state"] for pool in dispatcher.state()["pools"]} == {"full"}
        assert dispatcher.admin("GET", "/readyz").status_code == 503
        session = next(session for session in sessions if session["pool"] == "a")
        agents.run(agents["a"].refuse(session["id"]))
        eventually(lambda: dispatcher.pool("a")["state"], lambda state: state == "serving")
        assert dispatcher.post().json()["pool"] == "a"
        assert dispatcher.state()["messages"]["refusals"] == 1


def test_without_pools_there_is_nothing_to_pick() -> None:
    with Dispatcher() as dispatcher:
        answer = dispatcher.post()
        assert code(answer) == (503, "no_pools")
        assert answer.headers["retry-after"] == "1"
        with dispatcher.client() as client:
            assert code(client.get("/v1/go/x")) == (503, "no_pools")
            assert code(client.get("/readyz")) == (503, "not_ready")
            assert client.get("/healthz").json() == {"status": "alive"}
        assert dispatcher.state()["errors"] == {"no_pools": 2, "not_ready": 1}
