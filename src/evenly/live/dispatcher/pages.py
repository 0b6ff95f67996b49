"""The pages for people and tools: the OpenAPI document and the page made of it."""

from __future__ import annotations

import json

from evenly.live.addresses import Address
from evenly.live.admin.docs import DocsPage, Port
from evenly.live.admin.shell import DOCS_POLICY, reached_at
from evenly.live.dispatcher.answers import JSON, Answer
from evenly.live.dispatcher.openapi import openapi_document
from evenly.live.dispatcher.settings import CLIENT_TOKEN_VARIABLE


class Pages:
    """Answers by path, made once: that takes tens of milliseconds. `bound` is the address of the API."""

    def __init__(self, bound: Address, *, with_token: bool, tls: bool) -> None:
        self._bound = bound
        document = openapi_document(with_token=with_token)
        token, scheme = "client" if with_token else None, "https" if tls else "http"
        self._page = DocsPage(document, Port("dispatcher's API", token, CLIENT_TOKEN_VARIABLE, scheme))
        self._document = Answer(200, [JSON], json.dumps(document).encode())

    def find(self, path: bytes, host: str) -> Answer | None:
        """Return the page, None if there is none."""
        if path == b"/openapi.json":
            return self._document
        if path == b"/docs":
            headers = [
                (b"content-type", b"text/html; charset=utf-8"),
                (b"content-security-policy", DOCS_POLICY.encode()),
            ]
            return Answer(200, headers, self._page.at(reached_at(host, self._bound)).encode())
        if path == b"/":
            return Answer(307, [(b"location", b"/docs")])
        return None
