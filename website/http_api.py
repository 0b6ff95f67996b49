"""The reference of the dispatcher's HTTP API, written from its OpenAPI document: `python -m website.http_api`."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evenly.live.dispatcher.openapi import openapi_document

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "http-api.md"
_WIDTH = 110
_INTRODUCTION = """\
# Reference: the dispatcher's HTTP API

`evenly dispatcher` serves this API to clients and agents. A running dispatcher shows it at `/docs`, and as an
OpenAPI document at `/openapi.json`. This page is written from the same document.
[The protocol](protocol.md) describes what agents and dispatcher say on the WebSocket. The admin port has [a
reference of its own](live.md#the-dispatcher), and [a dashboard](../guides/dashboard.md).

Errors are answered with `{"code": ..., "detail": ...}`: `code` is for programs, `detail` is one sentence for
people. Every 503 and 429 has the header `Retry-After`. Beyond loopback, requests need the header
`Authorization: Bearer TOKEN` with the client's or the agent's token. Limits: 64 KiB for a body and for
headers, 15 seconds for a request, 30 seconds for an idle connection.
"""


def http_api_page() -> str:
    """Return the page."""
    document = openapi_document(with_token=True)
    parts = [_INTRODUCTION]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            parts.append("\n".join(_operation(document, f"{method.upper()} {path}", operation)))
    return "\n".join(parts)


def _operation(document: dict[str, Any], title: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"## `{title}`\n"
    yield _wrapped(f"{operation['summary']}. {operation['description']}")
    rows = [(entry["name"], f"{entry['in']}: {entry['description']}") for entry in operation.get("parameters", [])]
    body = _schemas(document, operation.get("requestBody", {}))
    rows += [(name, f"body: {text}") for schema in body for name, text in _fields(document, schema)]
    yield from _table("parameter", rows)
    for status, answer in operation["responses"].items():
        if status < "4":
            yield f"**{status}**: {answer['description']}\n"
            example = answer.get("content", {}).get("application/json", {}).get("example")
            if example is not None:
                yield f"```\n{json.dumps(example, indent=2)}\n```\n"
            for schema in _schemas(document, answer)[:1]:
                yield from _table("field", list(_fields(document, schema)))
    errors = [(status, text) for status, text in operation["responses"].items() if status >= "4"]
    yield from _table("error", [(status, answer["description"]) for status, answer in errors])


def _wrapped(text: str) -> str:
    paragraphs = (" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
    return (
        "\n\n".join(
            textwrap.fill(each, _WIDTH, break_long_words=False, break_on_hyphens=False) for each in paragraphs
        )
        + "\n"
    )


def _table(what: str, rows: list[tuple[str, str]]) -> Iterator[str]:
    if rows:
        yield f"| {what} | meaning |\n| --- | --- |"
        yield "".join(f"| `{name}` | {text} |\n" for name, text in rows)


def _schemas(document: dict[str, Any], described: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the object schemas of a JSON body; the body may be one of several."""
    schema = described.get("content", {}).get("application/json", {}).get("schema", {})
    found = [_resolved(document, each) for each in schema.get("anyOf", [schema])]
    return [each for each in found if "properties" in each]


def _resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = document["components"]["schemas"][name] if name else schema
    return found


def _fields(document: dict[str, Any], schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, field in schema["properties"].items():
        yield name, field["description"]


if __name__ == "__main__":
    PAGE.write_text(http_api_page(), encoding="utf-8")
