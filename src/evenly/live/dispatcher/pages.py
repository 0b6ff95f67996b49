"""The pages for people and tools: the OpenAPI document and the page made of it."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

from evenly.live.addresses import Address
from evenly.live.admin.docs import Port, docs_page
from evenly.live.admin.shell import DOCS_POLICY, reached_at
from evenly.live.dispatcher.answers import JSON, Answer
from evenly.live.dispatcher.openapi import openapi_document
from evenly.live.dispatcher.settings import CLIENT_TOKEN_VARIABLE


class Pages:
    """Answers by path. `bound` is the address of the API; the document is made when it is first asked for."""

    def __init__(self, bound: Address, *, with_token: bool, tls: bool) -> None:
        self._bound = bound
        self._with_token = with_token
        self._port = Port(
            "dispatcher's API",
            "client" if with_token else None,
            CLIENT_TOKEN_VARIABLE,
            "https" if tls else "http",
        )

    def find(self, path: bytes, host: str) -> Answer | None:
        """Return the page, None if there is none."""
        if path == b"/openapi.json":
            return Answer(200, [JSON], json.dumps(self._document).encode())
        if path == b"/docs":
            page = docs_page(self._document, reached_at(host, self._bound), self._port)
            headers = [
                (b"content-type", b"text/html; charset=utf-8"),
                (b"content-security-policy", DOCS_POLICY.encode()),
            ]
            return Answer(200, headers, page.encode())
        if path == b"/":
            return Answer(307, [(b"location", b"/docs")])
        return None

    @cached_property
    def _document(self) -> dict[str, Any]:
        return openapi_document(with_token=self._with_token)
