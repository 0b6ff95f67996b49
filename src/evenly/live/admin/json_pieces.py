"""JSON in pieces, so that a list of thousands of pools need not be made at once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping


def json_pieces(values: Mapping[str, object]) -> Iterator[str]:
    """Yield an object as JSON. An iterator in it becomes a list, one piece per element."""
    before = "{"
    for key, value in values.items():
        yield f"{before}{_json(key)}:"
        if isinstance(value, Iterator):
            yield from _list_pieces(value)
        else:
            yield _json(value)
        before = ","
    yield "{}" if before == "{" else "}"


def _list_pieces(values: Iterator[object]) -> Iterator[str]:
    before = "["
    for value in values:
        yield before + _json(value)
        before = ","
    yield "[]" if before == "[" else "]"


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
