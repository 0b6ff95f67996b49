"""Real answers, successes and every error, have the form that the OpenAPI document describes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from evenly.live.dispatcher.models import KEY_PATTERN, MAX_COUNT, MAX_EXCLUDED, STATUS, Code
from evenly.live.dispatcher.openapi import openapi_document
from tests.live.dispatcher.rig import Agents, Dispatcher, fleet
from tests.live.processes import eventually
from website.http_api import PAGE, http_api_page

TOKEN = "client-token-0123456789"


class Book:
    """The document, and what of it was seen."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.seen: set[tuple[str, str, int, str]] = set()

    def check(self, path: str, answer: httpx.Response) -> None:
        """Compare an answer with what the document says about it."""
        method = answer.request.method.lower()
        described = self.document["paths"][path][method]["responses"][str(answer.status_code)]
        content = described.get("content", {})
        if not content:
            assert answer.content == b""
        else:
            kind = answer.headers["content-type"]
            schema = {**content[kind]["schema"], "components": self.document["components"]}
            Draft202012Validator(schema).validate(answer.json())
        code = answer.json()["code"] if answer.status_code >= 400 else ""
        if code:
            assert f"`{code}`" in described["description"]
            assert STATUS[Code(code)] == answer.status_code
        self.seen.add((method, path, answer.status_code, code))


@pytest.fixture(scope="module")
def book() -> Book:
    return Book(openapi_document(with_token=False))


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[Dispatcher, Agents]]:
    with fleet("--lease=600", pools=("a",), capacity=500) as made:
        yield made


def test_the_server_serves_the_document(shared: tuple[Dispatcher, Agents], book: Book) -> None:
    dispatcher, _ = shared
    with dispatcher.client() as client:
        assert client.get("/openapi.json").json() == book.document
        page = client.get("/docs")
        assert page.headers["content-security-policy"].startswith("default-src 'none'")
        for path in book.document["paths"]:
            assert path in page.text
        assert f"http://127.0.0.1:{dispatcher.listen}/v1/sessions" in page.text
        assert client.get("/").headers["location"] == "/docs"


def test_every_answer_is_described(shared: tuple[Dispatcher, Agents], book: Book) -> None:
    """All successes, and all errors that a running dispatcher with the embedded store can give."""
    dispatcher, _ = shared
    pick, release, go = "/v1/sessions", "/v1/sessions/{id}", "/v1/go/{path}"
    evil, origin = {"Host": "evil.example"}, {"Origin": "http://evil.example"}
    with dispatcher.client() as client:
        first = client.post(pick)
        book.check(pick, first)
        book.check(pick, client.post(pick, json={"count": 2, "exclude": ["b"]}))
        book.check(pick, client.post(pick, headers={"Idempotency-Key": "k"}))
        book.check(pick, client.post(pick, json={"count": 2}, headers={"Idempotency-Key": "k"}))
        book.check(pick, client.post(pick, json={"count": 0}))
        book.check(pick, client.post(pick, json={"exclude": ["a"]}))
        book.check(pick, client.post(pick, content=b" " * 70_000))
        book.check(pick, client.post(pick, headers=evil))
        book.check(pick, client.post(pick, headers=origin))
        book.check(release, client.delete(f"/v1/sessions/{first.json()['id']}"))
        book.check(release, client.delete("/v1/sessions/x"))
        book.check(release, client.delete("/v1/sessions/x", headers=evil))
        book.check(release, client.delete("/v1/sessions/x", headers=origin))
        book.check(go, client.get("/v1/go/x?y=1"))
        book.check(go, client.get("/v1/go/x", headers=evil))
        book.check("/v1/agents", client.get("/v1/agents"))
        book.check("/healthz", client.get("/healthz"))
        book.check("/readyz", client.get("/readyz"))
        for _ in range(6):
            last = client.post(pick, json={"count": 100})
        assert last.json()["code"] == "all_full_or_draining"
        while client.post(pick).status_code == 201:
            pass
        book.check(go, client.get("/v1/go/x"))
        full = eventually(lambda: client.get("/readyz"), lambda answer: answer.status_code == 503)  # knows it soon
        book.check("/readyz", full)
    with Dispatcher() as empty, empty.client() as client:
        book.check(pick, client.post(pick))
        book.check(go, client.get("/v1/go/x"))
    described = {
        (method, path, int(status), code)
        for path, methods in book.document["paths"].items()
        for method, operation in methods.items()
        for status, answer in operation["responses"].items()
        for code in ([*_codes(answer["description"])] or [""])
    }
    unreachable = {"store_unavailable", "too_many", "fault", "unauthorized", "method_not_allowed", "foreign_page"}
    missing = {entry for entry in described - book.seen if entry[3] not in unreachable and entry[2] != 101}
    assert missing == {("get", "/v1/agents", 421, "wrong_host"), ("get", go, 422, "invalid_request")}


def _codes(description: str) -> Iterator[str]:
    yield from (code.value for code in Code if f"`{code.value}`" in description)


def test_rejections_without_a_token_are_described(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENLY_CLIENT_TOKEN", TOKEN)
    book = Book(openapi_document(with_token=True))
    with Dispatcher() as dispatcher, dispatcher.client() as client:
        assert client.get("/openapi.json").json() == book.document
        book.check("/v1/sessions", client.post("/v1/sessions"))
        book.check("/v1/sessions/{id}", client.delete("/v1/sessions/x"))
        book.check("/v1/go/{path}", client.get("/v1/go/x"))
    assert {entry[3] for entry in book.seen} == {"unauthorized"}
    secured = [operation for path in book.document["paths"].values() for operation in path.values()]
    assert [bool(operation.get("security")) for operation in secured] == [True, True, True, True, False, False]


def test_the_document_has_the_limits_that_are_enforced(book: Book) -> None:
    request = book.document["components"]["schemas"]["PickRequest"]["properties"]
    assert request["exclude"]["maxItems"] == MAX_EXCLUDED
    assert request["count"]["anyOf"][0]["maximum"] == MAX_COUNT
    (header,) = book.document["paths"]["/v1/sessions"]["post"]["parameters"]
    assert header["name"] == "idempotency-key"
    assert KEY_PATTERN in json.dumps(header["schema"])


def test_the_page_of_the_documentation_is_up_to_date() -> None:
    """Write it again with `python -m website.http_api`."""
    assert PAGE.read_text(encoding="utf-8") == http_api_page()
