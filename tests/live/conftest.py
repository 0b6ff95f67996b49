"""Checks that hold for every live test."""

from __future__ import annotations

import asyncio.selector_events
from collections.abc import Iterator
from typing import Any

import pytest

from evenly.live.processes import raise_fd_limit

raise_fd_limit()  # the clients of the largest tests are more than the usual limit of 1,024 open files


@pytest.fixture(autouse=True)
def all_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail the test that leaves a connection to an event loop that is closed.

    Otherwise the garbage collector finds it later, and fails a test that has nothing to do with it.
    """
    made: list[tuple[Any, str]] = []
    kind: Any = asyncio.selector_events._SelectorTransport  # type: ignore[attr-defined]
    begin = kind.__init__

    def recorded(self: Any, loop: Any, sock: Any, protocol: Any, *more: Any) -> None:  # noqa: ANN401
        begin(self, loop, sock, protocol, *more)
        made.append((self, f"{sock} {protocol!r}"))

    monkeypatch.setattr(kind, "__init__", recorded)
    yield
    assert [text for each, text in made if each._sock is not None and each._loop.is_closed()] == []
